// Package tokencache remembers what an authenticator that is slow, or that asks another
// server, has found out about bearer tokens: for a short time, and of a bounded number of
// tokens.
package tokencache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// Options are the options of a Cache.
type Options struct {
	// Success and Failure are how long a token that was accepted, or refused, is
	// remembered. A failure that is not a refusal, because the authenticator could not
	// be asked, is never remembered. Zero: not at all.
	Success, Failure time.Duration
	// End returns when a token that was accepted ends, if that is known: it is not
	// remembered for longer. Optional.
	End func(token string) (time.Time, bool)
	// Timeout bounds a question to the authenticator. Default 10 s.
	Timeout time.Duration
	// Entries bounds the tokens that are remembered of each kind, accepted and refused.
	// Default 4096.
	Entries int
	// Questions bounds how many questions are asked at a time. Default 256.
	Questions int
	// Waiting bounds how many more tokens wait for their question to be asked, each for
	// at most Timeout. Requests with further tokens are refused at once. Default 1024.
	Waiting int
	// Metrics counts; nil: nothing does.
	Metrics *Metrics
}

// Cache asks an authenticator once for all requests that have the same token. It is safe
// for concurrent use.
type Cache struct {
	next     auth.TokenAuthenticator
	opts     Options
	accepted *cache.LRUExpireCache // of auth.Identity
	refused  *cache.LRUExpireCache // of error
	asking   chan struct{}         // has an element for each question that is being asked

	mu        sync.Mutex
	questions map[key]*question // that are being asked, or wait for that
	waiting   int               // those of the questions that wait
}

// question is shared by all requests that have the same token.
type question struct {
	done     chan struct{} // closed when there is an answer
	identity auth.Identity // the answer: to be read when done is closed
	err      error

	requests int  // that wait for the answer; guarded by Cache.mu
	started  bool // it is being asked; guarded by Cache.mu
}

// New returns a Cache in front of an authenticator.
func New(next auth.TokenAuthenticator, opts Options) *Cache {
	if opts.Timeout <= 0 {
		opts.Timeout = 10 * time.Second
	}
	if opts.Entries <= 0 {
		opts.Entries = 4096
	}
	if opts.Questions <= 0 {
		opts.Questions = 256
	}
	if opts.Waiting <= 0 {
		opts.Waiting = 1024
	}
	return &Cache{
		next: next, opts: opts, accepted: cache.NewLRUExpireCache(opts.Entries), refused: cache.NewLRUExpireCache(opts.Entries),
		asking: make(chan struct{}, opts.Questions), questions: map[key]*question{},
	}
}

// key identifies a question without holding the token.
type key [sha256.Size]byte

func keyOf(token string, audiences []string) key {
	h := sha256.New()
	write(h, token)
	for _, audience := range audiences {
		write(h, audience)
	}
	return key(h.Sum(nil))
}

// write adds a string and its length, so that no two lists of strings are alike.
func write(h hash.Hash, s string) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(s)))
	h.Write(size[:])
	h.Write([]byte(s))
}

// AuthenticateToken implements auth.TokenAuthenticator.
func (c *Cache) AuthenticateToken(ctx context.Context, token string, audiences []string) (auth.Identity, error) {
	begin := time.Now()
	k := keyOf(token, audiences)
	if identity, err, known := c.lookup(k); known {
		c.opts.Metrics.hit(begin)
		return identity, err
	}
	defer c.opts.Metrics.miss(begin)()
	if err := ctx.Err(); err != nil {
		return auth.Identity{}, err
	}
	q, slot, err := c.join(k)
	if err != nil {
		return auth.Identity{}, err
	}
	defer c.leave(k, q)
	deadline := time.Now().Add(c.opts.Timeout)
	timer := time.NewTimer(c.opts.Timeout)
	defer timer.Stop()
	// The request's own goroutine waits for the slot: none is left behind when the
	// request ends.
	slots, expired := c.asking, timer.C
	for {
		switch slot {
		case taken:
			// The question may be shared: it does not end with the request that started it.
			go c.run(context.WithoutCancel(ctx), deadline, q, k, strings.Clone(token), audiences)
			fallthrough
		case needless:
			slots, expired = nil, nil // the question has an end of its own
		}
		slot = awaited
		select {
		case <-q.done:
			return q.identity, q.err
		case slots <- struct{}{}:
			slot = c.start(ctx, q)
		case <-ctx.Done():
			return auth.Identity{}, ctx.Err()
		case <-expired:
			return auth.Identity{}, errTooMany
		}
	}
}

// slotState is what a request has to do with the slot that its question needs.
type slotState int

const (
	awaited  slotState = iota // neither this request nor another has taken one
	taken                     // by this request, which runs the question
	needless                  // another request has taken it
)

// join returns the question about a token, which the caller must leave, and run if it has
// taken the slot. It is an error if a new question would have to wait, and too many do.
func (c *Cache) join(k key) (*question, slotState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, slot := c.questions[k], awaited
	switch {
	case q == nil:
		q = &question{done: make(chan struct{})}
		select {
		case c.asking <- struct{}{}:
			q.started, slot = true, taken
		default:
			if c.waiting >= c.opts.Waiting {
				return nil, awaited, errTooMany
			}
			c.waiting++
		}
		c.questions[k] = q
	case q.started:
		slot = needless
	}
	q.requests++
	return q, slot, nil
}

// leave ends a request's interest in a question. One that has not been started, and that
// no request waits for, is forgotten.
func (c *Cache) leave(k key, q *question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q.requests--
	if q.requests == 0 && !q.started {
		delete(c.questions, k)
		c.waiting--
	}
}

// start makes the caller, which has waited for a slot and got it, the request that runs
// the question; or gives the slot back if another request does, or the caller's has ended.
func (c *Cache) start(ctx context.Context, q *question) slotState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.started || ctx.Err() != nil {
		<-c.asking
		if q.started {
			return needless
		}
		return awaited
	}
	q.started = true
	c.waiting--
	return taken
}

// run asks a question that was started, and gives its slot back.
func (c *Cache) run(ctx context.Context, deadline time.Time, q *question, k key, token string, audiences []string) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	q.err = ErrUnavailable // if the authenticator ends the goroutine
	defer func() {
		<-c.asking
		c.mu.Lock()
		delete(c.questions, k)
		c.mu.Unlock()
		close(q.done)
	}()
	q.identity, q.err = c.ask(ctx, k, token, audiences)
}

// lookup returns what is remembered.
func (c *Cache) lookup(k key) (identity auth.Identity, err error, known bool) { //nolint:revive,staticcheck // The error is a part of what is remembered.
	if identity, ok := c.accepted.Get(k); ok {
		return identity.(auth.Identity), nil, true
	}
	if err, ok := c.refused.Get(k); ok {
		return auth.Identity{}, err.(error), true
	}
	return auth.Identity{}, nil, false
}

// ErrUnavailable is wrapped by the errors of an authenticator that could not find out
// whether a token is valid.
var ErrUnavailable = errors.New("tokens cannot be checked at present")

var errTooMany = fmt.Errorf("%w: too many are being checked", ErrUnavailable)

// ask asks the authenticator, and remembers the answer.
func (c *Cache) ask(ctx context.Context, k key, token string, audiences []string) (identity auth.Identity, err error) {
	defer func() {
		// The request's own goroutine would survive a panic; this one is shared.
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%w: %v", ErrUnavailable, reason)
		}
	}()
	if identity, err, known := c.lookup(k); known {
		return identity, err
	}
	answered := c.opts.Metrics.fetch()
	defer func() { answered(err) }()
	identity, err = c.next.AuthenticateToken(ctx, token, audiences)
	switch {
	case err == nil:
		if keep := c.keep(token); keep > 0 {
			c.accepted.Add(k, identity, keep)
		}
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	case !errors.Is(err, ErrUnavailable) && c.opts.Failure > 0:
		c.refused.Add(k, err, c.opts.Failure)
	}
	return identity, err
}

// keep returns how long an accepted token is remembered.
func (c *Cache) keep(token string) time.Duration {
	keep := c.opts.Success
	if c.opts.End != nil {
		if end, ok := c.opts.End(token); ok {
			keep = min(keep, time.Until(end))
		}
	}
	return keep
}
