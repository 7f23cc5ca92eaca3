package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/storage"
)

// questionTimeout bounds one question.
const questionTimeout = 10 * time.Second

// Current implements storage.Reader: it returns the version of the resource when the
// upstream was asked, which is after the call, or after the request of a watch has come. The cache then gets there soon.
func (s *source) Current(ctx context.Context) (storage.Revision, error) {
	if silent, _ := s.silence.is(); silent && apiserver.MayPassOn(ctx) {
		return 0, apiserver.ErrNoProgress
	}
	if at := apiserver.Beginning(ctx); at > 0 {
		return at, nil
	}
	q := s.current.ask(s.relay.wait.Go, s.askUpstream)
	select {
	case <-q.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if apiserver.MayPassOn(ctx) && (s.isBroken() || errors.Is(q.err, errMayNotList)) {
		return 0, apiserver.ErrNotCached
	}
	if q.err != nil || !apiserver.MayPassOn(ctx) || s.cache.Reached() >= q.answer {
		return q.answer, q.err
	}
	return q.answer, s.awaitOrPassOn(ctx, q.answer)
}

const (
	// passOnAfter is how long a list waits for the cache before it is passed on, if few are.
	passOnAfter = 100 * time.Millisecond
	// maxPassedOn is how many lists of a resource are passed on at a time because its cache
	// is behind. The others wait: they may be many.
	maxPassedOn = 2
)

// awaitOrPassOn waits a moment for the cache to reach a version. If it has not, one of few
// requests is passed on: it fails with apiserver.ErrNotCached.
func (s *source) awaitOrPassOn(ctx context.Context, at storage.Revision) error {
	reached, err := s.awaitUnlessSilent(ctx, at, passOnAfter)
	if reached || err != nil {
		return err
	}
	if s.lists.Add(1) > maxPassedOn {
		s.lists.Add(-1)
		return s.mustReach(ctx, at, s.relay.opts.Cache.FreshnessWait)
	}
	context.AfterFunc(ctx, func() { s.lists.Add(-1) })
	return apiserver.ErrNotCached
}

// askUpstream lists at most one object of the most recent state.
func (s *source) askUpstream() (storage.Revision, error) {
	ctx, cancel := context.WithTimeout(s.running, questionTimeout)
	defer cancel()
	before := s.cache.Reached()
	s.relay.counts.questions.Add(1)
	asking, answer := s.progress.asking(ctx)
	list, err := s.endpoint.List(asking, metav1.ListOptions{Limit: 1})
	switch {
	case isRefusal(err):
		return 0, s.questionRefused(err)
	case apierrors.IsNotFound(err):
		s.confirmGone()
		return 0, unavailable(err)
	case err != nil:
		return 0, unavailable(err)
	}
	s.unanswered.end()
	revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the upstream's list has the resourceVersion %q, which is not a number that fits 63 bits", list.ResourceVersion)
	}
	at := storage.Revision(revision)
	s.progress.promised.Store(answer.promised)
	if answer.none {
		s.silence.noteSilent()
	}
	switch reached := s.cache.Reached(); {
	case at < before:
		s.relay.counts.rewound.Add(1)
		s.breakUp(fmt.Errorf("the upstream has gone back in time, from version %d to %d, as after the restore of a backup", before, at))
	case at > reached && answer.promised:
		s.awaitProgress(at, s.relay.promisedGrace)
	case at > reached:
		s.requestProgress(at)
	}
	return at, nil
}
