package feed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/server/internal/watchcache/podtest"
	"github.com/levelwire/levelwire/storage"
)

func TestFeedFillsAndFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		for i := range 25 { // several pages
			write(t, store, pod{Namespace: "one", Name: fmt.Sprintf("p%02d", i)})
		}
		last := writeKey(t, store, "/registry/minions/n1", nodeValue("n1"))
		r := startRig(t, store, nil, feed.Options{PageSize: 7})
		if s := r.pods.Current(); s.Len() != 25 || s.Revision() != last || s.Count("one/", "one/p20") != 5 {
			t.Errorf("%d pods at %d, want 25 at %d", s.Len(), s.Revision(), last)
		}
		if s := r.nodes.Current(); s.Len() != 1 || s.Revision() != last {
			t.Errorf("%d nodes at %d", s.Len(), s.Revision())
		}

		w := watching(t, r.pods, watchcache.WatchOptions{After: last})
		a := write(t, store, podA)
		b := erase(t, store, "/registry/pods/one/p00")
		node := writeKey(t, store, "/registry/minions/n2", nodeValue("n2"))
		synctest.Wait()
		expect(t, drain(t, w), fmt.Sprintf("ADDED one/a@%d", a), fmt.Sprintf("DELETED one/p00@%d", b))
		if w.Reached() != node {
			t.Errorf("reached %d, want the node's %d: progress is shared", w.Reached(), node)
		}
		if s, err := r.pods.NotOlderThan(t.Context(), node); err != nil || s.Revision() != node {
			t.Errorf("an idle resource is at %d: %v", s.Revision(), err)
		}
		writeKey(t, store, "/registry/unknown/x", []byte("anything"))
		synctest.Wait()
		if got := r.feed.Stats(); got.Unrouted != 1 || got.Relists != 2 || len(got.Fills) != 0 {
			t.Errorf("stats %+v", got)
		}
	})
}

func TestFeedSkipsUndecodableValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		write(t, store, podA)
		writeKey(t, store, "/registry/pods/one/broken", []byte(`{"kind":`))
		var logged bytes.Buffer
		r := startRig(t, store, nil, feed.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		w := watching(t, r.pods, watchcache.WatchOptions{After: r.pods.Current().Revision()})

		writeKey(t, store, "/registry/pods/one/broken", []byte(`still {`))
		writeKey(t, store, "/registry/pods/one/misplaced", podB.Value())
		writeKey(t, store, "/registry/pods/"+podA.Key(), []byte(`spoiled`))
		b := write(t, store, podB)
		synctest.Wait()
		expect(t, drain(t, w), fmt.Sprintf("ADDED one/b@%d", b))
		if s := r.pods.Current(); s.Len() != 2 {
			t.Errorf("holds %s, want a's last decodable state and b", content(s))
		}
		if got := r.feed.Stats().Undecodable; got != 4 {
			t.Errorf("%d values counted, want 4", got)
		}
		if n := strings.Count(logged.String(), "key=/registry/pods/one/broken"); n != 1 {
			t.Errorf("the key is logged %d times:\n%s", n, &logged)
		}
		if n, err := r.feed.Check(t.Context()); n != 0 || err != nil {
			t.Errorf("the check counts %d values that cannot be decoded as differences, %v", n, err)
		}
		a := write(t, store, podA)
		erase(t, store, "/registry/pods/one/broken")
		synctest.Wait()
		expect(t, drain(t, w), fmt.Sprintf("MODIFIED one/a@%d", a))

		writeKey(t, store, "/registry/pods/one/broken", []byte(`once more {`))
		synctest.Wait()
		if n := strings.Count(logged.String(), "key=/registry/pods/one/broken"); n != 2 {
			t.Errorf("a key that broke, was deleted and broke again is logged %d times", n)
		}
	})
}

func TestFeedAddAndRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		r := startRig(t, store, nil, feed.Options{})
		res := podResource()
		res.Plural, res.StorePrefix = "widgets", "/registry/example.com/widgets/"
		key := res.StorePrefix + podA.Key()
		writeKey(t, store, key, podA.Value())
		synctest.Wait()
		widgets := watchcache.New(res, watchcache.Options{})
		r.feed.Add(widgets)
		if err := widgets.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := watching(t, widgets, watchcache.WatchOptions{After: widgets.Current().Revision()})
		at := writeKey(t, store, key, podA.Value())
		synctest.Wait()
		expect(t, drain(t, w), fmt.Sprintf("MODIFIED one/a@%d", at))

		r.feed.Remove(widgets)
		if _, err := w.Read(make([]watchcache.Event, 1)); !errors.Is(err, watchcache.ErrClosed) {
			t.Errorf("a watcher of a removed cache: %v", err)
		}
		writeKey(t, store, key, podA.Value())
		synctest.Wait()
		if got := content(widgets.Current()); got != fmt.Sprintf("one/a@%d ", at) {
			t.Errorf("a removed cache is still fed: %s", got)
		}
		if got := r.feed.Stats().Unrouted; got != 2 { // before Add and after Remove
			t.Errorf("%d changes had no cache, want 2", got)
		}
	})
}

// faulty is a store whose stream can be broken and held.
type faulty struct {
	storage.Store
	fail    atomic.Pointer[error] // what streams and watches fail with
	watches atomic.Int64
	listing atomic.Pointer[func(storage.ListOptions) error] // called before each list
	behind  atomic.Int64                                    // subtracted from Current
}

func (f *faulty) Current(ctx context.Context) (storage.Revision, error) {
	revision, err := f.Store.Current(ctx)
	return revision - storage.Revision(f.behind.Load()), err
}

func (f *faulty) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	if hook := f.listing.Load(); hook != nil {
		if err := (*hook)(opts); err != nil {
			return storage.Page{}, err
		}
	}
	return f.Store.List(ctx, prefix, opts)
}

func (f *faulty) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	f.watches.Add(1)
	if err := f.fail.Load(); err != nil {
		return nil, *err
	}
	stream, err := f.Store.Watch(ctx, prefix, after)
	return &faultyStream{stream, f}, err
}

type faultyStream struct {
	storage.Stream
	store *faulty
}

func (s *faultyStream) Next() (storage.Batch, error) {
	batch, err := s.Stream.Next()
	if fail := s.store.fail.Load(); fail != nil {
		return storage.Batch{}, *fail
	}
	return batch, err
}

func (f *faulty) breakWith(err error) { f.fail.Store(&err) }
func (f *faulty) repair()             { f.fail.Store(nil) }

func TestFeedResumesABrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		source := &faulty{Store: store}
		r := startRig(t, store, source, feed.Options{})
		w := watching(t, r.pods, watchcache.WatchOptions{After: r.pods.Current().Revision()})
		source.breakWith(fmt.Errorf("%w: no leader", storage.ErrUnavailable))
		a := write(t, store, podA)
		b := write(t, store, podB)
		time.Sleep(time.Minute)
		if n := source.watches.Load(); n < 10 || n > 40 {
			t.Errorf("%d attempts in a minute: want back-off", n)
		}
		source.repair()
		time.Sleep(feed.RetryLast)
		synctest.Wait()
		expect(t, drain(t, w), fmt.Sprintf("ADDED one/a@%d", a), fmt.Sprintf("ADDED one/b@%d", b))
		if got := r.feed.Stats(); got.Relists != 2 || got.Resumes == 0 {
			t.Errorf("stats %+v, want no list beside the first two", got)
		}
	})
}

// TestFeedTurnsAGapIntoEvents: the history that was missed is compacted;
// watchers see the differences, in ascending order, and expire not.
func TestFeedTurnsAGapIntoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		source := &faulty{Store: store}
		for _, p := range []pod{podA, podB, podC} {
			write(t, store, p)
		}
		r := startRig(t, store, source, feed.Options{})
		start := r.pods.Current().Revision()
		w := watching(t, r.pods, watchcache.WatchOptions{After: start})
		drain(t, w)

		source.breakWith(storage.ErrUnavailable)
		synctest.Wait()
		changed := podA
		changed.Phase = "Failed"
		write(t, store, changed)
		a := write(t, store, changed)
		erase(t, store, "/registry/pods/"+podB.Key())
		d := write(t, store, pod{Namespace: "two", Name: "d"})
		writeKey(t, store, "/registry/minions/n", nodeValue("n"))
		if err := store.Compact(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		source.repair()
		time.Sleep(time.Minute)
		synctest.Wait()

		events := drain(t, w)
		if len(events) != 3 {
			t.Fatalf("events %q", eventStrings(events))
		}
		for i, e := range events {
			if e.Revision <= start || i > 0 && e.Revision <= events[i-1].Revision {
				t.Errorf("not ascending: %q", eventStrings(events))
			}
			switch e.Object.Key {
			case "one/a":
				if e.Type != watchcache.Modified || e.Revision != a || !bytes.Contains(e.Object.JSON(), []byte("Failed")) {
					t.Errorf("%q, want a modified at %d", eventStrings(events), a)
				}
			case "one/b":
				// When is not known: before all that a client could resume from on another server.
				if e.Type != watchcache.Deleted || i != 0 || e.Object.Revision != e.Revision {
					t.Errorf("%q, want b deleted first", eventStrings(events))
				}
			case "two/d":
				if e.Type != watchcache.Added || e.Revision != d {
					t.Errorf("%q, want d added at %d", eventStrings(events), d)
				}
			}
		}
		if _, err := r.pods.Exact(t.Context(), a-1); !errors.Is(err, watchcache.ErrExpired) {
			t.Errorf("the state inside the gap is not known, yet: %v", err)
		}
		if got := r.pods.Stats(); got.Resets != 0 || got.BeforeLog != 1 {
			t.Errorf("stats %+v", got)
		}
		next := write(t, store, podB)
		synctest.Wait()
		expect(t, drain(t, w), fmt.Sprintf("ADDED one/b@%d", next))
	})
}

// TestProgressWaitsForTheRefill: while a cache that is being read is compared
// with a new list, Progress does not reach the stream's position.
func TestProgressWaitsForTheRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		source := &faulty{Store: store}
		write(t, store, podA)
		r := startRig(t, store, source, feed.Options{})
		before := r.feed.Stats().Revision

		release := make(chan struct{})
		source.listing.Store(new(func(storage.ListOptions) error { <-release; return nil }))
		source.breakWith(storage.ErrCompacted)
		write(t, store, podB)
		synctest.Wait()
		source.repair()
		time.Sleep(time.Second)
		after := writeKey(t, store, "/registry/minions/n", nodeValue("n"))
		synctest.Wait()
		if got := r.feed.Stats().Revision; got != before {
			t.Errorf("progress is %d during the list, want %d", got, before)
		}
		if _, err := r.pods.NotOlderThan(t.Context(), after); !errors.Is(err, watchcache.ErrTooLarge) {
			t.Errorf("a stale read was served as fresh: %v", err)
		}
		close(release)
		if s, err := r.pods.NotOlderThan(t.Context(), after); err != nil || s.Len() != 2 {
			t.Errorf("after the list: %s, %v", content(s), err)
		}
	})
}

// TestFillStartsOver: changes that outrun the backlog, and a compaction
// between two pages.
func TestFillStartsOver(t *testing.T) {
	for name, disturb := range map[string]func(*testing.T, storage.Store, storage.ListOptions) error{
		"backlog": func(t *testing.T, store storage.Store, _ storage.ListOptions) error {
			for range 5 {
				write(t, store, podA)
			}
			synctest.Wait() // the stream has brought them
			return nil
		},
		"compaction": func(t *testing.T, store storage.Store, opts storage.ListOptions) error {
			if opts.At == 0 {
				return nil
			}
			return store.Compact(t.Context(), write(t, store, podA))
		},
		"unavailable": func(*testing.T, storage.Store, storage.ListOptions) error { return storage.ErrUnavailable },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				write(t, store, podA)
				write(t, store, podB)
				source := &faulty{Store: store}
				var lists int
				source.listing.Store(new(func(opts storage.ListOptions) error {
					if lists++; lists <= 2 {
						return disturb(t, store, opts)
					}
					return nil
				}))
				pods := watchcache.New(podResource(), watchcache.Options{})
				feed := feed.New(source, []*watchcache.Cache{pods}, feed.Options{PageSize: 1, Backlog: 3})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- feed.Run(ctx) }()
				if err := pods.WaitReady(t.Context()); err != nil {
					t.Fatal(err)
				}
				now, _ := store.Current(t.Context())
				s, err := pods.NotOlderThan(t.Context(), now)
				if err != nil || s.Len() != 2 {
					t.Errorf("holds %s, %v", content(s), err)
				}
				if a, ok := s.Get("one/a"); !ok || a.Revision != modified(t, store, "one/a") {
					t.Errorf("a is stale: %s", content(s))
				}
				if got := feed.Stats().Relists; got < 2 {
					t.Errorf("%d lists: the fill did not start over", got)
				}
				cancel()
				<-done
			})
		})
	}
}

func modified(t *testing.T, store storage.Store, key string) storage.Revision {
	t.Helper()
	kv, err := store.Get(t.Context(), "/registry/pods/"+key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return kv.Modified
}

// wrongList is a store whose first list of pods is wrong in all three ways: pod a
// is missing, pod b has an old revision, and there is a pod that does not exist.
type wrongList struct {
	storage.Store
	correct atomic.Bool
}

func (s *wrongList) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	page, err := s.Store.List(ctx, prefix, opts)
	if err != nil || s.correct.Load() || prefix != podResource().StorePrefix {
		return page, err
	}
	items := slices.DeleteFunc(slices.Clone(page.Items), func(item storage.KeyValue) bool { return item.Key == prefix+podA.Key() })
	for i := range items {
		if items[i].Key == prefix+podB.Key() {
			items[i].Modified = items[i].Created
		}
	}
	if !page.More {
		ghost := pod{Namespace: "two", Name: "ghost"}
		items = append(items, storage.KeyValue{Key: prefix + ghost.Key(), Value: ghost.Value(), Modified: 3})
	}
	page.Items = items
	return page, nil
}

// TestSelfCheckRepairs a cache that differs from the store.
func TestSelfCheckRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		for _, p := range []pod{podA, podB, podC, podB} {
			write(t, store, p)
		}
		correct := startRig(t, store, nil, feed.Options{})
		if n, err := correct.feed.Check(t.Context()); n != 0 || err != nil {
			t.Fatalf("%d differences in a correct cache, %v", n, err)
		}
		truth := content(correct.pods.Current())
		source := &wrongList{Store: store}
		r := startRig(t, store, source, feed.Options{CheckInterval: time.Hour, PageSize: 2, ReplayRevisions: -1})
		source.correct.Store(true)
		start := r.pods.Current().Revision()
		w := watching(t, r.pods, watchcache.WatchOptions{After: start})

		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if got := r.feed.Stats(); got.Discrepancies != 3 {
			t.Errorf("stats %+v, want 3 differences", got)
		}
		// Repairs need revisions that watchers have not passed: they come with other writes.
		for i := range 4 {
			writeKey(t, store, fmt.Sprint("/registry/minions/n", i), nodeValue(fmt.Sprint("n", i)))
			synctest.Wait()
		}
		if got := content(r.pods.Current()); got != truth {
			t.Errorf("holds %s, want %s", got, truth)
		}
		events := drain(t, w)
		kinds := map[string]watchcache.EventType{}
		for i, e := range events {
			kinds[e.Object.Key] = e.Type
			if e.Revision < start || i > 0 && e.Revision < events[i-1].Revision {
				t.Errorf("not ascending after %d: %q", start, eventStrings(events))
			}
		}
		if len(events) != 3 || kinds["one/a"] != watchcache.Added || kinds["one/b"] != watchcache.Modified || kinds["two/ghost"] != watchcache.Deleted {
			t.Errorf("watchers got %q", eventStrings(events))
		}
		if n, err := r.feed.Check(t.Context()); n != 0 || err != nil || r.pods.Stats().Repaired != 3 {
			t.Errorf("%d differences are left, %v, %d repaired", n, err, r.pods.Stats().Repaired)
		}
	})
}

// TestCheckListsNoValues: what the check costs must not depend on how large the
// objects are.
func TestCheckListsNoValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		source := &faulty{Store: store}
		write(t, store, podA)
		r := startRig(t, store, source, feed.Options{})
		lists := 0
		source.listing.Store(new(func(opts storage.ListOptions) error {
			lists++
			if !opts.KeysOnly {
				t.Error("a list with values")
			}
			return nil
		}))
		if n, err := r.feed.Check(t.Context()); n != 0 || err != nil || lists != 2 {
			t.Errorf("%d differences, %v, %d lists of two caches", n, err, lists)
		}
	})
}

// TestStoreThatWentBack: after a restore from a backup no watch can resume;
// watchers expire, and the caches hold what the store now has.
func TestStoreThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		source := &faulty{Store: store}
		write(t, store, podA)
		r := startRig(t, store, source, feed.Options{})
		w := watching(t, r.pods, watchcache.WatchOptions{After: r.pods.Current().Revision()})
		drain(t, w)
		<-w.Ready()
		idle := watching(t, r.nodes, watchcache.WatchOptions{After: r.nodes.Current().Revision()})

		// The feed has reached a revision that the store does not have.
		otherHistory := podA
		otherHistory.Node = "another history"
		a, _ := r.pods.Current().Get(podA.Key())
		r.pods.Apply([]watchcache.Change{
			{Key: podA.Key(), Object: objectOf(t, r.pods, otherHistory, a.Revision), Revision: 399},
			{Key: podB.Key(), Object: objectOf(t, r.pods, podB, 400), Revision: 400},
		})
		r.feed.Progress().Publish(500)
		if _, err := r.feed.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		<-w.Ready()
		if _, err := w.Read(make([]watchcache.Event, 1)); !errors.Is(err, watchcache.ErrExpired) {
			t.Errorf("watcher: %v", err)
		}
		if _, err := idle.Read(make([]watchcache.Event, 1)); !errors.Is(err, watchcache.ErrExpired) {
			t.Errorf("watcher of what has not changed since: %v", err)
		}
		now, _ := store.Current(t.Context())
		if s := r.pods.Current(); s.Len() != 1 || s.Revision() != now || r.pods.Stats().Resets != 1 {
			t.Errorf("holds %s at %d, want a at %d", content(s), s.Revision(), now)
		}
		if got, _ := r.pods.Current().Get(podA.Key()); got == nil || got.Attributes.Fields[podtest.FieldNode] != podA.Node {
			t.Errorf("a is %v, of a history that the store does not have", got)
		}
		at := write(t, store, podC)
		synctest.Wait()
		if s := r.pods.Current(); s.Len() != 2 || s.Revision() != at {
			t.Errorf("holds %s at %d after one more write at %d", content(s), s.Revision(), at)
		}
	})
}

func TestRunEndsWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		feed := feed.New(store, []*watchcache.Cache{watchcache.New(podResource(), watchcache.Options{})}, feed.Options{})
		done := make(chan error)
		go func() { done <- feed.Run(t.Context()) }()
		synctest.Wait()
		store.Close()
		if err := <-done; !errors.Is(err, storage.ErrClosed) {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestFeedWatchesOnlyItsPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		r := startRig(t, store, nil, feed.Options{Prefix: "/registry/pods/"})
		writeKey(t, store, "/registry/minions/n", nodeValue("n"))
		write(t, store, podA)
		synctest.Wait()
		if r.pods.Current().Len() != 1 || r.nodes.Current().Len() != 0 {
			t.Errorf("%d pods and %d nodes, want only what is below the prefix", r.pods.Current().Len(), r.nodes.Current().Len())
		}
	})
}

func TestFillConcurrencyIsBounded(t *testing.T) {
	for _, limit := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			source := &faulty{Store: openStore(t)}
			var running, most atomic.Int64
			source.listing.Store(new(func(storage.ListOptions) error {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second) // of the bubble: the others get to where they can
				running.Add(-1)
				return nil
			}))
			var caches []*watchcache.Cache
			for i := range 6 {
				res := podResource()
				res.StorePrefix = fmt.Sprintf("/registry/kind%d/", i)
				caches = append(caches, watchcache.New(res, watchcache.Options{}))
			}
			feed := feed.New(source, caches, feed.Options{FillConcurrency: limit})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- feed.Run(ctx) }()
			for _, c := range caches {
				if err := c.WaitReady(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := most.Load(); got != int64(limit) {
				t.Errorf("%d fills at the same time, want %d", got, limit)
			}
			cancel()
			<-done
		})
	}
}

// TestAddWhileTheFeedEnds adds caches while Run returns.
func TestAddWhileTheFeedEnds(t *testing.T) {
	for range 50 {
		store := openStore(t)
		feed := feed.New(store, nil, feed.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- feed.Run(ctx) }()
		go cancel()
		for range 20 {
			feed.Add(watchcache.New(podResource(), watchcache.Options{}))
		}
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the feed ended: %v", err)
		}
	}
}
