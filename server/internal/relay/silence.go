package relay

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// Of some resources an upstream does not say how far their stream is while nothing changes in them: kube-apiserver has no watch
// cache of Events, and sends no bookmarks for them. The cache of such a resource cannot be known to have reached a version,
// which is that of all resources. What depends on that is passed on: consistent reads, and watches from a
// version that the cache has not reached. Reads of any state, and watches from a version of its history, are answered as ever.
//
// Of relays in a row, the one in front of that upstream finds out by a watch in which nothing comes. It tells the others, by the header of
// what it passes on.

// silence is whether the upstream is silent about a resource. The zero value is that it is not known.
type silence struct {
	mu    sync.Mutex
	heard bool               // the last time that it mattered, the upstream has said how far the stream is
	found bool               // the last time that it mattered, it has not
	until time.Time          // it is believed to be silent until then
	begun context.Context    // ends when the upstream is found to be silent; nil if nobody waits for that
	begin context.CancelFunc // ends begun
}

const (
	// silentFor is how long an upstream is believed to be silent about a resource. The next request after that finds out anew.
	silentFor = time.Minute
	// silentWatches is how many watches in a row have to end without a bookmark until an upstream counts as silent
	// that has sent bookmarks before: it may only be slow, and what is passed on makes it slower.
	silentWatches = 2
	// silencePatience is how long a watch waits for that to be found out, which takes shortWatch and longerWatch.
	silencePatience = 10 * time.Second
)

// noteHeard notes that the upstream has said how far the stream is.
func (q *silence) noteHeard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.heard, q.found, q.until = true, false, time.Time{}
}

// noteBehind notes that the upstream has changes that the stream has not brought yet: then the age of the cache counts.
func (q *silence) noteBehind() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.found = false
}

// noteSilent notes that the upstream does not say how far the stream is, which is believed for some time.
func (q *silence) noteSilent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.heard, q.found, q.until = false, true, time.Now().Add(silentFor)
	if q.begun != nil {
		q.begin()
		q.begun, q.begin = nil, nil
	}
}

// is reports whether the upstream is silent, and hears whether it is known that it is not.
func (q *silence) is() (silent, hears bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Now().Before(q.until), q.heard
}

// wasFound reports whether the upstream was silent when that was last found out. The age of such a cache says nothing: what depends on
// it is passed on.
func (q *silence) wasFound() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.found
}

// begins returns a context that ends when the upstream is found to be silent.
func (q *silence) begins() context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Now().Before(q.until) {
		begun, begin := context.WithCancel(context.Background())
		begin()
		return begun
	}
	if q.begun == nil {
		q.begun, q.begin = context.WithCancel(context.Background())
	}
	return q.begun
}

// awaitUnlessSilent waits for the cache to reach a version, and reports whether it has. It fails with apiserver.ErrNoProgress if the
// upstream is silent.
func (s *source) awaitUnlessSilent(ctx context.Context, at storage.Revision, most time.Duration) (reached bool, err error) {
	if s.cache.Reached() >= at {
		return true, nil
	}
	silent := s.silence.begins()
	wait, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(silent, cancel)()
	s.requestProgress(at)
	switch err := s.follows.Wait(wait, at); {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case silent.Err() != nil:
		return false, apiserver.ErrNoProgress
	}
	return false, nil
}

// mustReach is awaitUnlessSilent for what cannot be answered before.
func (s *source) mustReach(ctx context.Context, at storage.Revision, most time.Duration) error {
	reached, err := s.awaitUnlessSilent(ctx, at, most)
	if reached || err != nil {
		return err
	}
	return status.ResourceVersionTooLarge(at, s.cache.Reached())
}

// prepareCurrent gets the cache ready for a watch that begins with the most recent state: whether it has that has to be known before the
// answer begins, unless the upstream is known to say so. It returns the version of that state; 0: the watch has to ask.
func (s *source) prepareCurrent(ctx context.Context) (storage.Revision, error) {
	silent, hears := s.silence.is()
	switch {
	case silent:
		return 0, apiserver.ErrNoProgress
	case hears:
		return 0, nil
	}
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	at, err := s.Current(ctx)
	switch {
	case s.isBroken(), errors.Is(err, errMayNotList):
		return 0, apiserver.ErrNotCached
	case err != nil:
		return 0, err
	}
	return at, s.mustReach(ctx, at, silencePatience)
}

// asksHowFar reports whether a watch is one by which a relay asks how far the stream is (source.chaseOnce).
func asksHowFar(req *http.Request) bool {
	seconds, err := strconv.Atoi(req.URL.Query().Get("timeoutSeconds"))
	return err == nil && seconds > 0 && seconds <= longerWatch && watchstream.NameOf(req) != ""
}

// prepareHowFar gets the cache ready for such a watch: that ends with how far the cache is, unless this relay's upstream is silent.
func (s *source) prepareHowFar(ctx context.Context) error {
	if _, err := s.prepareCurrent(ctx); errors.Is(err, apiserver.ErrNotCached) {
		return err
	}
	return nil // the cache says what it has
}
