package etcd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

// childVariable, when set, makes the test binary a writer on that directory.
const childVariable = "LEVELWIRE_ETCD_CRASH_DIR"

func childDir() string { return os.Getenv(childVariable) }

// writeForEver creates and updates keys with several writers and prints each
// write when it is acknowledged, until it is killed.
func writeForEver(dir string) {
	store, err := etcd.Embed(context.Background(), etcd.EmbedConfig{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var printing sync.Mutex
	report := func(key, value string, rev storage.Revision) {
		printing.Lock()
		defer printing.Unlock()
		fmt.Printf("%s %s %d\n", key, value, rev)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				key, value := fmt.Sprintf("/crash/%d/%d/%d", os.Getpid(), w, i), fmt.Sprintf("value-%d", i)
				rev, err := store.Create(context.Background(), key, []byte(value), 0)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				report(key, value, rev)
			}
		})
	}
	wg.Wait()
}

// TestKillLosesNothingAcknowledged kills a process that writes, several times,
// and expects each write that it had reported.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]string{}
	revisions := map[string]storage.Revision{}
	var newest storage.Revision
	for round := range 3 {
		before := newest
		for _, written := range killAfter(t, dir, 200+300*round) {
			var key, value string
			var rev storage.Revision
			if _, err := fmt.Sscanf(written, "%s %s %d", &key, &value, &rev); err != nil {
				t.Fatalf("the child wrote %q: %v", written, err)
			}
			if rev <= before {
				t.Fatalf("%q after the restart, revision %d had been acknowledged before", written, before)
			}
			acknowledged[key], revisions[key] = value, rev
			newest = max(newest, rev)
		}
	}
	store := start(t, etcd.EmbedConfig{Dir: dir})
	current, err := store.Current(t.Context())
	if err != nil || current < newest {
		t.Fatalf("reopened at %d, %v; %d was acknowledged", current, err, newest)
	}
	for key, value := range acknowledged {
		kv, err := store.Get(t.Context(), key, 0)
		if err != nil || string(kv.Value) != value || kv.Modified != revisions[key] {
			t.Errorf("%s is %q at %d, %v; %q was acknowledged at %d", key, kv.Value, kv.Modified, err, value, revisions[key])
		}
	}
}

// killAfter runs a child, kills it once it has reported count writes, and
// returns all complete reports.
func killAfter(t *testing.T, dir string, count int) []string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+dir)
	var stderr strings.Builder
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := childprocess.Start(child); err != nil {
		t.Fatal(err)
	}
	var reports []string
	reader := bufio.NewReader(stdout)
	for {
		report, err := reader.ReadString('\n')
		if err != nil {
			break // the pipe's end, and perhaps half a report
		}
		if reports = append(reports, strings.TrimSuffix(report, "\n")); len(reports) == count {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var killed *exec.ExitError
	if err := child.Wait(); !errors.As(err, &killed) || killed.Exited() {
		t.Fatalf("the child was not killed: %v\n%s", err, &stderr)
	}
	if len(reports) < count {
		t.Fatalf("the child reported %d writes, want at least %d\n%s", len(reports), count, &stderr)
	}
	return reports
}

// TestKillDuringFirstStart kills a process at moments of its first start, and
// expects the next one to start on what is left.
func TestKillDuringFirstStart(t *testing.T) {
	for delay := 5 * time.Millisecond; delay < 160*time.Millisecond; delay += 15 * time.Millisecond {
		dir := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		child := exec.CommandContext(ctx, os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+dir)
		err := childprocess.Run(child)
		cancel()
		if err == nil {
			t.Fatalf("after %v the child had ended by itself", delay)
		}
		if err := start(t, etcd.EmbedConfig{Dir: dir}).Close(); err != nil {
			t.Errorf("killed after %v: %v", delay, err)
		}
	}
}

// TestKillDuringLaterStarts kills a process at moments of starts that have a log to replay,
// and expects each write that was acknowledged before.
func TestKillDuringLaterStarts(t *testing.T) {
	dir := t.TempDir()
	acknowledged := killAfter(t, dir, 3000) // more than a snapshot of the log is behind
	for delay := 10 * time.Millisecond; delay < 200*time.Millisecond; delay += 20 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		child := exec.CommandContext(ctx, os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+dir)
		err := childprocess.Run(child)
		cancel()
		if err == nil {
			t.Fatalf("after %v the child had ended by itself", delay)
		}
	}
	store := start(t, etcd.EmbedConfig{Dir: dir})
	for _, written := range acknowledged {
		var key, value string
		var rev storage.Revision
		if _, err := fmt.Sscanf(written, "%s %s %d", &key, &value, &rev); err != nil {
			t.Fatalf("the child wrote %q: %v", written, err)
		}
		kv, err := store.Get(t.Context(), key, 0)
		if err != nil || string(kv.Value) != value || kv.Modified != rev {
			t.Errorf("%s is %q at %d, %v; %q was acknowledged at %d", key, kv.Value, kv.Modified, err, value, rev)
		}
	}
}

// TestHalfMadeDatabase starts where a process died after it had made the database's
// file and before it had written to it.
func TestHalfMadeDatabase(t *testing.T) {
	for _, content := range []string{"", "half a page"} {
		dir := t.TempDir()
		snap := filepath.Join(dir, "member", "snap")
		if err := os.MkdirAll(snap, 0o700); err != nil {
			t.Fatal(err)
		}
		for path, data := range map[string]string{filepath.Join(dir, "member", "first-start"): "", filepath.Join(snap, "db"): content} {
			if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		store, err := etcd.Embed(t.Context(), etcd.EmbedConfig{Dir: dir})
		if err != nil {
			t.Fatalf("database %q: %v", content, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}
