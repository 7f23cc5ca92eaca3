package feed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
)

// A mutant is a store whose streams have one of the faults of watches that the
// robustness tests of etcd have found. The fault happens once, when it is armed.
type mutant struct {
	*faulty
	armed bool
	// opened is called with the first batch of a stream, deliver with every batch;
	// they return what the stream delivers in its place.
	opened  func(m *mutant, after storage.Revision, b storage.Batch) []storage.Batch
	deliver func(m *mutant, b storage.Batch) []storage.Batch
	earlier []storage.Event // all that streams have delivered
}

func (m *mutant) Watch(ctx context.Context, prefix string, after storage.Revision) (storage.Stream, error) {
	stream, err := m.faulty.Watch(ctx, prefix, after)
	return &mutantStream{Stream: stream, mutant: m, after: after, first: true}, err
}

type mutantStream struct {
	storage.Stream
	mutant *mutant
	after  storage.Revision
	first  bool
	queue  []storage.Batch
}

func (s *mutantStream) Next() (storage.Batch, error) {
	m := s.mutant
	if len(s.queue) == 0 {
		b, err := s.Stream.Next()
		if err != nil {
			return b, err
		}
		switch {
		case m.armed && s.first && m.opened != nil && len(b.Events) > 0:
			m.armed, s.queue = false, m.opened(m, s.after, b)
		case m.armed && m.deliver != nil && len(b.Events) > 0:
			m.armed, s.queue = false, m.deliver(m, b)
		default:
			s.queue = []storage.Batch{b}
		}
		s.first = false
		m.earlier = append(m.earlier, b.Events...)
	}
	b := s.queue[0]
	s.queue = s.queue[1:]
	return b, nil
}

// without returns a batch without the events that leave selects.
func without(b storage.Batch, leave func(storage.Event) bool) storage.Batch {
	b.Events = slices.DeleteFunc(slices.Clone(b.Events), leave)
	return b
}

var mutants = []struct {
	name string // with the number of etcd's issue
	// resume makes the fault happen when a stream that broke before a deletion is
	// resumed, after a compaction at the deletion's revision; later says that there
	// is a write after that.
	resume  bool
	later   bool
	opened  func(m *mutant, after storage.Revision, b storage.Batch) []storage.Batch
	deliver func(m *mutant, b storage.Batch) []storage.Batch
}{
	{name: "15220 progress runs ahead of events", deliver: func(_ *mutant, b storage.Batch) []storage.Batch {
		return []storage.Batch{{Revision: b.Revision}, b}
	}},
	{name: "15271 a stream travels back in time", deliver: func(m *mutant, b storage.Batch) []storage.Batch {
		return []storage.Batch{b, {Events: m.earlier[:1], Revision: m.earlier[0].Revision}}
	}},
	{name: "17247 an event comes twice", deliver: func(_ *mutant, b storage.Batch) []storage.Batch {
		b.Events = append(slices.Clone(b.Events), b.Events[len(b.Events)-1])
		return []storage.Batch{b}
	}},
	{name: "17529 events of a slow stream are lost", deliver: func(_ *mutant, b storage.Batch) []storage.Batch {
		return []storage.Batch{{Revision: b.Revision}}
	}},
	{name: "18089 a deletion is lost in a compaction", resume: true, later: true, opened: func(_ *mutant, _ storage.Revision, b storage.Batch) []storage.Batch {
		return []storage.Batch{without(b, func(e storage.Event) bool { return e.Deleted })}
	}},
	{name: "19179 the deletion at the revision of the compaction is lost", resume: true, opened: func(_ *mutant, after storage.Revision, b storage.Batch) []storage.Batch {
		return []storage.Batch{without(b, func(e storage.Event) bool { return e.Deleted && e.Revision == after+1 })}
	}},
	{name: "20221 a stream from a future revision brings old events", resume: true, opened: func(m *mutant, _ storage.Revision, b storage.Batch) []storage.Batch {
		b.Events = append(slices.Clone(m.earlier), b.Events...)
		return []storage.Batch{b}
	}},
}

// TestMutantsOfTheStore: whatever of these a store does, within a second the feed
// has noticed it, the cache is as the store, and a watcher has been shown the same or
// has expired.
func TestMutantsOfTheStore(t *testing.T) {
	for _, tt := range mutants {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				write(t, store, podA)
				source := &mutant{faulty: &faulty{Store: store}, opened: tt.opened, deliver: tt.deliver}
				var logged bytes.Buffer
				r := startRig(t, store, source, feed.Options{Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError}))})
				initial := r.pods.Current()
				w := watching(t, r.pods, watchcache.WatchOptions{Initial: &initial})
				expecting := r.feed.Expecting(store)
				write(t, expecting, podC)
				synctest.Wait()
				seen := shown(map[string]storage.Revision{}, drain(t, w))
				if got := r.feed.Stats(); got.Disorders+got.Lost > 0 {
					t.Fatalf("a store without a fault: %+v", got)
				}

				if tt.resume {
					source.breakWith(storage.ErrUnavailable)
					synctest.Wait()
					source.armed = true
					if err := store.Compact(t.Context(), erase(t, store, "/registry/pods/"+podA.Key())); err != nil { // by another server
						t.Fatal(err)
					}
					if tt.later {
						write(t, store, podB)
					}
					synctest.Wait() // the stream has broken, and is resumed soon
					source.repair()
				} else {
					source.armed = true
					write(t, expecting, podB)
				}
				time.Sleep(time.Second)
				synctest.Wait()

				if got := r.feed.Stats(); source.armed || got.Disorders+got.Lost == 0 || !bytes.Contains(logged.Bytes(), []byte("listing again")) {
					t.Errorf("the fault happened %t and was not noticed: %+v, logged %s", !source.armed, got, &logged)
				}
				if n, err := r.feed.Check(t.Context()); n != 0 || err != nil {
					t.Errorf("%d differences to the store are left, %v", n, err)
				}
				last, _ := store.Current(t.Context())
				s, err := r.pods.NotOlderThan(t.Context(), last)
				if err != nil {
					t.Fatal(err)
				}
				events, err := readAll(w)
				if err != nil && !errors.Is(err, watchcache.ErrExpired) {
					t.Fatal(err)
				}
				if got := shown(seen, events); err == nil && fmt.Sprint(got) != fmt.Sprint(revisions(s)) {
					t.Errorf("the watcher has been shown %v, the cache holds %v", got, revisions(s))
				}
				t.Logf("disorders %d, lost %d, the watcher expired %t", r.feed.Stats().Disorders, r.feed.Stats().Lost, err != nil)
			})
		})
	}
}

// readAll reads all events that there are, and returns the error that ends the watch.
func readAll(w *watchcache.Watcher) (all []watchcache.Event, err error) {
	var buf [3]watchcache.Event
	for {
		n, err := w.Read(buf[:])
		if n == 0 || err != nil {
			return all, err
		}
		all = append(all, buf[:n]...)
	}
}

// shown applies events to the revisions that a client holds by key.
func shown(held map[string]storage.Revision, events []watchcache.Event) map[string]storage.Revision {
	for _, e := range events {
		held[e.Object.Key] = e.Object.Revision
		if e.Type == watchcache.Deleted {
			delete(held, e.Object.Key)
		}
	}
	return held
}
