package watchcache

import (
	"errors"
	"fmt"

	"github.com/levelwire/levelwire/storage"
)

// Errors to be tested with errors.Is.
var (
	// ErrNotReady reports that the cache has not been filled yet. Try again later.
	ErrNotReady = errors.New("the cache is not filled yet: try again in a moment")
	// ErrExpired is matched by every *ExpiredError.
	ErrExpired = errors.New("too old revision")
	// ErrTooLarge is matched by every *TooLargeError.
	ErrTooLarge = errors.New("too large revision")
	// ErrClosed reports that the watcher, or its cache, was closed.
	ErrClosed = errors.New("watcher is closed")
)

// ExpiredError is a read or watch from before the retained history. The
// client has to list and watch from there. It matches ErrExpired.
type ExpiredError struct {
	Requested storage.Revision
	Oldest    storage.Revision // the smallest revision that can be asked for
}

// Error says both revisions.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("too old revision: %d (%d): list again and watch from there", e.Requested, e.Oldest)
}

// Is makes errors.Is(err, ErrExpired) true.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// TooLargeError is a read of a revision that the cache has not reached within
// Options.FreshnessWait. It matches ErrTooLarge.
type TooLargeError struct {
	Requested storage.Revision
	Current   storage.Revision // how far the cache had come when the wait ended
}

// Error says both revisions.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("too large revision: %d, current: %d: try again in a second", e.Requested, e.Current)
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }
