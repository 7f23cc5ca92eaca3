package storage

import (
	"errors"
	"fmt"
)

// Errors of the contract, to be tested with errors.Is.
var (
	ErrNotFound       = errors.New("key not found")
	ErrCompacted      = errors.New("revision has been compacted")
	ErrFutureRevision = errors.New("revision is in the future")
	ErrConflict       = errors.New("key has changed")
	ErrClosed         = errors.New("store is closed")
	// ErrUnavailable wraps transient failures of the engine: no leader, no
	// connection, a full disk.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrFull means that the engine's database has reached its limit: writes that
	// make it larger are refused until it has been compacted, and more. It matches
	// ErrUnavailable.
	ErrFull = fmt.Errorf("%w: the database is full", ErrUnavailable)
	// ErrReadOnly is a write to a store that shows what others have written: a
	// recording, or a snapshot.
	ErrReadOnly = errors.New("the store is read-only")
	// ErrTooLarge is a value over the engine's limit. Nothing was written.
	ErrTooLarge = errors.New("value is too large for the store")
)

// ConflictError is a guarded write that found another state than it expected.
// It matches ErrConflict.
type ConflictError struct {
	Key     string
	Expect  Revision  // 0 for a create
	Current *KeyValue // the state that was found; nil if the key does not exist
}

func (e *ConflictError) Error() string {
	switch {
	case e.Current == nil:
		return fmt.Sprintf("%s: expected revision %d, but the key does not exist", e.Key, e.Expect)
	case e.Expect == 0:
		return fmt.Sprintf("%s: already exists at revision %d", e.Key, e.Current.Modified)
	default:
		return fmt.Sprintf("%s: expected revision %d, found %d", e.Key, e.Expect, e.Current.Modified)
	}
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }
