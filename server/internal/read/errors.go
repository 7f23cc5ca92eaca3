package read

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// errInitializing asks the client to come back when the cache has been filled.
func errInitializing() error {
	return status.TooManyRequests("storage is (re)initializing", 1)
}

// cacheError turns the errors of the watch cache into Status errors for clients.
func cacheError(err error) error {
	var large *watchcache.TooLargeError
	var old *watchcache.ExpiredError
	switch {
	case errors.As(err, &large):
		return status.ResourceVersionTooLarge(large.Requested, large.Current)
	case errors.As(err, &old):
		return status.Expired(old.Requested, old.Oldest)
	case errors.Is(err, watchcache.ErrNotReady):
		return errInitializing()
	}
	return err
}

// errListExpired is the 410 for a list of a past that is not kept any more.
func errListExpired() error {
	return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
}

// CacheError turns the errors of the watch cache into Status errors for clients.
func CacheError(err error) error { return cacheError(err) }
