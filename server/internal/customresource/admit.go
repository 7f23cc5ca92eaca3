package customresource

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// serveTimeout bounds how long the answer to a write of a definition waits until
// its resources are served, which takes milliseconds unless the machine is busy.
const serveTimeout = 5 * time.Second

// lifecycleWrite marks the context of the Lifecycle's own writes, which must not
// wait for the Lifecycle.
type lifecycleWrite struct{}

func withoutWaiting(ctx context.Context) context.Context {
	return context.WithValue(ctx, lifecycleWrite{}, true)
}

// Admit is a registry.Admission. It refuses new objects of a definition that is
// being deleted. It delays the answer to a write of a definition until this server
// serves the definition, so that the client's next request finds its resources, or,
// after a DELETE, can create no more objects.
func (l *Lifecycle) Admit(ctx context.Context, q *registry.Request) error {
	if q.Resource == l.opts.Definitions {
		if q.Operation != registry.Remove && q.Subresource == "" && !q.DryRun && ctx.Value(lifecycleWrite{}) == nil {
			q.Finally(func(ctx context.Context, outcome registry.Outcome) {
				if outcome == registry.Committed {
					l.catchUp(ctx)
				}
			})
		}
		return nil
	}
	if q.Operation != registry.Create || !q.Resource.Stored().Mixed || !l.isTerminating(q.Resource.Stored()) {
		return nil
	}
	return apierrors.NewForbidden(q.Resource.GroupResource(), q.Name, errTerminating)
}

var errTerminating = errors.New("create not allowed while custom resource definition is terminating")

// catchUp waits until every definition that is in the store now is installed. If
// that takes too long, the client has to wait for the condition Established, as
// with Kubernetes.
func (l *Lifecycle) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	now, err := l.opts.Store.Current(ctx)
	if err != nil {
		return
	}
	if _, err := l.opts.DefinitionCache.NotOlderThan(ctx, now); err != nil {
		return
	}
	select {
	case l.wakeup <- struct{}{}: // the cache of definitions has reached now; the loop may sleep
	default:
	}
	_ = l.handled.Wait(ctx, now)
}

func (l *Lifecycle) setTerminating(stored *resource.Resource, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is {
		l.terminating[stored] = true
	} else {
		delete(l.terminating, stored)
	}
}

func (l *Lifecycle) isTerminating(stored *resource.Resource) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terminating[stored]
}
