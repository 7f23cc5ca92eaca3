package relay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// changed is the event of a config map.
func changed(kind, name string, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%[2]q,"namespace":"default","uid":%[2]q,"resourceVersion":"%[3]d"}}}`+"\n", kind, name, version)
}

// TestChangesOfOneVersion: etcd deletes all Events of an expired lease in one revision, and
// transactions of other programs change several objects in one. kube-apiserver sends each change
// with that version, and the relay hands on all of them: to watches that are there, and to those
// that began between two of them.
func TestChangesOfOneVersion(t *testing.T) {
	upstream := &hanging{version: 7, events: make(chan string)}
	s, _ := sourceOf(t, upstream)
	bring := func(events ...string) {
		for _, e := range events {
			upstream.events <- e
		}
	}
	watch := func(opts watchcache.WatchOptions) *watchcache.Watcher {
		t.Helper()
		w, err := s.cache.Watch(opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		return w
	}
	// expect reads until there are as many events as are wanted.
	expect := func(w *watchcache.Watcher, want ...string) {
		t.Helper()
		var got []string
		for buf := make([]watchcache.Event, 10); len(got) < len(want); {
			n, err := w.Read(buf)
			if err != nil {
				t.Fatalf("%v after %q, want %q", err, got, want)
			}
			for _, e := range buf[:n] {
				got = append(got, fmt.Sprint(e.Type, " ", e.Object.Attributes.Name, " ", e.Revision))
			}
			if n > 0 {
				continue
			}
			select {
			case <-w.Ready():
			case <-s.broken:
				t.Fatalf("the cache was broken up after %q, want %q", got, want)
			case <-t.Context().Done():
				t.Fatalf("%q, want %q", got, want)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}

	before := watch(watchcache.WatchOptions{After: 7})
	bring(changed("ADDED", "a", 10), changed("ADDED", "b", 11), changed("ADDED", "c", 12))
	expect(before, "ADDED a 10", "ADDED b 11", "ADDED c 12")

	bring(changed("DELETED", "a", 20))
	expect(before, "DELETED a 20")
	resumed := watch(watchcache.WatchOptions{After: 20})
	snapshot := s.cache.Current()
	listed := watch(watchcache.WatchOptions{Initial: &snapshot})
	bring(changed("DELETED", "b", 20), changed("ADDED", "d", 20))
	expect(before, "DELETED b 20", "ADDED d 20")
	expect(resumed, "DELETED b 20", "ADDED d 20")
	expect(listed, "ADDED b 11", "ADDED c 12", "DELETED b 20", "ADDED d 20")
	expect(watch(watchcache.WatchOptions{Initial: &snapshot}), "ADDED b 11", "ADDED c 12", "DELETED b 20", "ADDED d 20")
	expect(watch(watchcache.WatchOptions{After: 20}), "DELETED a 20", "DELETED b 20", "ADDED d 20")

	bring(changed("ADDED", "d", 20), changed("MODIFIED", "c", 21)) // an upstream repeats what the relay may lack
	for _, w := range []*watchcache.Watcher{before, resumed, listed} {
		expect(w, "MODIFIED c 21")
	}
	if now := s.cache.Current(); now.Len() != 2 || now.Revision() != storage.Revision(21) {
		t.Errorf("%d objects at %d, want 2 at 21", now.Len(), now.Revision())
	}

	// A Levelwire server sends the deletions of version 30 but for the last one at 29, where it was.
	bring(bookmark(29, ""))
	if err := s.follows.Wait(t.Context(), 29); err != nil {
		t.Fatal(err)
	}
	snapshot = s.cache.Current()
	listed = watch(watchcache.WatchOptions{Initial: &snapshot})
	bring(changed("DELETED", "c", 29), changed("DELETED", "d", 30))
	expect(before, "DELETED c 29", "DELETED d 30")
	expect(listed, "ADDED c 21", "ADDED d 20", "DELETED c 29", "DELETED d 30")
	expect(watch(watchcache.WatchOptions{After: 29}), "DELETED c 29", "DELETED d 30")
	expect(watch(watchcache.WatchOptions{After: 30}))

	// The upstream says by a second watch that nothing is left of the changes up to 40, which the
	// stream brings.
	if !s.advance(unchangedSince{epoch: s.epoch, state: s.cache.StateRevision()}, 40) {
		t.Fatal("the version is not taken")
	}
	bring(changed("ADDED", "e", 35), changed("DELETED", "e", 38), changed("ADDED", "f", 41))
	expect(before, "ADDED f 41")
}
