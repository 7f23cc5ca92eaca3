package resourcequota

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// batchTimeout bounds how long the quotas of a namespace are read and written for one
// batch.
const batchTimeout = 10 * time.Second

// batches hold back claims on the quotas of a namespace while another batch of that
// namespace is being decided.
type batches struct {
	mu         sync.Mutex
	namespaces map[string]*batch // those of which a batch is being decided
}

// batch is the claims that the next write decides.
type batch struct{ waiting []*claim }

// settle decides a claim. There is no goroutine for that: the request that finds no
// batch being decided decides its own, and then has the first that has come meanwhile
// decide the next one. It waits also when its client has gone, for batchTimeout at
// most for each batch: a claim that is being written cannot be called back.
func (p *Plugin) settle(namespace string, quotas registry.Registry, c *claim) error {
	if !p.batches.enter(namespace, c) {
		<-c.turn
		if c.settled {
			return c.err
		}
	}
	p.decideNext(namespace, quotas, c)
	return c.err
}

// decideNext decides the namespace's next batch, of which c is one claim. If that panics,
// the other claims are refused: nothing has been claimed for them.
func (p *Plugin) decideNext(namespace string, quotas registry.Registry, c *claim) {
	members, decided := p.batches.take(namespace), false
	defer func() {
		if !decided {
			fail(members, apierrors.NewInternalError(errors.New("resource quota evaluation failed")))
		}
		p.batches.leave(namespace)
		for _, member := range members {
			if member != c {
				member.settled = true
				close(member.turn)
			}
		}
	}()
	// The quotas are written on behalf of the server, not of the user: so nothing of the
	// request's context counts.
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	round{ctx: ctx, quotas: quotas, namespace: namespace}.decide(members)
	decided = true
}

// enter adds a claim to the namespace's next batch. It reports whether no batch is being
// decided, so that the caller has to decide; otherwise the claim's turn ends the wait.
func (b *batches) enter(namespace string, c *claim) (decide bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.namespaces[namespace]
	if next == nil {
		b.namespaces[namespace] = &batch{waiting: []*claim{c}}
		return true
	}
	c.turn = make(chan struct{})
	next.waiting = append(next.waiting, c)
	return false
}

// take returns the claims that have come, which are decided now.
func (b *batches) take(namespace string) []*claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.namespaces[namespace]
	members := next.waiting
	next.waiting = nil
	return members
}

// leave lets the first of the waiting requests decide the next batch.
func (b *batches) leave(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.namespaces[namespace]
	if len(next.waiting) == 0 {
		delete(b.namespaces, namespace)
		return
	}
	close(next.waiting[0].turn)
}
