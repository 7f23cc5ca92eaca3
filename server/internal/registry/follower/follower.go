// Package follower keeps what a decision is made by in step with caches: an index that is
// derived from objects of several kinds and is never older than their caches.
package follower

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/ownwrites"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// Kind is a kind whose objects are followed. Its functions are called by one goroutine at
// a time, and must not call the Follower.
type Kind struct {
	// Registry is that of the kind, which has a cache. Required.
	Registry registry.Registry
	// Replace takes the objects of the kind in place of all that came before. Required.
	Replace func(ctx context.Context, objects watchcache.Snapshot)
	// Apply takes changes, which follow one another without a gap. Required.
	Apply func(ctx context.Context, events []watchcache.Event)
}

// Follower reads the events of caches. A decision that finds a cache ahead of it reads
// first, by CatchUp; Run does that ahead of decisions. It is safe for concurrent use.
type Follower struct {
	sources []*source
	wake    chan struct{} // of length 1; receives when a cache may have events
	log     *slog.Logger

	updating sync.Mutex // held while the caches are read
}

type source struct {
	kind    Kind
	writes  ownwrites.Comparison
	cache   *watchcache.Cache
	applied atomic.Uint64 // number of the newest state of the cache that surely was applied

	watcher *watchcache.Watcher // guarded by Follower.updating
}

// New returns a Follower. It reads nothing yet. log receives what operators should see.
func New(log *slog.Logger, kinds ...Kind) *Follower {
	f := &Follower{wake: make(chan struct{}, 1), log: log}
	for _, k := range kinds {
		f.sources = append(f.sources, &source{kind: k, writes: k.Registry.OwnWrites(), cache: k.Registry.Cache()})
	}
	return f
}

// retryAfter is when Run tries again to read the caches.
const retryAfter = time.Second

// Run follows the caches until ctx ends, so that decisions seldom have to.
func (f *Follower) Run(ctx context.Context) {
	for _, s := range f.sources {
		if s.cache.WaitReady(ctx) != nil {
			return
		}
	}
	for ctx.Err() == nil {
		var again <-chan time.Time
		if err := f.readOn(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("changes that decisions are made by cannot be read", "error", err)
			again = time.After(retryAfter)
		}
		select {
		case <-f.wake:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// Wake implements watchcache.Waker: a cache has events.
func (f *Follower) Wake() watchcache.Starter {
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return nil
}

// CatchUp applies what the caches show and the kinds have not been told of, after it has
// waited for the caches to show this server's own writes. The error is auth.ErrNotReady
// while a cache is filled for the first time.
func (f *Follower) CatchUp(ctx context.Context) error {
	behind := false
	for _, s := range f.sources {
		if !s.cache.IsReady() {
			return auth.ErrNotReady
		}
		if !s.writes.Shown() {
			if err := s.writes.Wait(ctx); err != nil {
				return err
			}
		}
		number, _ := s.cache.State()
		behind = behind || s.applied.Load() < number
	}
	if !behind {
		return nil
	}
	return f.update(ctx, f.states(), false)
}

// state is what a cache shows.
type state struct {
	number   uint64
	revision storage.Revision
}

// states returns the states of the caches.
func (f *Follower) states() []state {
	states := make([]state, len(f.sources))
	for i, s := range f.sources {
		states[i].number, states[i].revision = s.cache.State()
	}
	return states
}

// readOn is CatchUp for Run: it reads whatever the states of the caches say, since a decision may have read a change
// before the state shows it. Run is woken again until nothing was left to read, and then by what comes.
func (f *Follower) readOn(ctx context.Context) error {
	for _, s := range f.sources {
		if !s.cache.IsReady() {
			return auth.ErrNotReady
		}
	}
	return f.update(ctx, f.states(), true)
}

// update applies the changes that led to states of the caches, but for those that have been applied unless all is set. The
// states are those before the lock: if decisions that wait for it applied what has come since, the last of them would
// wait for as many changes as there are decisions.
func (f *Follower) update(ctx context.Context, needed []state, all bool) error {
	f.updating.Lock()
	defer f.updating.Unlock()
	for i, s := range f.sources {
		applied := s.applied.Load()
		if !all && applied >= needed[i].number {
			continue
		}
		// What led to a state is in the log before the state.
		err := f.read(ctx, s, needed[i].revision)
		if errors.Is(err, watchcache.ErrExpired) {
			// The cache was filled anew, or the events left its log.
			if s.watcher != nil {
				s.watcher.Close()
				s.watcher = nil
			}
			err = f.read(ctx, s, needed[i].revision)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.kind.Registry.Resource().Plural, err)
		}
		s.applied.Store(max(applied, needed[i].number))
	}
	return nil
}

// eventBatch is how many events are applied at a time while decisions wait.
const eventBatch = 64

// read applies at least all changes up to a revision, and not all that come while they are applied: if these took
// as long as the next ones to come, it would not end, and all decisions wait for it.
func (f *Follower) read(ctx context.Context, s *source, through storage.Revision) error {
	if s.watcher == nil {
		return f.open(ctx, s)
	}
	var room [eventBatch]watchcache.Event
	events := room[:]
	for {
		n, err := s.watcher.Read(events)
		if err != nil || n == 0 {
			return err
		}
		s.kind.Apply(ctx, events[:n])
		if s.watcher.InCoalescedHistory() {
			continue // which is not in the order of revisions
		}
		switch last := events[n-1].Revision; {
		case last > through:
			f.Wake() // the watcher does that only for what comes after everything was read
			return nil
		case last == through:
			events = room[:1] // there may be more of that revision; most often this is later
		}
	}
}

// open takes all objects of the cache, as they are now, and has Run follow it from there.
func (f *Follower) open(ctx context.Context, s *source) error {
	for {
		generation := s.cache.Generation()
		snapshot := s.cache.Current()
		watcher, err := s.cache.Watch(watchcache.WatchOptions{After: snapshot.Revision(), Waker: f})
		if err != nil {
			return err
		}
		if s.cache.Generation() == generation {
			s.kind.Replace(ctx, snapshot)
			s.watcher = watcher
			f.Wake()
			return nil
		}
		watcher.Close() // the store has gone back in between: the watcher would wait for the revision of the snapshot
	}
}
