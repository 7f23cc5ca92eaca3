package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/storage"
)

// A stream says how far it is by its events, and by a bookmark about once a minute. A
// consistent read of a resource in which nothing happens would wait for that. So the relay
// asks: it opens a second, short watch from where the cache is. An API server sends such a
// watch all events since, and a bookmark shortly before its end. A bookmark without an event
// says that the cache is up to date. An event says only that the stream is behind, and is not
// applied: coalesced history leaves out objects that were made and deleted meanwhile. If one
// stream brought such an object, and the other one took the cache past its deletion, the cache
// would keep the object for ever.
//
// A Levelwire upstream needs no second watch: the question which version is current names the
// stream (watchstream.ProgressHeader), and the upstream sends a bookmark on it.

// progress is what is known of requests for progress.
type progress struct {
	mu      sync.Mutex
	wanted  storage.Revision // the cache is to get there
	until   time.Time        // the stream itself may bring that until then
	chasing chan struct{}    // closed when the goroutine that asks ends; nil: none does
	stream  string           // the name of the stream that was opened last

	promised atomic.Bool // the upstream has said last that the stream will bring what it has named
}

const (
	// progressGrace is for how long the stream itself may bring the version, and promisedGrace
	// for how long it may if the upstream has said that it will.
	progressGrace, promisedGrace = 5 * time.Millisecond, 500 * time.Millisecond
	// progressRetry is how long to wait after a watch without a bookmark.
	progressRetry = 100 * time.Millisecond
	// progressAttempts is how many watches are opened for one version.
	progressAttempts = 8
	// shortWatch is for how long the first of these watches is open at most. A Levelwire
	// server sends the bookmark of a watch of a second at once; kube-apiserver sends it a
	// second after the start of one of three.
	shortWatch, longerWatch = 1, 3
)

// requestProgress makes the cache reach a version soon, if the upstream has it.
func (s *source) requestProgress(to storage.Revision) { s.awaitProgress(to, progressGrace) }

// awaitProgress is requestProgress when the stream itself has had some time.
func (s *source) awaitProgress(to storage.Revision, grace time.Duration) {
	p := &s.progress
	until := time.Now().Add(grace)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = max(p.wanted, to)
	if until.After(p.until) {
		p.until = until
	}
	if p.chasing == nil {
		p.chasing = make(chan struct{})
		s.relay.wait.Go(s.chase)
	}
}

// chase opens watches until the cache is where it is wanted.
func (s *source) chase() {
	attempt, nothing, mayWait := 0, 0, true
	var waited time.Time
	for {
		s.progress.mu.Lock()
		wanted, until := s.progress.wanted, s.progress.until
		silent, hears := s.silence.is()
		if silent || s.cache.Reached() >= wanted || attempt == progressAttempts || s.running.Err() != nil {
			if !silent && s.cache.Reached() >= wanted {
				s.notePromiseKept(wanted)
			}
			close(s.progress.chasing)
			s.progress.chasing, s.progress.wanted, s.progress.until = nil, 0, time.Time{}
			s.progress.mu.Unlock()
			return
		}
		s.progress.mu.Unlock()
		if mayWait && until.After(waited) {
			waited = until
			mayWait = s.reaches(s.running, wanted, time.Until(until))
			continue
		}
		attempt++
		s.relay.counts.chases.Add(1)
		seconds := int64(shortWatch)
		if s.relay.lateBookmarks.Load() {
			seconds = longerWatch
		}
		switch ended := s.chaseOnce(seconds); {
		case ended && seconds == longerWatch:
			if nothing++; nothing == silentWatches || !hears {
				s.silence.noteSilent()
			}
		case ended:
			s.relay.lateBookmarks.Store(true)
		case s.cache.Reached() < wanted:
			s.pause(progressRetry)
		}
	}
}

// notePromiseKept notes that the stream has brought a version, if the upstream had said that it would. A relay promises what it has, also
// before it knows whether its own upstream is silent. What a change has brought says nothing of how far the stream is without
// one; a shard does not get all changes.
func (s *source) notePromiseKept(wanted storage.Revision) {
	if s.progress.promised.Load() && s.cache.StateRevision() < wanted && s.relay.opts.Shard == nil {
		s.silence.noteHeard()
	}
}

// pause waits, unless the source is dropped.
func (s *source) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.running.Done():
	}
}

// chaseOnce reads one watch until the cache is where it is wanted, or the watch brings a change.
// It returns true if the watch has ended, after the time for which it was asked, without an event or a bookmark.
func (s *source) chaseOnce(seconds int64) (ended bool) {
	ctx, cancel := context.WithTimeout(s.running, questionTimeout)
	defer cancel()
	s.applying.Lock()
	unchanged := unchangedSince{s.epoch, s.cache.StateRevision(), s.cache.Reached()}
	s.applying.Unlock()
	ctx, answer := askingHowFar(ctx)
	asked, most := time.Now(), time.Duration(seconds)*time.Second
	w, err := s.watch(ctx, metav1.ListOptions{
		ResourceVersion: strconv.FormatInt(int64(unchanged.reached), 10), AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return false
	}
	defer w.watch.Close()
	if answer.none {
		s.silence.noteSilent()
		return false
	}
	if w.coalesced {
		closed := s.gaps.open(unchanged.reached)
		s.cache.BeginGap()
		defer func() { closed(s.cache.Reached()) }()
	}
	for bookmarks := 0; ; bookmarks++ {
		event, err := w.next()
		if err != nil {
			// A server that stops ends watches early. Its clock may be a little faster than this one.
			return errors.Is(err, io.EOF) && bookmarks == 0 && time.Since(asked) > most*9/10
		}
		if event.Type != apiwatch.Bookmark {
			s.silence.noteBehind()
			return false // the stream brings it
		}
		revision, err := strconv.ParseInt(event.Object.ResourceVersion, 10, 64)
		if err != nil || !s.advance(unchanged, storage.Revision(revision)) {
			return false
		}
		s.progress.mu.Lock()
		done := s.cache.Reached() >= s.progress.wanted
		s.progress.mu.Unlock()
		if done {
			s.silence.noteHeard()
			return false
		}
	}
}

// unchangedSince is where a cache was when it was asked what has changed since.
type unchangedSince struct {
	epoch          int
	state, reached storage.Revision
}

// advance notes that the upstream has no change between where the cache was and a version. If the
// cache has changed meanwhile, that says nothing, and advance returns false.
func (s *source) advance(since unchangedSince, to storage.Revision) bool {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.epoch != since.epoch || s.cache.StateRevision() != since.state {
		return false
	}
	s.complete = max(s.complete, to)
	s.follows.Publish(to)
	return true
}

// follow notes which stream was opened last.
func (p *progress) follow(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stream = name
}

// progressAnswer is what the upstream says of the stream when it is asked.
type progressAnswer struct {
	promised bool // the stream will bring the version of the answer
	none     bool // nothing says how far the stream is
}

// asking returns the context for the question which version is current, and where the answer is noted.
func (p *progress) asking(ctx context.Context) (context.Context, *progressAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := new(progressAnswer)
	return context.WithValue(ctx, progressKey{}, progressRequest{p.stream, answer}), answer
}

// askingHowFar is asking for a watch. It has a name, by which a relay knows the question.
func askingHowFar(ctx context.Context) (context.Context, *progressAnswer) {
	answer := new(progressAnswer)
	return context.WithValue(ctx, progressKey{}, progressRequest{rand.Text(), answer}), answer
}

// namingWatch returns the context for a watch that has a name.
func namingWatch(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, progressKey{}, progressRequest{name: name})
}

type progressKey struct{}

// progressRequest is the value of a context whose request names a stream.
type progressRequest struct {
	name   string          // ""; none is known
	answer *progressAnswer // nil: the request is for the stream
}

// asksForProgress sends the names of streams.
type asksForProgress struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a asksForProgress) RoundTrip(req *http.Request) (*http.Response, error) {
	asks, ok := req.Context().Value(progressKey{}).(progressRequest)
	if !ok {
		return a.next.RoundTrip(req)
	}
	if asks.name != "" {
		req = req.Clone(req.Context())
		req.Header.Set(watchstream.ProgressHeader, asks.name)
	}
	response, err := a.next.RoundTrip(req)
	if err == nil && asks.answer != nil {
		said := response.Header.Get(watchstream.ProgressHeader)
		*asks.answer = progressAnswer{promised: said != "" && said == asks.name, none: said == watchstream.NoProgress}
	}
	return response, err
}

// CloseIdleConnections closes those of the round tripper below, which http.Client looks for.
func (a asksForProgress) CloseIdleConnections() {
	if c, ok := a.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
