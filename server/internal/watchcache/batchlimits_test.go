package watchcache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// TestBatchesAreBounded: what the store remembers is bounded by each of the limits,
// the last batch excepted, and not before one is reached.
func TestBatchesAreBounded(t *testing.T) {
	batch := func(saved time.Time, from storage.Revision, sizes ...int) savedTombstones {
		b := savedTombstones{tombstones: tombstones{from: from, through: from + 10, saved: saved}, key: fmt.Sprintf("%s%020d", TombstonePrefix, from)}
		for i, size := range sizes {
			x := tombstone{key: "k", revision: from + storage.Revision(i) + 1, residue: make([]byte, size-1)}
			b.list, b.size = append(b.list, x), b.size+size
		}
		return b
	}
	for name, test := range map[string]struct {
		opts FeedOptions
		kept int
	}{
		"all within":         {FeedOptions{Tombstones: 6, TombstoneBytes: 600, TombstoneAge: 3 * time.Minute}, 3},
		"one too many":       {FeedOptions{Tombstones: 5, TombstoneBytes: 600, TombstoneAge: 3 * time.Minute}, 2},
		"one byte too many":  {FeedOptions{Tombstones: 6, TombstoneBytes: 599, TombstoneAge: 3 * time.Minute}, 2},
		"two batches":        {FeedOptions{Tombstones: 6, TombstoneBytes: 400, TombstoneAge: 3 * time.Minute}, 2},
		"one of them":        {FeedOptions{Tombstones: 6, TombstoneBytes: 399, TombstoneAge: 3 * time.Minute}, 1},
		"the last one stays": {FeedOptions{Tombstones: 1, TombstoneBytes: 1, TombstoneAge: time.Nanosecond}, 1},
		"too old":            {FeedOptions{Tombstones: 6, TombstoneBytes: 600, TombstoneAge: 3*time.Minute - 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				start := time.Now()
				b := &batches{now: time.Now}
				for i := range 3 {
					one := batch(start.Add(time.Duration(i)*time.Minute), storage.Revision(1+10*i), 100, 100)
					var err error
					if one.modified, err = store.Create(t.Context(), one.key, nil, 0); err != nil {
						t.Fatal(err)
					}
					b.list = append(b.list, one)
				}
				time.Sleep(3 * time.Minute)
				opts := test.opts.withDefaults()
				if err := b.forget(t.Context(), store, &opts); err != nil {
					t.Fatal(err)
				}
				page, err := store.List(t.Context(), TombstonePrefix, storage.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := len(page.Items); got != test.kept || page.Items[got-1].Key != b.list[2].key {
					t.Errorf("%d batches are kept, want the last %d", got, test.kept)
				}
			})
		})
	}
}
