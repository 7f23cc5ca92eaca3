package reflector

import (
	"context"
	"fmt"
)

// questions are those of RequestProgress to a Reflector for which lists stand for the watch,
// as the server refuses that. A list that began after a question answers it. They belong to
// progress, whose mu guards them.
type questions struct {
	polling     bool // lists stand for the watch
	unversioned bool // the lists have no resourceVersion
	waiting     map[*question]struct{}
}

type question struct {
	done     chan struct{} // closed when it is answered, or there are no lists any more
	listed   bool          // the list under way has begun after it
	answered bool
}

// askPolls waits until a list that begins after the call is in the store. asked is false if
// the watch is not refused, or no longer, and can be asked.
func (r *Reflector[T]) askPolls(ctx context.Context, wanted string) (asked bool, err error) {
	r.progress.mu.Lock()
	q := &r.progress.questions
	switch {
	case q.unversioned:
		r.progress.mu.Unlock()
		return true, fmt.Errorf("%w: its lists have none", ErrOtherVersions)
	case !q.polling:
		r.progress.mu.Unlock()
		return false, nil
	}
	asking := &question{done: make(chan struct{})}
	if q.waiting == nil {
		q.waiting = map[*question]struct{}{}
	}
	q.waiting[asking] = struct{}{}
	r.progress.mu.Unlock()
	select {
	case <-asking.done:
	case <-ctx.Done():
		r.progress.mu.Lock()
		delete(q.waiting, asking)
		r.progress.mu.Unlock()
		return true, fmt.Errorf("%w: %w", ErrNoProgress, context.Cause(ctx))
	}
	if !asking.answered {
		return false, nil
	}
	if version := r.LastSyncResourceVersion(); older(version, wanted) {
		return true, fmt.Errorf("%w: %s, and the most recent state is %s", ErrOtherVersions, wanted, version)
	}
	return true, nil
}

// polls notes whether lists stand for the watch.
func (r *Reflector[T]) polls(yes bool) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	if r.progress.polling = yes; yes {
		return
	}
	for asking := range r.progress.waiting { // no list may follow
		r.progress.end(asking)
	}
}

// listBegins notes that a list is asked for, and returns whether somebody waits for one: it
// has to be of the most recent state then.
func (r *Reflector[T]) listBegins() (wanted bool) {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	for asking := range r.progress.waiting {
		asking.listed = true
	}
	return len(r.progress.waiting) > 0
}

// answer ends the questions that were asked before the list that is now in the store. It
// needs mu.
func (q *questions) answer() {
	for asking := range q.waiting {
		if asking.listed {
			asking.answered = true
			q.end(asking)
		}
	}
}

// end needs mu.
func (q *questions) end(asking *question) {
	close(asking.done)
	delete(q.waiting, asking)
}
