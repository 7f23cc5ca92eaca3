package storage

import (
	"context"
	"time"
)

// Revision counts the writes of a store. Every write gets a greater one than
// all writes before it, whatever the key. Zero is "no revision": the first
// write of an empty store has at least 1.
type Revision int64

// KeyValue is one key's state. Value is shared and must not be modified.
type KeyValue struct {
	Key      string
	Value    []byte
	Modified Revision // of the write that made this state
	Created  Revision // of the write that made the key, since when it has existed
	// Stale says that a write of the same value would store it in another form: it is
	// encrypted with a key that is no longer the one for writes.
	Stale bool
}

// Page is a part of a key range as it was at Revision.
type Page struct {
	Items    []KeyValue // ascending by Key
	Revision Revision   // of the snapshot that was read
	More     bool       // the range goes on after the last item
	// Release ends a loan, see ListOptions.Borrow. Nil: the values are not lent. It must
	// be called once, and must not have to wait for another call of the store, also not
	// for a read: until then the store cannot close, nor make some of its writes, and
	// while one of those waits, it answers no reads.
	Release func()
}

// ListOptions bounds a List.
type ListOptions struct {
	At    Revision // snapshot to read; 0 means the most recent one
	From  string   // first key to return; "" means the prefix itself
	Limit int      // most items to return; 0 means all
	// KeysOnly leaves the values out, so that a comparison of names and
	// revisions costs no more than those.
	KeysOnly bool
	// Borrow lets the store lend the values instead of copying them: if the page has
	// Release, nothing may read them any more once that has been called.
	Borrow bool
}

// Event is one change of one key.
type Event struct {
	Key      string
	Value    []byte // the new state, shared, not to be modified; nil if deleted
	Revision Revision
	Deleted  bool
}

// Batch is a run of events in ascending order of revision. All events of a
// revision are in the same batch.
type Batch struct {
	Events []Event
	// Revision is how far the stream is complete: every event up to and
	// including it has been delivered with this batch or before it. A batch
	// without events only reports progress.
	Revision Revision
}

// Reader reads consistently. Reads at revision 0 are linearizable: they see
// every write that was acknowledged before they began.
type Reader interface {
	// Get returns the state of a key at a revision (0: now). It fails with
	// ErrNotFound, ErrCompacted or ErrFutureRevision.
	Get(ctx context.Context, key string, at Revision) (KeyValue, error)
	// List returns the keys that start with prefix. It fails with
	// ErrCompacted or ErrFutureRevision.
	List(ctx context.Context, prefix string, opts ListOptions) (Page, error)
	// Current returns the revision of the most recent acknowledged write. Once
	// it has returned, every open stream that is behind the returned revision
	// reaches it soon, with an empty batch if nothing in its range has changed.
	Current(ctx context.Context) (Revision, error)
}

// Writer changes one key per call, and one key per revision. A write whose
// outcome is unknown (a cancelled context, a lost connection) may have taken
// effect. The store keeps value: the caller must not modify it afterwards.
type Writer interface {
	// Create writes a key that must not exist; a *ConflictError carries the
	// state that does. With a ttl above zero the key is deleted by the store
	// itself, as a change like any other, some time after that duration (an
	// engine may let keys that are due at about the same time go together).
	Create(ctx context.Context, key string, value []byte, ttl time.Duration) (Revision, error)
	// Update replaces a key whose last change must be expect, which is above
	// zero. It fails with a *ConflictError otherwise, with a nil Current if the
	// key is gone. The ttl starts anew; zero removes it.
	Update(ctx context.Context, key string, value []byte, expect Revision, ttl time.Duration) (Revision, error)
	// Delete removes a key whose last change must be expect, with the errors
	// of Update.
	Delete(ctx context.Context, key string, expect Revision) (Revision, error)
}

// Stream delivers the changes of a range in order, without gaps.
type Stream interface {
	// Next blocks for the next batch. It fails with the error of the context
	// that Watch was given when that has ended, with ErrCompacted when the
	// stream fell behind a compaction, and with ErrClosed when the store was
	// closed. An error is final. Next must not be called concurrently. The
	// slice is the caller's until the next call; the values are shared.
	Next() (Batch, error)
}

// Watcher streams changes.
type Watcher interface {
	// Watch streams the changes of keys that start with prefix whose revision
	// is greater than after. It fails with ErrCompacted if history before
	// after+1 is gone. A future revision is waited for. The stream lives
	// until ctx ends; that releases everything it holds.
	Watch(ctx context.Context, prefix string, after Revision) (Stream, error)
}

// Historian reads old changes.
type Historian interface {
	// Oldest returns the smallest revision that can be read, and after which a
	// watch can begin. It is 1 or more, and grows with compactions.
	Oldest(ctx context.Context) (Revision, error)
	// Replay calls visit with the changes of keys that start with prefix whose
	// revision is greater than after and at most through, in ascending order
	// and in runs of a bounded size, all events of a revision in one run. The
	// slice is the visitor's until it returns. It fails with visit's error, with
	// ErrCompacted if what follows after is gone, or goes meanwhile, and with
	// ErrFutureRevision if through is not reached.
	//
	// Unlike a Watch from the same revision it ends, and it does not delay current
	// writes and streams.
	Replay(ctx context.Context, prefix string, after, through Revision, visit func([]Event) error) error
}

// Compactor removes old history.
type Compactor interface {
	// Compact makes reads at revisions below at fail with ErrCompacted, and
	// watches that would need an event from before at. Reads at at itself, and
	// watches after it, go on working, and current state is never touched.
	// Compacting no further than an earlier call fails with ErrCompacted,
	// compacting to a future revision with ErrFutureRevision.
	Compact(ctx context.Context, at Revision) error
}

// Store is the whole contract. All methods may be called concurrently.
type Store interface {
	Reader
	Writer
	Watcher
	Historian
	Compactor
	// Close ends all streams with ErrClosed and releases the engine. Calls
	// after it fail with ErrClosed.
	Close() error
}

// Innermost returns the engine below the stores that wrap it, each of which has a method
// Unwrap; store itself if it wraps none.
func Innermost(store Store) Store {
	for {
		wrapper, ok := store.(interface{ Unwrap() Store })
		if !ok {
			return store
		}
		store = wrapper.Unwrap()
	}
}
