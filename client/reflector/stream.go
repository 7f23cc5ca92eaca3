package reflector

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// listStream lists by a watch (KEP-3157): ADDED for everything, then a
// bookmark. Only then is the store's content replaced, and the same stream
// goes on with changes.
func (r *Reflector[T]) listStream(ctx context.Context) (*session[T], error) {
	yes := true
	r.asked = time.Now()
	s, err := r.open(ctx, metav1.ListOptions{
		SendInitialEvents:    &yes,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}, r.opts.InitialEventsTimeout)
	if err != nil {
		return nil, err
	}
	stop := r.doubt(s)
	err = r.fill(s)
	stop()
	if err != nil {
		s.close()
		return nil, &unfinishedError{err}
	}
	s.limit(r.opts.SilenceTimeout)
	return s, nil
}

// unfinishedError ended a streaming list that the server had begun.
type unfinishedError struct{ err error }

func (e *unfinishedError) Error() string { return e.err.Error() }
func (e *unfinishedError) Unwrap() error { return e.err }

// fill collects the initial events and gives them to the store.
func (r *Reflector[T]) fill(s *session[T]) error {
	var initial collection[T]
	for {
		ev, err := s.next()
		if err != nil {
			return err
		}
		switch {
		case ev.InitialEventsEnd():
			version := versionOf(ev.Object)
			if version == "" {
				return errNoVersion
			}
			if older(version, r.LastSyncResourceVersion()) {
				r.cause = ListRewound
			}
			r.missed, r.broken = 0, 0
			r.counts.streamed()
			return r.replace(initial.list(), version)
		case ev.Type == apiwatch.Deleted:
			initial.remove(ev.Object)
		case ev.Type != apiwatch.Bookmark:
			initial.put(ev.Object)
			if len(initial.items) > r.opts.MaxObjects {
				return tooManyObjects(r.opts.MaxObjects)
			}
		}
	}
}

// maxFailures is how many streaming lists in a row may fail before pages are
// asked for.
const maxFailures = 3

// fallBack decides whether a streaming list that failed is followed by pages at
// once, and records what the failure says about the server.
func (r *Reflector[T]) fallBack(ctx context.Context, err error) bool {
	if ctx.Err() != nil || fatal(err) != nil {
		return false
	}
	var status *apierrors.StatusError
	var unfinished *unfinishedError
	switch {
	case errors.Is(err, errSilent):
		// One bookmark may be lost with a stalled connection; a second one means
		// that the server does not send them.
		r.missed++
		r.streaming = r.missed < 2
		return true
	case errors.Is(err, errUnfinished): // pages may be smaller, and no stream makes an event smaller
		return true
	case errors.Is(err, errNoVersion):
		r.streaming = false
		return true
	case errors.As(err, &status):
		return r.fallBackFrom(status, client.IsStatus(err), errors.As(err, &unfinished))
	case unreachable(err) && !errors.Is(err, errUnopened): // what holds streams back may let lists through
		return false
	}
	return r.brokenAgain()
}

// noteFallback counts and logs that pages are asked for in place of a streaming list. The same
// reason once more, as while neither is allowed, stands in the warning of each attempt.
func (r *Reflector[T]) noteFallback(err error) {
	level := slog.LevelInfo
	if r.fellBack == err.Error() {
		level = slog.LevelDebug
	}
	r.fellBack = err.Error()
	r.opts.Logger.Log(context.Background(), level, "asking for pages in place of a streaming list", "error", err)
	r.counts.fallback()
}

// brokenAgain counts a streaming list that ended before its closing bookmark.
func (r *Reflector[T]) brokenAgain() bool {
	r.broken++
	return r.broken%maxFailures == 0
}

// fallBackFrom is fallBack for a Status of the server, or for the page of a
// proxy, which was not sent as a Status. begun is whether it came within the stream.
func (r *Reflector[T]) fallBackFrom(err *apierrors.StatusError, sent, begun bool) bool {
	switch code := err.Status().Code; {
	case sent && (code == http.StatusBadRequest || code == http.StatusUnprocessableEntity):
		r.streaming = false
		return true
	case notAllowed(err) && sent:
		return true // lists may be allowed where watches are not
	case !begun && (code == http.StatusUnauthorized || code == http.StatusTooManyRequests):
		return false // it would be said of lists, too
	case code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		return r.brokenAgain()
	case code >= http.StatusInternalServerError:
		return true
	default: // it says nothing about lists, which a server may have without watches (404)
		return r.brokenAgain()
	}
}
