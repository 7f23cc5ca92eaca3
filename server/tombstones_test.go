package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage/etcd"
)

// deleted creates objects and then deletes them, and returns the version of each
// deletion. A client that resumes from before the first has had all objects.
func deleted(ctx context.Context, t *testing.T, c *client.Client, count int) []int64 {
	t.Helper()
	stream := openWatch(ctx, t, configMaps(c))
	var at []int64
	for i := range count {
		create(ctx, t, c, fmt.Sprint("gone-", i))
	}
	for i := range count {
		name := fmt.Sprint("gone-", i)
		if err := configMaps(c).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for len(at) == i {
			event, err := stream.Next()
			if err != nil {
				t.Fatal(err)
			}
			if event.Type == watch.Deleted {
				at = append(at, number(t, event.Object.ResourceVersion))
			}
		}
	}
	return at
}

// compactedBeyond waits until the store has been compacted beyond a version.
func compactedBeyond(ctx context.Context, t *testing.T, store *etcd.Store, version int64) {
	t.Helper()
	testwait.Stable(t, fmt.Sprint("the store is compacted beyond ", version), func() (any, bool) {
		oldest, err := store.Oldest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return oldest, int64(oldest) > version
	})
}

// deletionsSince returns the names of the first deletions that a watch from a version
// gets, or "expired".
func deletionsSince(ctx context.Context, t *testing.T, c *client.Client, version int64, count int) string {
	t.Helper()
	w, err := configMaps(c).Watch(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(version), AllowWatchBookmarks: true})
	if apierrors.IsResourceExpired(err) {
		return "expired"
	} else if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var names []string
	for len(names) < count {
		event, err := w.Next()
		switch {
		case apierrors.IsResourceExpired(err):
			return "expired"
		case err != nil:
			t.Fatal(err)
		case event.Type == watch.Deleted:
			names = append(names, event.Object.Name)
		}
	}
	return strings.Join(names, " ")
}

// metric returns one metric of the cache of configmaps.
func (r *running) metric(ctx context.Context, t *testing.T, name string) int64 {
	t.Helper()
	return r.total(ctx, t, "levelwire_cache_"+name+`{group="",resource="configmaps"}`)
}

// total returns a metric with the given name and labels.
func (r *running) total(ctx context.Context, t *testing.T, series string) int64 {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindSubmatch(body)
	if found == nil {
		t.Fatalf("/metrics has no %s", series)
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(n)
}

// TestTombstonesAtTheirLimits: tombstones are kept across compactions and restarts,
// by servers that were started after the deletions, up to each of the limits and not
// beyond. Several servers of one etcd may have different limits.
func TestTombstonesAtTheirLimits(t *testing.T) {
	ctx := deadline(t)
	store := startEtcd(t, "http://127.0.0.1:0")
	config := func() server.Config {
		return server.Config{
			DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{store.ClientURL()},
			CompactionInterval: -1, SelfCheckInterval: -1, DisableAdmissionPlugins: []string{"ServiceAccount"},
		}
	}
	compacting := config()
	compacting.CompactionInterval, compacting.CompactionRetention = 10*time.Millisecond, time.Millisecond
	first := start(t, compacting)
	at := deleted(ctx, t, first.client(t), 5)
	create(ctx, t, first.client(t), "after-all")
	compactedBeyond(ctx, t, store, at[4])
	first.stop(t)

	all := start(t, config())
	if got := deletionsSince(ctx, t, all.client(t), at[0]-1, 5); got != "gone-0 gone-1 gone-2 gone-3 gone-4" {
		t.Fatalf("with the default limits: %s", got)
	}
	bytes := all.metric(ctx, t, "tombstone_bytes")
	all.stop(t)
	const age = 24 * time.Hour
	later := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	for name, test := range map[string]struct {
		change func(*server.Config)
		lost   int // the so many of the oldest
	}{
		"as many as there are":   {func(c *server.Config) { c.TombstoneLimit = 5 }, 0},
		"fewer":                  {func(c *server.Config) { c.TombstoneLimit = 3 }, 2},
		"as large as they are":   {func(c *server.Config) { c.TombstoneBytes = bytes }, 0},
		"a byte less":            {func(c *server.Config) { c.TombstoneBytes = bytes - 1 }, 1},
		"shortly before the age": {func(c *server.Config) { c.Now = later(age - time.Hour) }, 0},
		"when they are too old":  {func(c *server.Config) { c.Now = later(age + time.Second) }, 5},
		"a higher age":           {func(c *server.Config) { c.Now, c.TombstoneAge = later(age+time.Second), age+time.Hour }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, config := deadline(t), config()
			test.change(&config)
			s := start(t, config)
			cl := s.client(t)
			if test.lost > 0 {
				// A client that has had the last lost deletion does not need it.
				if got := deletionsSince(ctx, t, cl, at[test.lost-1]-1, 1); got != "expired" {
					t.Errorf("from before deletion %d: %s", test.lost-1, got)
				}
			}
			if test.lost == len(at) {
				return
			}
			since := at[0] - 1
			if test.lost > 0 {
				since = at[test.lost-1]
			}
			var want []string
			for i := test.lost; i < len(at); i++ {
				want = append(want, fmt.Sprint("gone-", i))
			}
			if got := deletionsSince(ctx, t, cl, since, len(want)); got != strings.Join(want, " ") {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := s.metric(ctx, t, "tombstones"); got != int64(len(want)) {
				t.Errorf("%d tombstones are counted, want %d", got, len(want))
			}
		})
	}
}

// TestHistoryIsBoundedByBytes: history that is neither old nor of too many revisions
// is compacted if it is too large, by the server that has written it and by one that
// finds it at its start.
func TestHistoryIsBoundedByBytes(t *testing.T) {
	store := startEtcd(t, "http://127.0.0.1:0")
	config := server.Config{
		DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{store.ClientURL()}, SecurePort: reservePort(t), CompactionInterval: time.Hour,
		CompactionRetention: time.Hour, CompactionRevisions: 1 << 20, CompactionBytes: -1, DisableAdmissionPlugins: []string{"ServiceAccount"},
	}
	s := start(t, config)
	ctx, c := deadline(t), s.client(t)
	object := create(ctx, t, c, "large")
	object.Data = map[string]string{"fill": strings.Repeat("x", 100_000)}
	var changes []int64 // the revisions; the server makes its own objects meanwhile
	change := func(n int) {
		t.Helper()
		for range n {
			object.Data["n"] = fmt.Sprint(len(changes))
			changed, err := configMaps(c).Update(ctx, object, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			object, changes = changed, append(changes, number(t, changed.ResourceVersion))
		}
	}
	oldest := func() int64 {
		t.Helper()
		revision, err := store.Oldest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return int64(revision)
	}
	kept := func() (n int) {
		first := oldest()
		for _, revision := range changes {
			if revision >= first {
				n++
			}
		}
		return n
	}
	change(15)
	if got := oldest(); got > 1 {
		t.Fatalf("without a limit of bytes the store was compacted to %d", got)
	}
	s.stop(t)

	config.CompactionBytes = 1 << 20
	start(t, config)
	// Ten of the changes fit in.
	keptAtMost := func(most int) int {
		return testwait.Stable(t, fmt.Sprintf("of %d changes %d at most are kept", len(changes), most), func() (int, bool) { n := kept(); return n, n <= most })
	}
	if n := keptAtMost(12); n < 8 {
		t.Fatalf("of a history of 1.5 MB %d of %d changes were kept", n, len(changes))
	}
	change(30)
	keptAtMost(16)
}
