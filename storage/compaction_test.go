package storage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// fixture is a store with a compaction loop on synthetic time.
type fixture struct {
	*testing.T
	*memory.Store
	stop   context.CancelFunc
	done   chan error
	writes int
}

func newFixture(t *testing.T, store storage.Compactable, memoryStore *memory.Store, opts storage.CompactionOptions) *fixture {
	ctx, cancel := context.WithCancel(t.Context())
	r := &fixture{T: t, Store: memoryStore, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- storage.CompactLoop(ctx, store, opts) }()
	synctest.Wait()
	return r
}

func newMemory(t *testing.T) *memory.Store {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func (r *fixture) write() storage.Revision {
	r.Helper()
	r.writes++
	rev, err := r.Create(r.Context(), fmt.Sprintf("/%d", r.writes), nil, 0)
	if err != nil {
		r.Fatal(err)
	}
	return rev
}

// pass advances time and waits until the loop is idle.
func (r *fixture) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *fixture) readable(rev storage.Revision, want bool) {
	r.Helper()
	_, err := r.List(r.Context(), "", storage.ListOptions{At: rev})
	if want && err != nil || !want && !errors.Is(err, storage.ErrCompacted) {
		r.Errorf("a read at %d: %v, want it readable: %v", rev, err, want)
	}
}

func (r *fixture) end(want error) {
	r.Helper()
	r.stop()
	if err := <-r.done; !errors.Is(err, want) {
		r.Errorf("the loop ended with %v, want %v", err, want)
	}
}

func TestCompactLoopKeepsTheRetention(t *testing.T) {
	for _, test := range []struct {
		interval, retention time.Duration
	}{
		{0, 0},
		{time.Minute, time.Hour},
		{10 * time.Second, 10 * time.Second},
		{time.Minute, time.Second},
	} {
		t.Run(fmt.Sprint(test.interval, test.retention), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := storage.CompactionOptions{Interval: test.interval, Retention: test.retention}
				store := newMemory(t)
				r := newFixture(t, store, store, opts)
				opts = opts.EnsureDefaults()
				r.pass(opts.Interval / 2)
				replaced := r.write()
				next := r.write()
				r.pass(opts.Retention)
				r.readable(replaced, true)
				r.pass(2*opts.Interval + opts.Retention)
				r.readable(replaced, false)
				r.readable(next, true)
				r.end(context.Canceled)
			})
		})
	}
}

// TestCompactLoopKeepsNoMoreThanAnInterval beyond the retention, whenever a revision was replaced. The retention
// is not quite an interval: ticks are not exact.
func TestCompactLoopKeepsNoMoreThanAnInterval(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 2*time.Minute + time.Second, 5*time.Minute - time.Second} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMemory(t)
				opts := storage.CompactionOptions{Interval: 5 * time.Minute, Retention: 5*time.Minute + time.Second}
				r := newFixture(t, store, store, opts)
				r.pass(after)
				replaced := r.write()
				r.write()
				r.pass(opts.Retention)
				r.readable(replaced, true)
				r.pass(opts.Interval + 11*time.Second)
				r.readable(replaced, false)
				r.end(context.Canceled)
			})
		})
	}
}

// counter counts compactions and fails them on demand.
type counter struct {
	*memory.Store
	calls, failures atomic.Int64
	failing         atomic.Bool
}

func (c *counter) Compact(ctx context.Context, at storage.Revision) error {
	c.calls.Add(1)
	if c.failing.Load() {
		c.failures.Add(1)
		return storage.ErrUnavailable
	}
	return c.Store.Compact(ctx, at)
}

func TestCompactLoopLeavesAnIdleStoreAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counter{Store: newMemory(t)}
		r := newFixture(t, store, store.Store, storage.CompactionOptions{})
		r.write()
		r.pass(time.Hour)
		settled := store.calls.Load()
		if settled == 0 || settled > 2 {
			t.Errorf("%d compactions in an hour with one write", settled)
		}
		r.pass(24 * time.Hour)
		if store.calls.Load() != settled {
			t.Errorf("%d compactions in a day without writes", store.calls.Load()-settled)
		}
		r.end(context.Canceled)
	})
}

func TestCompactLoopTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := &counter{Store: newMemory(t)}
		store.failing.Store(true)
		r := newFixture(t, store, store.Store, storage.CompactionOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		old := r.write()
		r.write()
		r.pass(10 * time.Minute)
		if store.failures.Load() < 2 || !strings.Contains(log.String(), storage.ErrUnavailable.Error()) {
			t.Errorf("%d attempts failed, log %q", store.failures.Load(), &log)
		}
		r.readable(old, true)
		store.failing.Store(false)
		r.pass(time.Minute)
		r.readable(old, false)
		r.end(context.Canceled)
	})
}

func TestCompactLoopKeepsRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counter{Store: newMemory(t)}
		r := newFixture(t, store, store.Store, storage.CompactionOptions{Revisions: 100})
		var revs []storage.Revision
		for range 50 {
			for range 10 {
				revs = append(revs, r.write())
			}
			r.pass(time.Hour)
			if n := len(revs); n > 100 {
				r.readable(revs[n-101], true)
			}
		}
		r.readable(revs[len(revs)-130], false)
		settled := store.calls.Load()
		if settled < 5 || settled > 50 {
			t.Errorf("%d compactions", settled)
		}
		for range 10 { // each by a compaction, say
			r.write()
			r.pass(time.Hour)
		}
		if got := store.calls.Load() - settled; got > 1 {
			t.Errorf("%d compactions because of ten revisions", got)
		}
		// What is young is kept however much it is.
		for range 500 {
			revs = append(revs, r.write())
		}
		r.pass(time.Minute)
		r.readable(revs[len(revs)-500], true)
		r.pass(time.Hour)
		r.readable(revs[len(revs)-500], false)
		r.end(context.Canceled)
	})
}

// TestCompactLoopAsksBefore expects Before to be called before each compaction, and
// a compaction to be skipped when it returns false.
func TestCompactLoopAsksBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var asked []storage.Revision
		worth, failure := true, error(nil)
		store := &counter{Store: newMemory(t)}
		r := newFixture(t, store, store.Store, storage.CompactionOptions{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Before: func(_ context.Context, at storage.Revision) (bool, error) {
				asked = append(asked, at)
				if oldest, err := store.Oldest(t.Context()); err != nil || oldest > at {
					t.Errorf("asked about %d when %d is the oldest revision, %v", at, oldest, err)
				}
				return worth, failure
			},
		})
		for _, round := range []struct {
			worth     bool
			failure   error
			compacted bool
		}{
			{true, nil, true}, {false, nil, false}, {true, storage.ErrUnavailable, false}, {true, nil, true},
		} {
			worth, failure = round.worth, round.failure
			asked = nil
			old := r.write()
			at := r.write()
			r.pass(10 * time.Minute)
			if n := len(asked); n == 0 || asked[n-1] != at || round.failure != nil && n < 2 {
				t.Errorf("%+v: asked about %v, want %d in the end", round, asked, at)
			}
			r.readable(old, !round.compacted)
			if failed := strings.Contains(log.String(), storage.ErrUnavailable.Error()); failed != (round.failure != nil) {
				t.Errorf("%+v: the log says %q", round, &log)
			}
			log.Reset()
		}
		r.end(context.Canceled)
	})
}

// TestCompactLoopsShareAStore runs two loops whose ticks interleave.
func TestCompactLoopsShareAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		opts := storage.CompactionOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		store := newMemory(t)
		first := newFixture(t, store, store, opts)
		first.pass(17 * time.Second)
		second := newFixture(t, store, store, opts)
		var revs []storage.Revision
		for range 60 {
			revs = append(revs, first.write())
			first.pass(20 * time.Second)
		}
		first.readable(revs[0], false)
		first.readable(revs[len(revs)-15], true) // 280 s ago
		if log.Len() > 0 {
			t.Errorf("the loops complain of each other: %s", &log)
		}
		first.end(context.Canceled)
		second.end(context.Canceled)
	})
}

func TestCompactLoopEndsWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t)
		r := newFixture(t, store, store, storage.CompactionOptions{})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Minute)
		r.end(storage.ErrClosed)
	})
}

func TestCompactionOptionsValidate(t *testing.T) {
	for _, opts := range []storage.CompactionOptions{{Interval: -1}, {Retention: -1}, {Revisions: -1}} {
		if err := storage.CompactLoop(t.Context(), newMemory(t), opts); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("CompactLoop with %+v: %v", opts, err)
		}
	}
}
