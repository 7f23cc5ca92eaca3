package memory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestOptionsBoundHistory(t *testing.T) {
	const writes = 5000
	for _, test := range []struct {
		name      string
		opts      memory.Options
		forgotten bool
	}{
		{"defaults keep it all", memory.Options{}, false},
		{"events", memory.Options{HistoryEvents: 1000}, true},
		{"bytes", memory.Options{HistoryBytes: 100 << 10}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := open(t, test.opts)
			slow, err := store.Watch(t.Context(), "/", 1)
			if err != nil {
				t.Fatal(err)
			}
			value := []byte(strings.Repeat("x", 100))
			var first, last storage.Revision
			for i := range writes {
				last, err = store.Create(t.Context(), fmt.Sprintf("/%04d", i), value, 0)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first = last
				}
			}
			_, readErr := store.Get(t.Context(), "/0000", first)
			_, nextErr := slow.Next()
			_, watchErr := store.Watch(t.Context(), "/", first)
			for _, err := range []error{readErr, nextErr, watchErr} {
				if errors.Is(err, storage.ErrCompacted) != test.forgotten {
					t.Errorf("history from the first write on: %v, want it forgotten: %v", err, test.forgotten)
				}
			}
			page, err := store.List(t.Context(), "/", storage.ListOptions{At: last - 100})
			if err != nil || len(page.Items) != writes-100 {
				t.Errorf("a hundred writes ago: %d items, %v", len(page.Items), err)
			}
		})
	}
}

func TestOptionsValidate(t *testing.T) {
	for _, opts := range []memory.Options{{HistoryEvents: -1}, {HistoryBytes: -1}} {
		if _, err := memory.Open(opts); err == nil {
			t.Errorf("Open(%+v) succeeded", opts)
		}
	}
}

// TestEveryRevisionIsReadable crosses checkpoints and segments, and reads each
// revision on both sides of a compaction.
func TestEveryRevisionIsReadable(t *testing.T) {
	store := open(t, memory.Options{})
	const keys, writes = 7, 3000
	revs := make([]storage.Revision, keys)
	states := [][]storage.Revision{}
	var first storage.Revision
	for i := range writes {
		k := i % keys
		key := fmt.Sprintf("/%d", k)
		var rev storage.Revision
		var err error
		switch {
		case revs[k] == 0:
			rev, err = store.Create(t.Context(), key, nil, 0)
			revs[k] = rev
		case i%11 == 0:
			rev, err = store.Delete(t.Context(), key, revs[k])
			revs[k] = 0
		default:
			rev, err = store.Update(t.Context(), key, nil, revs[k], 0)
			revs[k] = rev
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = rev
		}
		states = append(states, append([]storage.Revision(nil), revs...))
	}
	check := func(oldest storage.Revision) {
		t.Helper()
		for i, want := range states {
			at := first + storage.Revision(i)
			page, err := store.List(t.Context(), "/", storage.ListOptions{At: at})
			if at < oldest {
				if !errors.Is(err, storage.ErrCompacted) {
					t.Fatalf("at %d, compacted to %d: %v", at, oldest, err)
				}
				continue
			}
			got := make([]storage.Revision, keys)
			for _, kv := range page.Items {
				got[kv.Key[1]-'0'] = kv.Modified
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("at %d: %v, %v; want %v", at, got, err, want)
			}
		}
	}
	check(0)
	for _, at := range []storage.Revision{first + 5, first + 1023, first + 1024, first + 2500} {
		if err := store.Compact(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		check(at)
	}
}

// TestExpiryIsExact runs on synthetic time: a key is deleted at its deadline, not
// before, at a revision of its own, and a new ttl can move the deadline both ways.
func TestExpiryIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := open(t, memory.Options{})
		ctx := t.Context()
		write := func(rev storage.Revision, err error) storage.Revision {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return rev
		}
		write(store.Create(ctx, "/long", nil, time.Hour))
		write(store.Create(ctx, "/a", nil, time.Minute))
		write(store.Create(ctx, "/b", nil, time.Minute))
		sooner := write(store.Create(ctx, "/sooner", nil, time.Hour))
		write(store.Update(ctx, "/sooner", nil, sooner, time.Second))
		removed := write(store.Create(ctx, "/deleted", nil, time.Minute))
		last := write(store.Delete(ctx, "/deleted", removed))

		expect := func(keys int, rev storage.Revision) {
			t.Helper()
			synctest.Wait()
			page, err := store.List(ctx, "", storage.ListOptions{})
			if err != nil || len(page.Items) != keys || page.Revision != rev {
				t.Fatalf("%d keys at %d, %v; want %d at %d", len(page.Items), page.Revision, err, keys, rev)
			}
		}
		time.Sleep(time.Second - 1)
		expect(4, last)
		time.Sleep(time.Nanosecond)
		expect(3, last+1)
		time.Sleep(59*time.Second - 1)
		expect(3, last+1)
		time.Sleep(time.Nanosecond)
		expect(1, last+3)
		time.Sleep(time.Hour)
		expect(0, last+4)
	})
}
