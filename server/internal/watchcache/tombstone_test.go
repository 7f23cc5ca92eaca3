package watchcache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

func someTombstones() tombstones {
	return tombstones{from: 3, through: 90, saved: time.Unix(1_700_000_000, 0), list: []tombstone{
		{key: "/registry/pods/one/a", revision: 10, written: 9, created: 4, residue: []byte(`{"metadata":{"resourceVersion":"9","name":"a"}}`)},
		{key: "/registry/pods/one/b", revision: 10, written: 7, residue: []byte("anything")},
		{key: "/registry/minions/n", revision: 90, written: 1, created: 1, residue: []byte{0}},
	}}
}

func TestTombstonesRoundTrip(t *testing.T) {
	for _, want := range []tombstones{someTombstones(), {from: 5, through: 5, saved: time.Unix(0, 0)}} {
		data, err := want.encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeTombstones(data); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		for cut := range data {
			if _, err := decodeTombstones(data[:cut]); !errors.Is(err, errTombstones) {
				t.Errorf("%d bytes of %d were accepted: %v", cut, len(data), err)
			}
		}
	}
}

func FuzzTombstones(f *testing.F) {
	some := someTombstones()
	data, err := some.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{tombstoneForm})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeTombstones(data)
		if err != nil {
			return
		}
		last := got.from
		for _, x := range got.list {
			if x.revision < last || x.revision > got.through {
				t.Fatalf("a tombstone at %d follows %d in (%d, %d]", x.revision, last, got.from, got.through)
			}
			last = x.revision
		}
		again, err := got.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeTombstones(again); err != nil || !reflect.DeepEqual(back, got) {
			t.Fatalf("%+v became %+v, %v", got, back, err)
		}
	})
}

// TestTombstonesSurvive compacts, starts over, and comes back from before all of
// that.
func TestTombstonesSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, Options{})
		write(t, store, podA)
		old := write(t, store, podB)
		var gone []storage.Revision
		for range 3 {
			gone = append(gone, erase(t, store, "/registry/pods/"+podA.key()))
			write(t, store, podA)
			compactAfter(t, store, feeds[0], now(t, store))
		}
		settled := now(t, store)
		for range 5 {
			compactAfter(t, store, feeds[0], now(t, store))
		}
		if now(t, store) != settled {
			t.Error("compacting an idle store makes it write")
		}
		later, _ := startCaches(t, store, Options{})
		w := watching(t, later[0], WatchOptions{After: old})
		expect(t, drain(t, w), fmt.Sprintf("DELETED one/a@%d", gone[0]), fmt.Sprintf("ADDED one/a@%d", gone[2]+1))
		if got := later[0].Stats().Tombstones; got != 3 {
			t.Errorf("%d tombstones, want 3", got)
		}

		// Somebody else compacts without writing down what is deleted.
		erase(t, store, "/registry/pods/"+podA.key())
		write(t, store, podB)
		if err := store.Compact(t.Context(), now(t, store)); err != nil {
			t.Fatal(err)
		}
		last, _ := startCaches(t, store, Options{})
		if _, err := last[0].Watch(WatchOptions{After: old}); !errors.Is(err, ErrExpired) {
			t.Errorf("a watch from before a deletion that nobody knows of: %v", err)
		}
		if got := last[0].Stats().ExpiredBy.Old; got != 1 {
			t.Errorf("%d watches counted as too old", got)
		}
	})
}

// fullStore takes no new keys.
type fullStore struct{ *memory.Store }

func (fullStore) Create(context.Context, string, []byte, time.Duration) (storage.Revision, error) {
	return 0, fmt.Errorf("%w: quota", storage.ErrFull)
}

// TestFullStoreIsCompacted: room is made only by forgetting.
func TestFullStoreIsCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		_, feeds := startCaches(t, store, Options{})
		write(t, store, podA)
		erase(t, store, "/registry/pods/"+podA.key())
		worth, err := feeds[0].BeforeCompaction(t.Context(), fullStore{store}, now(t, store))
		if !worth || err != nil {
			t.Errorf("worth compacting: %v, %v", worth, err)
		}
	})
}

// TestTombstonesAreBounded deletes more than is to be remembered.
func TestTombstonesAreBounded(t *testing.T) {
	for name, opts := range map[string]Options{
		"count": {HistoryEvents: 1, Tombstones: 10},
		"bytes": {HistoryEvents: 1, TombstoneBytes: 10 * (graveSize + int64(len(podA.value())) + 40)},
		"age":   {HistoryEvents: 1, TombstoneAge: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				caches, _ := startCaches(t, store, opts)
				c := caches[0]
				var deleted []storage.Revision
				for range 40 {
					write(t, store, podA)
					deleted = append(deleted, erase(t, store, "/registry/pods/"+podA.key()))
					time.Sleep(time.Second)
				}
				write(t, store, podB)
				synctest.Wait()
				if got := c.Stats().Tombstones; got < 8 || got > 12 {
					t.Errorf("%d tombstones, want about 10", got)
				}
				watching(t, c, WatchOptions{After: deleted[32]})
				if _, err := c.Watch(WatchOptions{After: deleted[25]}); !errors.Is(err, ErrExpired) {
					t.Errorf("a watch from before what is remembered: %v", err)
				}
				time.Sleep(time.Hour)
				_, err := c.Watch(WatchOptions{After: deleted[32]})
				if errors.Is(err, ErrExpired) != (name == "age") {
					t.Errorf("an hour later: %v", err)
				}
			})
		})
	}
}
