package reflector

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A server that does not know of streaming lists opens an ordinary watch for one, and says nothing while nothing
// changes, as aggregated servers with a storage of their own do. So the server is asked for a list of one object when a
// streaming list has been silent for doubtAfter. If it answers, it is neither slow nor out of reach: the stream is given
// up if it stays silent for another doubtPause and doubtFactor times as long as the answer took. An event that arrives in
// parts is no silence: a server that sends it has begun.
const (
	doubtAfter  = 5 * time.Second
	doubtLooks  = 5
	doubtPause  = 2 * time.Second
	doubtFactor = 4
)

var errNoInitialEvents = fmt.Errorf("%w, while it answered a list: it may have no streaming lists", errSilent)

// doubt begins to look whether the server sends what a streaming list consists of. The returned function ends that, and
// waits until it has ended.
func (r *Reflector[T]) doubt(s *session[T]) (stop func()) {
	if r.opts.InitialEventsTimeout < 0 {
		return func() {} // the server may take as long as it wants
	}
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.doubtSilence(ctx, s)
	}()
	return func() { cancel(); <-ended }
}

// doubtSilence gives the stream up as doubtAfter says, or returns when ctx ends.
func (r *Reflector[T]) doubtSilence(ctx context.Context, s *session[T]) {
	ticker := time.NewTicker(doubtAfter / doubtLooks)
	defer ticker.Stop()
	for looks, seen := 0, uint64(0); ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if now, silent := s.dog.headway(); now != seen || !silent {
			looks, seen = 0, now
			continue
		}
		if looks++; looks < doubtLooks {
			continue
		}
		looks = 0
		asked := time.Now()
		if _, err := r.source.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			continue
		}
		sleep(ctx, doubtPause+doubtFactor*time.Since(asked))
		if now, silent := s.dog.headway(); now == seen && silent && ctx.Err() == nil {
			s.cancel(errNoInitialEvents)
			return
		}
	}
}
