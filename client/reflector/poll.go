package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// maxPolled is how many events of one answer are held. The poller stops reading
// a longer answer, and the next poll resumes from there.
const maxPolled = 4096

var errPollOverdue = errors.New("the answer to a poll did not come in time")

// poller reads changes by long polling: each request is a watch that the server
// ends soon, and its answer is used when it is complete.
type poller[T client.Object] struct {
	ListerWatcher[T]
	wait  time.Duration // for how long the server collects changes, in whole seconds
	grace time.Duration // for the answer to arrive after that
	count func()        // called for each poll
	quiet func()        // called when a poll has shown that there are no changes
}

// Watch returns a stream that polls. The options must have a resourceVersion:
// the state of the moment is not a series of changes.
func (p *poller[T]) Watch(ctx context.Context, opts metav1.ListOptions) (Stream[T], error) {
	if unset(opts.ResourceVersion) || opts.SendInitialEvents != nil {
		return nil, errors.New("polling needs the resourceVersion of a list to begin with")
	}
	seconds := int64(p.wait / time.Second)
	opts.TimeoutSeconds = &seconds
	ctx, cancel := context.WithCancel(ctx)
	return &polls[T]{poller: p, ctx: ctx, cancel: cancel, opts: opts}, nil
}

// polls is the stream of one poller. Next is for one goroutine.
type polls[T client.Object] struct {
	poller *poller[T]
	ctx    context.Context
	cancel context.CancelFunc
	opts   metav1.ListOptions // of the next poll
	events []client.WatchEvent[T]
	err    error     // follows the events; final
	asOf   time.Time // until then the last answer, or the part of it that came, has what happened
	next   time.Time // when a poll may begin, at the earliest, after one that the server has ended
}

// Next returns the next event of the last answer, or polls until there is one.
func (s *polls[T]) Next() (client.WatchEvent[T], error) {
	for len(s.events) == 0 {
		if s.err != nil {
			return client.WatchEvent[T]{}, s.err
		}
		s.err = s.poll()
	}
	ev := s.events[0]
	s.events[0] = client.WatchEvent[T]{} // so that the rest of the answer does not hold it
	s.events = s.events[1:]
	return ev, nil
}

// Close ends the stream.
func (s *polls[T]) Close() { s.cancel() }

// poll makes one request. What an answer that breaks off has brought is
// complete events, and is kept.
func (s *polls[T]) poll() error {
	if err := s.rest(); err != nil {
		return err
	}
	s.poller.count()
	begun := time.Now()
	ctx, transfer, cancel := withTransfer(s.ctx)
	defer cancel(nil)
	limit := s.poller.wait + s.poller.grace
	dog := watchStream(limit, transfer, begun.Add(min(limit, forEver/slowest)*slowest), errPollOverdue, cancel)
	defer dog.stop()
	dog.begin()
	stream, err := s.poller.ListerWatcher.Watch(ctx, s.opts)
	if err != nil {
		return &unansweredPoll{because(ctx, err)}
	}
	defer stream.Close()
	s.events = nil
	from := s.opts.ResourceVersion
	for len(s.events) < maxPolled {
		ev, err := stream.Next()
		if errors.Is(err, io.EOF) {
			s.next = begun.Add(tooShort)
			if _, partial := transfer.PartialSince(); !partial {
				s.asOf = time.Now()
			}
			return s.complete(from, time.Since(begun))
		}
		if err != nil {
			return because(ctx, err)
		}
		if version := versionOf(ev.Object); version != "" && !older(version, s.opts.ResourceVersion) && leadsOn(s.opts.ResourceVersion, version) {
			s.opts.ResourceVersion = version
		}
		s.events, s.asOf = append(s.events, ev), arrivedAt(transfer)
	}
	return s.complete(from, time.Since(begun))
}

// rest waits until the next poll may begin. A server collects changes for all the time that it is asked
// for. One that answers at once each time that something changes, or a proxy before it, would be asked
// again and again otherwise, for as long as changes come.
func (s *polls[T]) rest() error {
	left := time.Until(s.next)
	if left <= 0 { // as nearly always: no timer is needed
		return context.Cause(s.ctx)
	}
	wait := time.NewTimer(left)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// unansweredPoll is the error of the request for a poll, as that of a request for a stream: no
// watch was opened.
type unansweredPoll struct{ err error }

func (e *unansweredPoll) Error() string { return e.err.Error() }
func (e *unansweredPoll) Unwrap() error { return e.err }

// complete judges an answer to a poll from a version that has ended as it should. One that
// leads to no other version and has not waited either would be asked for again at once, and
// for ever.
func (s *polls[T]) complete(from string, took time.Duration) error {
	if s.opts.ResourceVersion == from && took < s.poller.wait/2 {
		return fmt.Errorf("a poll of %v was answered after %v: %w", s.poller.wait, took.Round(time.Millisecond), io.EOF)
	}
	if len(s.events) == 0 {
		s.poller.quiet()
	}
	return nil
}
