package tombstone_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// overtakenStore calls meanwhile before the first write.
type overtakenStore struct {
	*memory.Store
	meanwhile func()
}

func (o *overtakenStore) overtake() {
	if f := o.meanwhile; f != nil {
		o.meanwhile = nil
		f()
	}
}

func (o *overtakenStore) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	o.overtake()
	return o.Store.Create(ctx, key, value, ttl)
}

func (o *overtakenStore) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	o.overtake()
	return o.Store.Update(ctx, key, value, expect, ttl)
}

// TestTwoServersCompactAtOnce: the server that writes the deletions second finds
// them saved, or adds to them, and none is saved twice or missing.
func TestTwoServersCompactAtOnce(t *testing.T) {
	for name, ahead := range map[string]storage.Revision{"to the same revision": 0, "further": 3, "not as far": -3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				_, feeds := startCaches(t, store, watchcache.Options{})
				_, others := startCaches(t, store, watchcache.Options{})
				for round := range 3 { // the first makes a batch, later ones add to it
					createPods(t, store, 10)
					gone := deletePods(t, store, 10)
					at := gone[6]
					raced := &overtakenStore{Store: store}
					raced.meanwhile = func() {
						if _, err := others[0].BeforeCompaction(t.Context(), store, at+ahead); err != nil {
							t.Errorf("the other: %v", err)
						}
					}
					if worth, err := feeds[0].BeforeCompaction(t.Context(), raced, at); !worth || err != nil {
						t.Errorf("worth %v, %v", worth, err)
					}
					seen := map[string]int{}
					last := storage.Revision(0)
					list, _ := saved(t, store)
					for _, batch := range list {
						if last != 0 && batch.From != last {
							t.Errorf("a batch begins at %d, the one before ends at %d", batch.From, last)
						}
						last = batch.Through
						for _, record := range batch.Records {
							seen[record]++
						}
					}
					if want := at + max(ahead, 0); last != want {
						t.Errorf("round %d: saved up to %d, want %d", round, last, want)
					}
					for i, revision := range gone {
						want := 0
						if revision <= last {
							want = 1
						}
						if got := seen[fmt.Sprintf("/registry/pods/many/%d@%d", i, revision)]; got != want {
							t.Errorf("round %d: deletion %d is there %d times, want %d", round, i, got, want)
						}
					}
				}
			})
		})
	}
}
