package relay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// How old a cache may be is known like this: while the stream of a resource is open, what
// the upstream sends arrives in order on its connection. Over that the relay also asks the
// upstream, once a second, whether it is there (a probe). So a cache that has applied all that came
// before the answer is no older than the probe was when it was sent. When the stream
// ends, the age grows from there, until another stream has caught up. That an event arrives
// proves nothing: it may have been under way for long, with others behind it.
//
// The upstream sends the answer to a probe beside the events of streams, not behind all of
// them. On a connection that brings the answer quickly there is no queue, so that makes no
// difference. If an answer took long, or probes were not answered for a while, events may still be
// waiting at the upstream; and a stream on another connection may hang: then the upstream
// is asked for the current version of the resource, and the cache has to get there.

// If the upstream is a relay itself, one of its streams may hang while it answers probes quickly.
// So its answer says how old its caches may be at that moment.

// versionPath is what probes ask for.
const versionPath = "/version"

// stalenessHeader says in a relay's answer to a probe, in seconds, for how long the oldest of
// its caches may have missed changes.
const stalenessHeader = "Levelwire-Staleness"

// declareStaleness adds that header.
func (r *Relay) declareStaleness(header http.Header) {
	var oldest time.Duration
	for _, s := range *r.byResource.Load() {
		if s.cache.IsReady() && !s.silence.wasFound() {
			oldest = max(oldest, s.stream.age())
		}
	}
	header.Set(stalenessHeader, strconv.FormatFloat(oldest.Seconds(), 'f', 3, 64))
}

// declaredStaleness returns what the upstream says of its caches: 0 if it is no relay.
func declaredStaleness(header http.Header) time.Duration {
	seconds, _ := strconv.ParseFloat(header.Get(stalenessHeader), 64) // what cannot be read is as if it were not there
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, maxAge) * float64(time.Second))
}

// contact is when the upstream was last known to answer.
type contact struct {
	now   func() time.Time
	begun time.Time     // when the relay was made
	made  chan struct{} // closed when it has answered for the first time
	once  sync.Once
	last  atomic.Int64 // when the last probe that was answered was sent, in Unix nanoseconds
}

// probeTimeout is how long the answer to a probe may take.
const probeTimeout = 5 * time.Second

const (
	// quickProbe is how long the answer to a probe may take that shows streams to be current.
	quickProbe = 500 * time.Millisecond
	// verifyFrom is from which age on a stream is verified in another way than by probes.
	verifyFrom = 2 * time.Second
	// verifyBehind is from which age of the caches of an upstream that is a relay on each stream
	// is verified by itself: one of those caches is older than the others. It may stay old for
	// long, so streams about which nothing else is wrong are verified only from verifyBesides on.
	verifyBehind, verifyBesides = 5 * time.Second, 15 * time.Second
)

// probe asks the upstream again and again whether it is there.
func (r *Relay) probe(ctx context.Context) {
	ticker := time.NewTicker(r.opts.ProbeInterval)
	defer ticker.Stop()
	for {
		r.probeOnce(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Relay) probeOnce(running context.Context) {
	ctx, cancel := context.WithTimeout(running, probeTimeout)
	defer cancel()
	var on atomic.Pointer[net.Conn]
	sent := r.contact.now()
	response, err := r.client.Raw(onConnection(ctx, func(conn net.Conn) { on.Store(&conn) }), client.RawRequest{Path: versionPath})
	if err == nil {
		_ = response.Body.Close() // only the status counts
		err = checkProbe(response.StatusCode)
	}
	if err != nil {
		r.noteProbeFailed(running, sent, err)
		return
	}
	r.noteProbeAnswered()
	// An upstream that is a relay may answer from memory: then it had the answer itself
	// that long ago, and its streams are as current as that at most. It says besides how old
	// its caches may be: what this relay has from them is older by that.
	age, behind := declaredAge(response.Header), declaredStaleness(response.Header)
	r.contact.last.Store(sent.Add(-age).UnixNano())
	r.contact.once.Do(func() { close(r.contact.made) })
	probe := answered{sent: sent, at: r.contact.now(), current: sent.Add(-behind)}
	quick := age == 0 && probe.at.Sub(sent) <= quickProbe && on.Load() != nil
	for _, s := range *r.byResource.Load() {
		switch {
		case quick && behind >= verifyBehind:
			s.verify(min(verifyBesides, r.opts.MaxStaleness/2))
		case !quick || !s.stream.probed(*on.Load(), probe):
			s.verify(verifyFrom)
		}
	}
}

// verify finds out, in a goroutine, whether a cache has everything, if that has not been
// known for so long.
func (s *source) verify(from time.Duration) {
	number, open := s.stream.opened()
	if !open || s.stream.age() < from || !s.verifying.CompareAndSwap(false, true) {
		return
	}
	s.relay.wait.Go(func() {
		defer s.verifying.Store(false)
		asked := s.relay.contact.now()
		if at, err := s.Current(s.running); err == nil {
			s.catchUp(number, at, asked)
		}
	})
}

// Contacted is closed when the upstream has answered for the first time.
func (r *Relay) Contacted() <-chan struct{} { return r.contact.made }

// Upstream returns the address of the upstream, for logs.
func (r *Relay) Upstream() string { return r.base.Redacted() }

// age is how long ago the upstream is known to have answered; 0 if it never has.
func (r *Relay) age() time.Duration {
	last := r.contact.last.Load()
	if last == 0 {
		return 0
	}
	return r.contact.now().Sub(time.Unix(0, last))
}

// silence is for how long the upstream is known not to have answered: since the relay was made, if it
// never has.
func (r *Relay) silence() time.Duration {
	if r.contact.last.Load() == 0 {
		return r.contact.now().Sub(r.contact.begun)
	}
	return max(r.age(), 0)
}

// CheckUpstream fails while a cache may be older than Options.MaxStaleness, or the upstream
// has never answered.
func (r *Relay) CheckUpstream(context.Context) error {
	age, unauthorized := r.age(), r.outage.unauthorized.Load()
	switch {
	case r.contact.last.Load() == 0 && unauthorized, age > r.opts.MaxStaleness && unauthorized:
		return errUnauthorized
	case r.contact.last.Load() == 0:
		return errors.New("the upstream has not answered yet")
	case age > r.opts.MaxStaleness:
		return fmt.Errorf("the upstream has not answered for %s, which is longer than --max-staleness %s", age.Round(time.Second), r.opts.MaxStaleness)
	}
	for res, s := range *r.byResource.Load() {
		if s.silence.wasFound() {
			continue // what depends on its age is passed on
		}
		if age := s.stream.age(); s.cache.IsReady() && age > r.opts.MaxStaleness && age < maxAge*time.Second {
			return fmt.Errorf("the cache of %s may be %s old, which is longer than --max-staleness %s", res.GroupResource(), age.Round(time.Second), r.opts.MaxStaleness)
		}
	}
	return nil
}

// Declare implements apiserver.Upstream: Age (RFC 9111) is for how many seconds the cache
// may have missed changes.
func (r *Relay) Declare(w http.ResponseWriter, res *resource.Resource, version string) {
	s := (*r.byResource.Load())[res]
	if s == nil {
		return
	}
	if from, err := strconv.ParseInt(version, 10, 64); err == nil && from > 0 && s.gaps.after(storage.Revision(from)) {
		w.Header().Set(watchstream.HistoryHeader, watchstream.Coalesced)
	}
	w.Header().Set("Age", strconv.FormatInt(int64(s.stream.age()/time.Second), 10))
	request.AddWarnings(w, s.warnings.latest()...)
}

// stream is what is known of how old the cache of one resource may be.
type stream struct {
	contact *contact

	mu      sync.Mutex
	number  int       // of the stream that was opened last
	arrives *arrivals // of that stream
	open    bool
	current time.Time // the cache has everything up to here, whatever the state of the stream
	asked   time.Time // when what showed that was asked
}

// probed notes that a probe was answered quickly. It returns false if that says nothing of the
// stream: after a while without such answers, events may be under way behind this one.
func (s *stream) probed(conn net.Conn, probe answered) bool {
	s.mu.Lock()
	arrives, unbroken := s.arrives, s.open && probe.sent.Sub(s.asked) <= verifyFrom
	s.mu.Unlock()
	return unbroken && arrives.probed(conn, probe)
}

// ended notes that the stream has ended.
func (s *stream) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	s.number++
}

// begin returns the number of a stream that has just been opened.
func (s *stream) begin(arrives *arrivals) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	number := s.number
	arrives.proved = func(probe answered) { s.proved(number, probe) }
	s.arrives = arrives
	return number
}

// proved notes that a stream which is open has everything that a probe shows.
func (s *stream) proved(number int, probe answered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open && s.number == number {
		s.advance(probe.current, probe.sent)
	}
}

// advance notes that the cache has everything up to a time, as was asked at another. The lock
// is held.
func (s *stream) advance(current, asked time.Time) {
	if current.After(s.current) {
		s.current = current
	}
	if asked.After(s.asked) {
		s.asked = asked
	}
}

// opened returns the stream that is open and has been current, if there is one.
func (s *stream) opened() (number int, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number, s.open
}

// is reports whether a stream is the one that was opened last, and has not ended.
func (s *stream) is(number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number == number
}

// filled notes that the cache has the state of a list that was asked for at a time.
func (s *stream) filled(asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(asked, asked)
}

// live notes that a stream has everything up to a time, if it is still open.
func (s *stream) live(number int, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != number {
		return
	}
	s.open = true
	s.advance(since, since)
}

// age returns how old the cache may be: a year if it was filled with a past state, and its
// first stream has not caught up yet.
func (s *stream) age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(max(s.contact.now().Sub(s.current), 0), maxAge*time.Second)
}

// opened notes that a stream has been opened, by a request that was sent at a time. If it
// begins with coalesced history, the cache's log is not exact until it has reached what is
// current now. The age counts from the end of the stream before until that is reached, too: the
// first events of a stream say nothing of how many are to come.
func (s *source) opened(asked time.Time, arrives *arrivals, coalesced bool) {
	number := s.stream.begin(arrives)
	if !s.cache.IsReady() {
		s.stream.live(number, asked)
		return
	}
	if coalesced {
		s.cache.InexactThrough(math.MaxInt64)
		s.gaps.begin(s.cache.Reached())
		s.cache.BeginGap()
	}
	s.relay.wait.Go(func() {
		for s.stream.is(number) && s.running.Err() == nil {
			asked := s.relay.contact.now()
			if at, err := s.Current(s.running); err == nil {
				if coalesced {
					s.cache.InexactThrough(at)
					s.gaps.end(at)
				}
				s.catchUp(number, at, asked)
				return
			}
			s.pause(time.Second)
		}
	})
}

// catchUp waits until the cache has reached a version, which was current at a time.
func (s *source) catchUp(number int, at storage.Revision, asked time.Time) {
	for s.stream.is(number) && s.running.Err() == nil {
		if _, err := s.cache.NotOlderThan(s.running, at); err == nil {
			s.stream.live(number, asked)
			return
		}
		s.requestProgress(at)
	}
}

// unavailable is the error for a request to whose question the upstream has no answer.
func unavailable(err error) error {
	var network net.Error
	if errors.As(err, &network) || !client.IsStatus(err) {
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, apierrors.NewServiceUnavailable("the upstream of the relay does not answer: "+err.Error()))
	}
	return err
}
