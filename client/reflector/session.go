package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/internal/transfer"
)

var (
	errSilent    = errors.New("the server said nothing for too long")
	errUnopened  = errors.New("the server did not begin to answer in time")
	errNoVersion = errors.New("the list has no resourceVersion")
	errOlder     = errors.New("the list is older than what has been seen")
)

// session is one open stream, with what limits it in time.
type session[T client.Object] struct {
	stream Stream[T]
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	dog    *watchdog
	// received says of a client's stream whether a part of an event has come.
	received *transfer.Transfer
	opened   time.Time
	asked    time.Duration // for how long the server was asked to keep it open
	// slowUntil is until when an event may arrive slowly.
	slowUntil time.Time
	events    int // received, bookmarks included
	// synthetic: the stream may begin with ADDED events that are the state and
	// not changes, in no order; their resourceVersions are none to resume from.
	synthetic bool
	from      string // the version that the store had reached before the first change
}

// unversionedTimeout is the most that Options.WatchTimeout counts for where lists have no
// resourceVersion: only the list that follows shows what happened between the one before and
// the watch.
const unversionedTimeout = 30 * time.Second

// open opens a stream that is given up if it is silent for limit.
func (r *Reflector[T]) open(ctx context.Context, opts metav1.ListOptions, limit time.Duration) (*session[T], error) {
	opts.AllowWatchBookmarks = true
	timeout := r.opts.WatchTimeout
	if r.unversioned {
		timeout = min(timeout, unversionedTimeout)
	}
	seconds := int64((1 + r.random()) * timeout.Seconds())
	opts.TimeoutSeconds = &seconds
	ctx, received, cancel := withTransfer(ctx)
	r.counts.watch()
	giveUp := time.AfterFunc(r.opts.OpenTimeout, func() { cancel(errUnopened) })
	stream, err := r.source.Watch(ctx, opts)
	giveUp.Stop()
	if err != nil {
		err = because(ctx, err)
		cancel(nil)
		return nil, err
	}
	asked := time.Duration(seconds) * time.Second
	if other, ok := stream.(interface{ Timeout() time.Duration }); ok {
		asked = other.Timeout()
	}
	s := &session[T]{stream: stream, ctx: ctx, cancel: cancel, received: received, opened: time.Now(), asked: asked}
	s.slowUntil = s.opened.Add(max(asked, r.opts.WatchTimeout))
	s.limit(limit)
	return s, nil
}

// limit gives the stream up when it is silent for d; negative: never. An event that arrives
// slowly is no silence for as long as a watch lasts.
func (s *session[T]) limit(d time.Duration) {
	s.dog.stop()
	s.dog = watchStream(d, s.received, s.slowUntil, errSilent, s.cancel)
}

// next waits for an event.
func (s *session[T]) next() (client.WatchEvent[T], error) {
	s.dog.waiting()
	ev, err := s.stream.Next()
	s.dog.working()
	if err != nil {
		return ev, because(s.ctx, err)
	}
	if ev.Type != apiwatch.Bookmark && ev.Object.GetName() == "" {
		return ev, nameless("event", ev.Object)
	}
	s.events++
	return ev, nil
}

// nameless is the error for an object without a name. No store can hold it, and an
// event cannot be about it, so the answer counts as one that cannot be decoded.
func nameless[T client.Object](what string, obj T) error {
	return &client.DecodeError{What: what, Err: fmt.Errorf("a %T in namespace %q has no name", obj, obj.GetNamespace())}
}

// checkNames returns an error if one of the objects has no name.
func checkNames[T client.Object](what string, objects []T) error {
	for _, obj := range objects {
		if obj.GetName() == "" {
			return nameless(what, obj)
		}
	}
	return nil
}

func (s *session[T]) close() {
	s.dog.stop()
	s.cancel(nil)
	s.stream.Close()
}

// because adds why the request was ended, if we ended it.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w (%w)", cause, err)
}
