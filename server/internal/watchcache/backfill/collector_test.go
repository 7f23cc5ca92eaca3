package backfill

import (
	"fmt"
	"testing"
	"time"

	"github.com/levelwire/levelwire/server/internal/watchcache/podtest"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

func collector(maxEvents int, through storage.Revision) *Collector {
	res := podtest.PodResource()
	return NewCollector(Options{
		Resource: res, Decode: state.Decoder(res), Through: through, MaxEvents: maxEvents, MaxBytes: 1 << 20, MaxTombstones: 50_000, Now: time.Now,
	})
}

// TestCollectorHoldsOnlyWhatItKeeps of a history of many keys.
func TestCollectorHoldsOnlyWhatItKeeps(t *testing.T) {
	c := collector(10, 1<<30)
	for i := range 1000 {
		e := storage.Event{Key: fmt.Sprintf("/registry/pods/one/%d", i%300), Revision: storage.Revision(11 + i), Value: podtest.PodA.Value()}
		if i%7 == 0 {
			e.Value, e.Deleted = nil, true
		}
		c.Add(&e)
	}
	if len(c.kept) != 10 || len(c.latest) > 10 {
		t.Errorf("%d changes are kept, and the latest of %d keys", len(c.kept), len(c.latest))
	}
}

// TestSharedRevisionsAreCollected although there is no room for their changes.
func TestSharedRevisionsAreCollected(t *testing.T) {
	c := collector(1, 10)
	a, b, d := podtest.PodA, podtest.PodB, podtest.PodC
	for _, n := range []struct {
		p        podtest.Pod
		revision storage.Revision
	}{{a, 5}, {b, 5}, {a, 6}, {d, 7}, {d, 8}} {
		c.Add(&storage.Event{Key: "/registry/pods/" + n.p.Key(), Value: n.p.Value(), Revision: n.revision})
	}
	if got := fmt.Sprint(c.shared); got != "[5]" {
		t.Fatalf("%s are shared, want [5]", got)
	}
}
