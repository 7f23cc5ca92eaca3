package watchcache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Cache holds the state and the recent history of one stored resource. Reads
// take no lock and never wait for writers or for each other. One source at a
// time drives it, through Fill, Apply and Advance: a Feed from a store, or a relay from
// another server. All methods may be called concurrently.
type Cache struct {
	res      *resource.Resource
	opts     Options
	ready    chan struct{}
	progress atomic.Pointer[Progress]

	// state is what readers see. It is published after the events that led to
	// it are in the logs, and before Progress says so.
	state      atomic.Pointer[state]
	base       atomic.Int64  // a watch may start after this revision or any later one
	generation atomic.Uint64 // grows when the history is given up as a whole
	account    atomic.Pointer[account]
	blocks     *blocks
	counters   counters
	closed     atomic.Bool // written under the lock

	summarizing sync.Mutex // held while a summary is made; taken before mu
	mu          sync.Mutex // the writer's, and that of watchers that come and go
	log         *log
	deaths      []*entry        // the deletions in it
	shared      sharedRevisions // of which a part may have been seen
	all         *bucket         // of the watchers that want everything; its log is the cache's
	index       index
	checkpoints []checkpoint
	exact       storage.Revision     // the state at every revision from here on can be told
	touched     []*bucket            // by the batch that is being applied
	foundation  *btree.Tree[*Object] // the state at base; nil once history has been dropped
	graves      graves               // what the log has dropped that the state does not tell
	summary     *summary             // the one made last
	recalling   chan struct{}        // closed when the past has been put in front of the log; nil: not expected
	filled      bool
}

// state is what the cache holds at one moment.
type state struct {
	tree     btree.Tree[*Object]
	revision storage.Revision // of the last change, or of the fill
}

// New returns an empty cache of res, or of the resource that res is stored
// as.
func New(res *resource.Resource, opts Options) *Cache {
	res = res.Stored()
	c := &Cache{
		res:   res,
		opts:  opts.withDefaults(res),
		ready: make(chan struct{}),
		log:   newLog(mainShift),
		index: index{stored: res},
	}
	c.all = newBucket(interest{kind: byNothing}, 0)
	c.all.log = c.log
	c.progress.Store(new(Progress))
	c.state.Store(new(state))
	c.account.Store(new(account))
	c.blocks = newBlocks(c.opts.BlockBytes)
	return c
}

// Resource returns what is cached.
func (c *Cache) Resource() *resource.Resource { return c.res }

// Decode makes an object of this cache from a value of the store.
func (c *Cache) Decode(key string, value []byte, revision storage.Revision) (*Object, error) {
	return c.opts.Decode(key, value, revision)
}

// Ready is closed when the cache has been filled for the first time.
func (c *Cache) Ready() <-chan struct{} { return c.ready }

// WaitReady waits until the cache has been filled. It fails with ErrNotReady
// when ctx ends first.
func (c *Cache) WaitReady(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	default:
	}
	select {
	case <-c.ready:
		return nil
	case <-ctx.Done():
		return errors.Join(ErrNotReady, ctx.Err())
	}
}

func (c *Cache) isReady() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// reached returns how far the cache has come. Every event up to it is in the
// logs.
func (c *Cache) reached() storage.Revision {
	return max(c.progress.Load().Reached(), c.state.Load().revision)
}

// Current returns what the cache holds now: the empty Snapshot before it has
// been filled.
func (c *Cache) Current() Snapshot {
	if !c.isReady() {
		return Snapshot{namespaced: c.res.Namespaced}
	}
	// The order matters: the state read after the progress includes all that
	// the progress promises.
	progress := c.progress.Load().Reached()
	s := c.state.Load()
	return c.snapshot(s.tree, max(progress, s.revision))
}

func (c *Cache) snapshot(tree btree.Tree[*Object], revision storage.Revision) Snapshot {
	return Snapshot{tree: tree, revision: revision, namespaced: c.res.Namespaced, blocks: c.blocks}
}

// NotOlderThan returns the state at the given revision or a later one. It
// waits for the cache to get there, at most Options.FreshnessWait, and then
// fails with a *TooLargeError, or with ErrNotReady if the cache has never
// been filled. If ctx ends first it fails with ctx's error.
func (c *Cache) NotOlderThan(ctx context.Context, revision storage.Revision) (Snapshot, error) {
	if c.isReady() && c.reached() >= revision {
		return c.Current(), nil
	}
	wait, cancel := context.WithTimeout(ctx, c.opts.FreshnessWait)
	defer cancel()
	if err := c.WaitReady(wait); err != nil {
		if ctx.Err() != nil {
			return Snapshot{}, ctx.Err()
		}
		return Snapshot{}, ErrNotReady
	}
	if c.reached() < revision {
		if err := c.progress.Load().Wait(wait, revision); err != nil {
			if ctx.Err() != nil {
				return Snapshot{}, ctx.Err()
			}
			return Snapshot{}, &TooLargeError{Requested: revision, Current: c.reached()}
		}
	}
	return c.Current(), nil
}

// Advance says that every change up to revision has been applied to this
// cache, for sources that do not share a Progress among caches.
func (c *Cache) Advance(revision storage.Revision) { c.progress.Load().Publish(revision) }

// follow makes the cache share a Progress. It must be called before the cache
// is filled.
func (c *Cache) follow(p *Progress) { c.progress.Store(p) }

// attach puts the watcher's cursor where its history begins. The lock is held.
func (c *Cache) attach(w *Watcher) {
	w.bucket = c.bucketFor(w.selection)
	w.bucket.watchers++
	w.generation = c.generation.Load()
	c.seek(w)
	c.counters.watchers.Add(1)
	if w.waker == nil {
		w.ready = make(chan struct{}, 1)
		w.signal() // so that waiting before the first Read does not hang
	}
}

// seek puts the cursor behind the revision that the watcher is to start after.
// The lock is held.
func (c *Cache) seek(w *Watcher) {
	first := c.log.search(func(e *entry) bool { return e.revision > w.after })
	w.behind, w.until = 0, 0
	switch b := w.bucket; {
	case b == c.all:
		w.position = first
	case b.start <= first:
		w.position = b.log.search(func(e *entry) bool { return e.sequence >= first })
	default:
		// The bucket is younger than the history that is wanted.
		w.behind, w.until, w.position = first, c.log.end.Load(), b.log.end.Load()
	}
}

// bucketFor returns the bucket of the narrowest interest in the selection,
// making it if it is the first. The lock is held.
func (c *Cache) bucketFor(s *Selection) *bucket {
	candidates := s.interests(c.res.Namespaced)
	if len(candidates) == 0 {
		return c.all
	}
	i := c.narrowest(candidates)
	table := c.index.table(&i)
	b := table[i.value]
	if b == nil {
		b = newBucket(i, c.log.end.Load())
		table[i.value] = b
	}
	return b
}

// narrowest picks the interest that the fewest of the latest events touched;
// of equals the one that is listed first.
func (c *Cache) narrowest(candidates []interest) interest {
	if len(candidates) == 1 {
		return candidates[0]
	}
	const sample = 128
	end := c.log.end.Load()
	start := max(c.log.oldest.Load(), end-min(end, sample))
	best, fewest := 0, sample+1
	for i := range candidates {
		touched := 0
		for p := start; p < end; p++ {
			if candidates[i].touches(c.log.at(p), c.res) {
				touched++
			}
		}
		if touched < fewest {
			best, fewest = i, touched
		}
	}
	return candidates[best]
}

// detach is the end of a watcher. A bucket goes with its last one.
func (c *Cache) detach(w *Watcher) {
	w.bucket.forget(w)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counters.watchers.Add(-1)
	w.bucket.watchers--
	if w.bucket.watchers == 0 && w.bucket != c.all {
		c.index.remove(w.bucket)
	}
}

// Close ends all watchers with ErrClosed, each when it has read all there is:
// the resource is no longer served. Reads go on showing the last state.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed.Store(true)
	c.recalled()
	c.wakeAll()
}

// Wake makes every watcher's Ready receive, though nothing has happened to its
// objects: what they are shown as has.
func (c *Cache) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeAll()
}

// wakeAll wakes the watchers of every bucket. The lock is held.
func (c *Cache) wakeAll() {
	c.all.wake()
	c.index.each(func(b *bucket) { b.wake() })
}
