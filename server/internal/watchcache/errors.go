package watchcache

import (
	"errors"
	"fmt"
	"strings"

	"github.com/levelwire/levelwire/storage"
)

// Errors to be tested with errors.Is.
var (
	// ErrNotReady: the cache has not been filled yet. Try again later.
	ErrNotReady = errors.New("the cache is not filled yet: try again in a moment")
	// ErrExpired is matched by every *ExpiredError.
	ErrExpired = errors.New("too old revision")
	// ErrTooLarge is matched by every *TooLargeError.
	ErrTooLarge = errors.New("too large revision")
	// ErrClosed: the watcher was closed.
	ErrClosed = errors.New("watcher is closed")
)

// ExpiredError is a read or watch from before the retained history. The
// reader has to list and start over. It matches ErrExpired.
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

// TooLargeError is a read that waited in vain for a revision that the cache
// has not reached. It matches ErrTooLarge.
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

// UnknownFieldError is a field selector that names a field the resource does
// not offer for selection.
type UnknownFieldError struct {
	Field      string
	Resource   string
	Selectable []string // what may be named, in order
}

// Error lists the fields that can be used instead.
func (e *UnknownFieldError) Error() string {
	return fmt.Sprintf("field label not supported: %q is not selectable for %s: use one of %s",
		e.Field, e.Resource, strings.Join(e.Selectable, ", "))
}
