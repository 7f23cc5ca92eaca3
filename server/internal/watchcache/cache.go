package watchcache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache/eventlog"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/server/internal/watchcache/tombstone"
	"github.com/levelwire/levelwire/storage"
)

// Cache holds the state and the recent history of one stored resource. Reads
// take no lock and wait neither for the writer nor for each other. One source at a
// time writes to it, through Fill, Apply and Advance: a feed.Feed from a store, or
// a relay from another server. All methods may be called concurrently.
type Cache struct {
	res      *resource.Resource
	opts     Options
	ready    chan struct{}
	progress atomic.Pointer[Progress]

	// state is what readers see. It is published after the events that led to
	// it are in the logs, or the log has another generation, and before Progress says so.
	state        atomic.Pointer[cacheState]
	oneByOne     atomic.Bool   // ApplyNext has been called
	baseRevision atomic.Int64  // a watch may start in the log after this revision or any later one
	generation   atomic.Uint64 // of the log; grows when the log is dropped as a whole
	formBytes    atomic.Pointer[state.ByteCounter]
	blocks       *state.Blocks
	custom       bool                                            // objects are unstructured; a webhook may have to convert them
	newTraits    func(to []uint64, o, replaced *Object) []uint64 // for the filters of the tree
	selects      state.SelectCounters
	compressor   *state.Compressor // nil: no object is compressed
	counters     counters
	// Events before this position of the log have had their forms dropped; written
	// under mu. formsRemade says that a slow watcher has made some again.
	formsDropped atomic.Uint64
	formsRemade  atomic.Bool
	gaps         atomic.Pointer[gaps] // written under mu; nil: none
	gapsBegun    atomic.Uint32        // grows, under mu, before what follows a gap is applied
	closed       atomic.Bool          // written under mu
	epoch        time.Time            // from which ticks are counted

	summarizing sync.Mutex // held while a summary is made; taken before mu

	// mu serializes the writer with watchers that are opened and closed. It guards
	// the fields below.
	mu          sync.Mutex
	log         *eventlog.Log
	deletions   []*eventlog.Entry        // those in the log
	shared      eventlog.SharedRevisions // revisions of which a client may have seen a part
	all         *bucket                  // of the watchers without an interest; its log is the cache's
	index       interestIndex
	checkpoints []checkpoint
	exactSince  storage.Revision // the state is known at every revision from here on
	touched     []*bucket        // by the batch that is being applied
	baseTree    *btree.Tree[*Object]
	tombstones  tombstone.Set // deletions that the log has evicted
	summary     *summary      // the one made last
	withForms   int64         // bytes of the events from formsDropped on
	sweptAgain  int64         // bytes of the events since all forms were dropped again
	cold        []*Object     // that the log has evicted, and that may be compressed
	coldBytes   int64         // of their JSON
	backfilling chan struct{} // closed when earlier history has been prepended, or is skipped; nil: none is expected
	filled      bool
	evictedPart bool             // a client at baseRevision may have a part of it
	replacedAt  storage.Revision // of the fill that made the log anew
}

// cacheState is what the cache holds at one moment.
type cacheState struct {
	tree     btree.Tree[*Object]
	revision storage.Revision // of the last change, or of the fill
	logEnd   uint64           // the position behind the changes that led to it
	number   uint64           // of the state: each has the next one
}

// setState publishes a state. The lock is held.
func (c *Cache) setState(s cacheState) {
	s.number = c.state.Load().number + 1
	c.state.Store(&s)
}

// New returns an empty cache of res, or of the resource that res is stored
// as.
func New(res *resource.Resource, opts Options) *Cache {
	res = res.Stored()
	c := &Cache{
		res:   res,
		opts:  opts.withDefaults(res),
		ready: make(chan struct{}),
		log:   eventlog.New(mainShift),
		index: interestIndex{stored: res},
	}
	c.epoch = c.opts.Now()
	c.all = newBucket(state.Interest{Kind: state.ByNothing}, 0)
	c.all.log = c.log
	c.progress.Store(new(Progress))
	c.state.Store(new(cacheState))
	c.formBytes.Store(new(state.ByteCounter))
	c.blocks = state.NewBlocks(c.opts.BlockBytes)
	c.newTraits = state.NewTraits(res)
	if c.opts.CompressObjects && !holdsSecrets(res) {
		c.compressor = state.NewCompressor(state.CompressorOptions{Always: c.opts.CompressAtOnce})
	}
	_, c.custom = res.New().(*unstructured.Unstructured)
	c.formsDropped.Store(c.log.Oldest())
	c.opts.Budget.join(c)
	return c
}

// Resource returns the stored resource.
func (c *Cache) Resource() *resource.Resource { return c.res }

// Decode makes an object of this cache from a value of the store.
func (c *Cache) Decode(key string, value []byte, revision storage.Revision) (*Object, error) {
	return c.opts.Decode(key, value, revision)
}

// LastDecodable reads the latest state of a key of the store before a revision
// that can be decoded; see state.Decode.
func (c *Cache) LastDecodable(ctx context.Context, store storage.Reader, key string, before storage.Revision) (*Object, error) {
	prefix := c.res.StorePrefix
	return c.opts.Decode.LastDecodable(ctx, store, prefix, key[len(prefix):], before)
}

// TombstoneMetadata reduces an object to what a tombstone keeps of it.
func (c *Cache) TombstoneMetadata(o *Object) *Object { return o.TombstoneMetadata(c.res) }

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

// IsReady reports whether the cache has been filled.
func (c *Cache) IsReady() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// Reached returns the revision up to which every event is in the logs.
func (c *Cache) Reached() storage.Revision {
	return max(c.followed(), c.state.Load().revision)
}

// StateRevision returns the revision of the last change that the cache shows, or of
// its fill if that was later.
func (c *Cache) StateRevision() storage.Revision { return c.state.Load().revision }

// State returns the number and the revision of the state. The number grows with each state, also
// if the revision stays the same (ApplyNext), or has gone back with the store.
func (c *Cache) State() (number uint64, revision storage.Revision) {
	s := c.state.Load()
	return s.number, s.revision
}

// ExactSince returns the revision since when the state is known at every revision: the log
// has every change after it, at its own revision.
func (c *Cache) ExactSince() storage.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.exactSince, storage.Revision(c.baseRevision.Load()))
}

// RefilledAt returns the revision of the fill after which the log has every change at its
// own revision: of what changed before, while the source had lost its position, it has
// discrepancies.
func (c *Cache) RefilledAt() storage.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exactSince
}

// Published returns the revision up to which every event is in the logs, and every watcher
// that slept has been woken for it. Reached may be later.
func (c *Cache) Published() storage.Revision { return c.followed() }

// followed returns the revision of the Progress that the cache follows. The second
// load makes sure that the cache still followed it when the revision was read: a
// Progress that the cache has left may go on to revisions whose changes the cache
// lacks.
func (c *Cache) followed() storage.Revision {
	for {
		p := c.progress.Load()
		if revision := p.Reached(); c.progress.Load() == p {
			return revision
		}
	}
}

// Current returns the newest state: the empty Snapshot before the cache has been
// filled.
func (c *Cache) Current() Snapshot {
	if !c.IsReady() {
		return c.snapshot(btree.Tree[*Object]{}, 0)
	}
	for {
		// The order matters: a state that is loaded after the progress includes every
		// change up to the progress, unless the store has gone back in between.
		progress := c.followed()
		s := c.state.Load()
		if c.followed() >= progress {
			return c.snapshot(s.tree, max(progress, s.revision)).WithLogEnd(s.logEnd)
		}
	}
}

func (c *Cache) snapshot(tree btree.Tree[*Object], revision storage.Revision) Snapshot {
	return state.NewSnapshot(tree, revision, c.res.Namespaced, c.blocks, &c.selects)
}

// Store says how far the changes have come that a cache is fed.
type Store interface {
	Current(ctx context.Context) (storage.Revision, error)
}

// Latest returns a state that includes every write that was acknowledged before the
// call: a consistent read. It fails with the store's error, or as NotOlderThan does.
func (c *Cache) Latest(ctx context.Context, store Store) (Snapshot, error) {
	current, err := store.Current(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	return c.NotOlderThan(ctx, current)
}

// NotOlderThan returns the state at the given revision or a later one. It
// waits for the cache to reach it, at most Options.FreshnessWait, and then
// fails with a *TooLargeError, or with ErrNotReady if the cache has never
// been filled. If ctx ends first it fails with ctx's error.
func (c *Cache) NotOlderThan(ctx context.Context, revision storage.Revision) (Snapshot, error) {
	if c.IsReady() && c.Reached() >= revision {
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
	for c.Reached() < revision { // anew, if the cache follows another Progress meanwhile
		if err := c.progress.Load().Wait(wait, revision); err != nil {
			if ctx.Err() != nil {
				return Snapshot{}, ctx.Err()
			}
			return Snapshot{}, &TooLargeError{Requested: revision, Current: c.Reached()}
		}
	}
	return c.Current(), nil
}

// Advance publishes that every change up to revision has been applied to this
// cache. It is for sources that do not share a Progress among caches.
func (c *Cache) Advance(revision storage.Revision) { c.progress.Load().Publish(revision) }

// Follow makes the cache use a Progress that several caches share. Its revision
// must not be beyond the changes that the cache has, unless the cache has not been
// filled, and later ones must be published only after their changes have been
// applied to this cache too.
func (c *Cache) Follow(p *Progress) { c.progress.Store(p) }

// Detach makes the cache follow a Progress of its own, which begins where the cache
// is: the source goes on publishing to the shared one, although this cache lacks the
// changes. It returns the new Progress; Rejoin ends it.
func (c *Cache) Detach() *Progress {
	own := new(Progress)
	own.Publish(c.followed())
	c.Follow(own)
	return own
}

// Rejoin makes a detached cache follow a shared Progress again, whose changes it
// must have.
func (c *Cache) Rejoin(shared *Progress) {
	own := c.progress.Load()
	c.Follow(shared)
	own.supersede() // after that: readers that wait look at the shared one next
}

// Close ends all watchers with ErrClosed, each when it has read the whole log:
// the resource is no longer served. Reads still return the last state.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed.Store(true)
	c.endBackfill()
	c.wakeAll()
}

// Wake makes every watcher's Ready receive, although its objects have not
// changed: it is for a change of how they are encoded.
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
