package tombstone

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/storagetest"
)

// TestBatchesAreBounded: each of the limits bounds the batches in the store, except
// for the last batch, and none is deleted before a limit is reached.
func TestBatchesAreBounded(t *testing.T) {
	batchOf := func(saved time.Time, from storage.Revision, sizes ...int) savedBatch {
		b := savedBatch{batch: batch{from: from, through: from + 10, saved: saved}, key: fmt.Sprintf("%s%020d", Prefix, from)}
		for i, size := range sizes {
			r := record{key: "k", revision: from + storage.Revision(i) + 1, metadata: make([]byte, size-1)}
			b.batch.records, b.size = append(b.batch.records, r), b.size+size
		}
		return b
	}
	for name, test := range map[string]struct {
		limits Limits
		kept   int
	}{
		"all within":         {Limits{Count: 6, Bytes: 600, Age: 3 * time.Minute}, 3},
		"one too many":       {Limits{Count: 5, Bytes: 600, Age: 3 * time.Minute}, 2},
		"one byte too many":  {Limits{Count: 6, Bytes: 599, Age: 3 * time.Minute}, 2},
		"two batches":        {Limits{Count: 6, Bytes: 400, Age: 3 * time.Minute}, 2},
		"one of them":        {Limits{Count: 6, Bytes: 399, Age: 3 * time.Minute}, 1},
		"the last one stays": {Limits{Count: 1, Bytes: 1, Age: time.Nanosecond}, 1},
		"too old":            {Limits{Count: 6, Bytes: 600, Age: 3*time.Minute - 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := storagetest.OpenMemory(t)
				start := time.Now()
				b := &batches{now: time.Now}
				for i := range 3 {
					one := batchOf(start.Add(time.Duration(i)*time.Minute), storage.Revision(1+10*i), 100, 100)
					var err error
					if one.modified, err = store.Create(t.Context(), one.key, nil, 0); err != nil {
						t.Fatal(err)
					}
					b.list = append(b.list, one)
				}
				time.Sleep(3 * time.Minute)
				if err := b.prune(t.Context(), store, test.limits); err != nil {
					t.Fatal(err)
				}
				page, err := store.List(t.Context(), Prefix, storage.ListOptions{})
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
