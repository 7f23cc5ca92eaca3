package etcd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd/internal/mmap"
	"github.com/levelwire/levelwire/storage/storagetest"
)

// TestInternalsAreThoseOfTheLinkedReleases fails after an upgrade. Before the
// versions below are changed, read in the new release what internals.go lists:
// etcd's storage/wal/file_pipeline.go and wal.go (names and length of segments),
// storage/mvcc (Range, NewWatchStream, the keys of the bucket "key"),
// storage/backend/read_tx.go (UnsafeRange), and bbolt's mmap and its locks in db.go.
// If the minor version is another one, change verifiedEtcd and verifiedBolt, too.
func TestInternalsAreThoseOfTheLinkedReleases(t *testing.T) {
	want := map[string]string{
		"go.etcd.io/etcd/server/v3": "v3.7.3",
		"go.etcd.io/etcd/api/v3":    "v3.7.3",
		"go.etcd.io/raft/v3":        "v3.7.0",
		"go.etcd.io/bbolt":          "v1.5.0",
	}
	// Tests are linked without the list of their modules.
	requirements, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(requirements)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) < 2 || want[fields[0]] == "" {
			continue
		}
		if fields[1] != want[fields[0]] {
			t.Errorf("%s is required, the internals were verified with %s", strings.Join(fields[:2], " "), want[fields[0]])
		}
		delete(want, fields[0])
	}
	if len(want) > 0 {
		t.Errorf("go.mod does not require %v", want)
	}
	if err := linkedVersions().verify(); err != nil {
		t.Error(err)
	}
}

func TestOtherReleasesAreNotTrusted(t *testing.T) {
	for linked, trusted := range map[versions]bool{
		{etcd: "3.7.3", bolt: "v1.5.0"}:                               true,
		{etcd: "3.7.12", bolt: "v1.5.1"}:                              true,
		{etcd: "3.8.0", bolt: "v1.5.0"}:                               false,
		{etcd: "3.70.0", bolt: "v1.5.0"}:                              false,
		{etcd: "3.7.4-rc.0", bolt: "v1.5.0"}:                          false,
		{etcd: "3.7.3", bolt: "v1.6.0"}:                               false,
		{etcd: "3.7.3", bolt: "v1.5.1-0.20260101000000-0123456789ab"}: false,
		{etcd: "3.7.3", bolt: ""}:                                     true,
		{etcd: "", bolt: ""}:                                          false,
	} {
		if err := linked.verify(); (err == nil) != trusted {
			t.Errorf("%+v: %v", linked, err)
		}
	}
}

// TestForksAreNotTrusted: go.mod may replace a module by a fork that calls itself the
// same release.
func TestForksAreNotTrusted(t *testing.T) {
	build := func(change func(modules map[string]*debug.Module)) *debug.BuildInfo {
		modules := map[string]*debug.Module{}
		for path, version := range map[string]string{
			"go.etcd.io/etcd/server/v3": "v3.7.3", "go.etcd.io/etcd/api/v3": "v3.7.3", "go.etcd.io/bbolt": "v1.5.0", "go.uber.org/zap": "v1.27.0",
		} {
			modules[path] = &debug.Module{Path: path, Version: version}
		}
		change(modules)
		info := &debug.BuildInfo{}
		for _, module := range modules {
			info.Deps = append(info.Deps, module)
		}
		return info
	}
	replace := func(path string, by debug.Module) *debug.BuildInfo {
		return build(func(modules map[string]*debug.Module) { modules[path].Replace = &by })
	}
	for name, test := range map[string]struct {
		info   *debug.BuildInfo
		reason string // empty: trusted
	}{
		"as released":       {build(func(map[string]*debug.Module) {}), ""},
		"another module":    {replace("go.uber.org/zap", debug.Module{Path: "example.com/zap", Version: "v1.27.0"}), ""},
		"a test":            {nil, ""},
		"a server":          {replace("go.etcd.io/etcd/server/v3", debug.Module{Path: "example.com/etcd/server/v3", Version: "v3.7.3"}), "example.com/etcd/server/v3 v3.7.3"},
		"a server's folder": {replace("go.etcd.io/etcd/server/v3", debug.Module{Path: "../server"}), "=> ../server)"},
		"an API":            {replace("go.etcd.io/etcd/api/v3", debug.Module{Path: "example.com/api/v3", Version: "v3.7.3"}), "example.com/api/v3"},
		"bbolt":             {replace("go.etcd.io/bbolt", debug.Module{Path: "example.com/bbolt", Version: "v1.5.0"}), "example.com/bbolt"},
		// The API's constant says 3.7.
		"an older server": {build(func(modules map[string]*debug.Module) { modules["go.etcd.io/etcd/server/v3"].Version = "v3.6.9" }), "3.6.9"},
	} {
		err := versionsOf(test.info).verify()
		if (err == nil) != (test.reason == "") || err != nil && !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s: %v, want %q", name, err, test.reason)
		}
	}
}

// logLines is a log whose lines can be counted while others write it. It
// announces the first one. Lines of etcd itself are left out: it warns of a slow disk.
type logLines struct {
	mu    sync.Mutex
	text  bytes.Buffer
	first chan struct{}
	once  sync.Once
}

func newLogLines() *logLines { return &logLines{first: make(chan struct{})} }

// Write implements io.Writer.
func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(p, []byte("component=etcd")) {
		return len(p), nil
	}
	l.once.Do(func() { close(l.first) })
	return l.text.Write(p)
}

func (l *logLines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// wantOne expects one line, which contains text.
func (l *logLines) wantOne(t *testing.T, text string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := l.text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, text) {
		t.Errorf("the log is %q, want one line with %q", got, text)
	}
}

// embedTemporary runs a member until the test ends.
func embedTemporary(t *testing.T, config EmbedConfig) *Store {
	t.Helper()
	config.Dir = t.TempDir()
	store, err := Embed(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// fill makes as many writes as let a need of segments be checked.
func fill(t *testing.T, store *Store, prefix string) {
	t.Helper()
	for i := range commitsPerCheck {
		if _, err := store.Create(t.Context(), fmt.Sprintf("%s/%04d", prefix, i), []byte("v"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnUnknownReleaseIsUsedThroughItsAPI(t *testing.T) {
	log := newLogLines()
	store := embedTemporary(t, EmbedConfig{Logger: log.logger(), linked: func() versions { return versions{etcd: "3.9.1", bolt: "v1.5.0"} }})
	if store.local != nil {
		t.Error("the store of an unknown etcd is read")
	}
	fill(t, store, "/a")
	page, err := store.List(t.Context(), "/a/", storage.ListOptions{})
	if err != nil || len(page.Items) != commitsPerCheck {
		t.Errorf("%d items, %v", len(page.Items), err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	log.wantOne(t, "3.9.1")
}

// TestPublicAPIContract runs the whole suite without the internals.
func TestPublicAPIContract(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite takes ten seconds")
	}
	storagetest.Run(t, func(t *testing.T) storage.Store {
		log := newLogLines()
		store := embedTemporary(t, EmbedConfig{PublicAPIOnly: true, Logger: log.logger()})
		if store.local != nil {
			t.Error("the member's store is read")
		}
		select {
		case <-log.first:
			t.Error("what was asked for is logged")
		default:
		}
		return store
	})
}

// TestUnknownSegmentsAreLeftAlone has etcd's log hold a file that the known etcd
// does not make.
func TestUnknownSegmentsAreLeftAlone(t *testing.T) {
	log := newLogLines()
	store := embedTemporary(t, EmbedConfig{Logger: log.logger()})
	folder := filepath.Join(filepath.Dir(filepath.Dir(store.local.file)), "wal")
	if err := os.WriteFile(filepath.Join(folder, "2.tmp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, store, "/a")
	<-log.first
	for _, prefix := range []string{"/b", "/c"} {
		fill(t, store, prefix)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	log.wantOne(t, "2.tmp")
}

func TestSegmentNamesAreChecked(t *testing.T) {
	s, _ := logDir(t)
	for check := 1; check <= maxUnseen; check++ {
		if err := s.provide(); (err != nil) != (check == maxUnseen) {
			t.Errorf("check %d without a next segment: %v", check, err)
		}
	}
	s, _ = logDir(t, "0.tmp")
	if err := os.Rename(filepath.Join(s.log, liveSegment), filepath.Join(s.log, "segment-1")); err != nil {
		t.Fatal(err)
	}
	if err := s.provide(); err == nil || !strings.Contains(err.Error(), ".wal") {
		t.Errorf("without a segment of a known name: %v", err)
	}
}

// TestWithoutAMappingNoPagesAreDropped looks for a database that is not mapped.
func TestWithoutAMappingNoPagesAreDropped(t *testing.T) {
	if !mmap.Supported {
		t.Skip("nothing is known of mappings on this system")
	}
	store := embedTemporary(t, EmbedConfig{})
	if err := store.local.findMapping(); err != nil {
		t.Errorf("etcd's database: %v", err)
	}
	elsewhere := &localMember{kv: store.local.kv, database: store.local.database, file: filepath.Join(t.TempDir(), "db")}
	if err := os.WriteFile(elsewhere.file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := newLogLines()
	elsewhere.limitResidentSet(context.WithoutCancel(t.Context()), log.logger()) // returns
	log.wantOne(t, "is not mapped")
	if err := elsewhere.dropPages(); err == nil {
		t.Error("pages of no mapping were dropped")
	}
}
