package webhookauthorizer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// questions asks the other server once for all requests that ask the same at the same time,
// as the informers of one program do that come back together: their answer is not cached yet.
// There are never more questions than requests that wait for them.
type questions struct {
	ask     func(context.Context, auth.Attributes) (auth.Decision, string, error)
	answers answers
	// share is for how long after a question is asked others may share its answer: no longer
	// than they could get it from the cache.
	share time.Duration
	now   func() time.Time

	mu    sync.Mutex
	asked map[digest]*question // by what is asked: the latest each
}

// question is shared by requests.
type question struct {
	asked  time.Time
	cancel context.CancelFunc
	done   chan struct{} // closed when there is an answer

	decision auth.Decision // the answer: to be read when done is closed
	reason   string
	err      error

	requests int // that wait for the answer; guarded by questions.mu
}

// Authorize returns the answer to a question, which another request may have asked, or which is
// remembered.
func (q *questions) Authorize(ctx context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if a.OnResource() {
		a.Path = "" // the question does not have it
	}
	encoded, err := json.Marshal(a)
	if err != nil {
		return q.ask(ctx, a)
	}
	key := digest(sha256.Sum256(encoded))
	if decision, reason, ok := q.answers.get(key); ok {
		return decision, reason, nil
	}
	if err := ctx.Err(); err != nil { // a health check, which does not wait
		return auth.NoOpinion, "", err
	}
	if q.share <= 0 {
		return q.askAndKeep(ctx, key, a)
	}
	shared := q.join(ctx, key, a)
	defer q.leave(shared)
	select {
	case <-shared.done:
		return shared.decision, shared.reason, shared.err
	case <-ctx.Done():
		return auth.NoOpinion, "", ctx.Err()
	}
}

// askAndKeep asks a question, and remembers the answer.
func (q *questions) askAndKeep(ctx context.Context, key digest, a auth.Attributes) (auth.Decision, string, error) {
	forgotten := q.answers.asking()
	decision, reason, err := q.ask(ctx, a)
	if err == nil {
		q.answers.keep(key, decision, reason, forgotten)
	}
	return decision, reason, err
}

// forget has each question asked anew, also those that are being asked.
func (q *questions) forget() {
	q.mu.Lock()
	clear(q.asked)
	q.mu.Unlock()
	q.answers.forget()
}

// join returns a question, which the caller must leave.
func (q *questions) join(ctx context.Context, key digest, a auth.Attributes) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if shared := q.asked[key]; shared != nil && shared.requests > 0 && now.Sub(shared.asked) < q.share {
		shared.requests++
		return shared
	}
	// The question does not end with the request that was the first to ask it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	shared := &question{asked: now, cancel: cancel, done: make(chan struct{}), requests: 1}
	q.asked[key] = shared
	go q.run(ctx, key, shared, a)
	return shared
}

// leave ends a request's interest in a question, which ends with the last one's.
func (q *questions) leave(shared *question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	shared.requests--
	if shared.requests == 0 {
		shared.cancel()
	}
}

// run asks a question.
func (q *questions) run(ctx context.Context, key digest, shared *question, a auth.Attributes) {
	defer func() {
		// A request's own goroutine would survive a panic; this one is shared.
		if reason := recover(); reason != nil {
			shared.decision, shared.err = auth.NoOpinion, fmt.Errorf("panic: %v", reason)
		}
		q.mu.Lock()
		if q.asked[key] == shared {
			delete(q.asked, key)
		}
		q.mu.Unlock()
		close(shared.done)
	}()
	shared.decision, shared.reason, shared.err = q.askAndKeep(ctx, key, a)
}
