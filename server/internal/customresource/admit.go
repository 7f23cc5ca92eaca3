package customresource

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// serveTimeout bounds how long the answer to a write of a definition waits for
// what it defines. It takes milliseconds.
const serveTimeout = time.Second

// own marks the writes of the lifecycle itself, which must not wait for it.
type own struct{}

func withoutWaiting(ctx context.Context) context.Context { return context.WithValue(ctx, own{}, true) }

// Admit is a registry.Admission. It refuses new objects of a definition that is
// being deleted, and lets the answer to a write of a definition wait until
// this server serves what it says, so that the client's next request finds it.
func (l *Lifecycle) Admit(ctx context.Context, q *registry.Request) error {
	if q.Resource == l.opts.Definitions {
		if (q.Operation == registry.Create || q.Operation == registry.Update) && q.Subresource == "" && !q.DryRun && ctx.Value(own{}) == nil {
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
	refused := apierrors.NewMethodNotSupported(q.Resource.GroupResource(), "create")
	refused.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
	refused.ErrStatus.Code, refused.ErrStatus.Reason = http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed
	return refused
}

// catchUp waits until every definition that is in the store now is installed.
// If that takes too long the client finds out as it would elsewhere: by the
// condition Established.
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
	case l.kick <- struct{}{}: // its cache has come so far; the loop may sleep
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
