package storage_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// follow reads a store's changes, as a feed does: a stream of new ones, and then a
// replay of those before it.
func (r *fixture) countStream(meter *storage.Meter) {
	r.Helper()
	source := meter.Counting(r.Store)
	now, err := source.Current(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	stream, err := source.Watch(r.Context(), "/", now)
	if err != nil {
		r.Fatal(err)
	}
	go func() {
		for {
			if _, err := stream.Next(); err != nil {
				return
			}
		}
	}()
	r.replay(source, now)
}

func (r *fixture) replay(source storage.Source, through storage.Revision) {
	r.Helper()
	oldest, err := source.Oldest(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	if err := source.Replay(r.Context(), "/", oldest, through, func([]storage.Event) error { return nil }); err != nil {
		r.Fatal(err)
	}
}

// writeBytes writes a key and a value that have so many bytes together.
func (r *fixture) writeBytes(n int) storage.Revision {
	r.Helper()
	r.writes++
	key := fmt.Sprintf("/%07d", r.writes)
	rev, err := r.Create(r.Context(), key, make([]byte, n-len(key)), 0)
	if err != nil {
		r.Fatal(err)
	}
	return rev
}

// kept returns how many of the revisions can be read.
func (r *fixture) kept(revs []storage.Revision) int {
	r.Helper()
	oldest, err := r.Oldest(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	n := 0
	for _, rev := range revs {
		if rev >= oldest {
			n++
		}
	}
	return n
}

const kilo = 1000

// TestCompactLoopBoundsBytes expects history that is neither old nor has many
// revisions to be compacted as soon as it is too large, and not further.
func TestCompactLoopBoundsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counter{Store: newMemory(t)}
		meter := storage.NewMeter("/", 100*kilo)
		r := newFixture(t, store, store.Store, storage.CompactionOptions{Interval: time.Hour, Retention: time.Hour, Revisions: 10_000, Meter: meter})
		r.countStream(meter)
		var revs []storage.Revision
		for i := range 1000 {
			revs = append(revs, r.writeBytes(kilo))
			synctest.Wait()
			// A tenth and one mark may be too many, and one mark too few.
			if got := r.kept(revs); i >= 112 && (got < 98 || got > 112) || i < 100 && got != i+1 {
				t.Fatalf("%d revisions of 1 kB are kept after %d", got, i+1)
			}
		}
		if got := store.calls.Load(); got < 50 || got > 100 {
			t.Errorf("%d compactions, one for each 10 to 20 kB were to be expected", got)
		}
		// One change may be larger than all that is to be kept.
		large := r.writeBytes(500 * kilo)
		synctest.Wait()
		if got := r.kept(append(revs, large)); got != 1 {
			t.Errorf("%d revisions are kept after one that is too large", got)
		}
		r.end(context.Canceled)
	})
}

// TestMeterCountsThePast expects a server that starts on a large history to compact
// what exceeds the limit, and to count nothing twice.
func TestMeterCountsThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counter{Store: newMemory(t)}
		meter := storage.NewMeter("/", 100*kilo)
		r := newFixture(t, store, store.Store, storage.CompactionOptions{Interval: time.Hour, Retention: time.Hour, Meter: meter})
		var revs []storage.Revision
		for range 90 {
			revs = append(revs, r.writeBytes(kilo))
		}
		r.countStream(meter)
		// Other caches ask for their past later, and a stream that was cut begins
		// again where it was.
		source := meter.Counting(r.Store)
		r.replay(source, revs[89])
		stream, err := source.Watch(t.Context(), "/", revs[79])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Next(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if store.calls.Load() != 0 {
			t.Fatalf("compacted at 90 of 100 kB: %d revisions are left", r.kept(revs))
		}
		for range 25 {
			revs = append(revs, r.writeBytes(kilo))
		}
		synctest.Wait()
		if got := r.kept(revs); store.calls.Load() != 1 || got < 98 || got > 112 {
			t.Errorf("%d compactions, %d of 115 revisions are kept", store.calls.Load(), got)
		}
		r.end(context.Canceled)
	})
}

// TestMeterOfAnAlreadyLargeHistory expects the excess to be reported after the
// replay.
func TestMeterOfAnAlreadyLargeHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t)
		meter := storage.NewMeter("/", 100*kilo)
		r := newFixture(t, store, store, storage.CompactionOptions{Interval: time.Hour, Retention: time.Hour, Meter: meter})
		var revs []storage.Revision
		for range 500 {
			revs = append(revs, r.writeBytes(kilo))
		}
		r.countStream(meter)
		synctest.Wait()
		if got := r.kept(revs); got < 98 || got > 101 {
			t.Errorf("%d revisions are kept", got)
		}
		r.end(context.Canceled)
	})
}

// TestMeterTriesAgain expects a failed compaction to be tried again when more is
// written, but not with every change.
func TestMeterTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := &counter{Store: newMemory(t)}
		store.failing.Store(true)
		meter := storage.NewMeter("/", 640*kilo)
		r := newFixture(t, store, store.Store, storage.CompactionOptions{
			Interval: time.Hour, Retention: time.Hour, Meter: meter, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		r.countStream(meter)
		var revs []storage.Revision
		write := func(n int) {
			for range n {
				revs = append(revs, r.writeBytes(kilo))
				synctest.Wait()
			}
		}
		write(804)
		if got := store.failures.Load(); got < 5 || got > 15 {
			t.Errorf("%d attempts in 100 kB", got)
		}
		store.failing.Store(false)
		write(20)
		if got := r.kept(revs); got > 704 {
			t.Errorf("%d revisions are kept", got)
		}
		r.end(context.Canceled)
	})
}

// TestMetersOfSeveralServers expects the lower limit of two servers on one store to
// hold, and neither to log an error because of the other.
func TestMetersOfSeveralServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := newMemory(t)
		var rigs []*fixture
		for _, limit := range []int64{100 * kilo, 100 * kilo, 300 * kilo} {
			meter := storage.NewMeter("/", limit)
			r := newFixture(t, store, store, storage.CompactionOptions{
				Interval: time.Minute, Retention: time.Hour, Meter: meter, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			r.countStream(meter)
			rigs = append(rigs, r)
		}
		var revs []storage.Revision
		for range 1000 {
			revs = append(revs, rigs[0].writeBytes(kilo))
			rigs[0].pass(time.Second)
		}
		if got := rigs[0].kept(revs); got < 98 || got > 112 {
			t.Errorf("%d revisions are kept", got)
		}
		if log.Len() > 0 {
			t.Errorf("the loops complain of each other: %s", &log)
		}
		for _, r := range rigs {
			r.end(context.Canceled)
		}
	})
}
