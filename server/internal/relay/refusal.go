package relay

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/storage"
)

// An upstream refuses what the relay may not see, and also what it cannot decide about yet: a kube-apiserver that has just started
// answers 403 to everybody but system:masters until it has read its roles and bindings. So the relay asks it, by
// SelfSubjectAccessReviews, whether the right is gone. An upstream that has not read its roles refuses these questions, too.

// refusalPatience is for how long a relay keeps what it has of a resource that the upstream refuses without saying that the right is
// gone. Clients see no more of it than the upstream has allowed them before, for --authorization-cache-ttl.
const refusalPatience = 30 * time.Second

// refusals are the refusals of one resource. They are safe for concurrent use.
type refusals struct {
	mu    sync.Mutex
	first time.Time // of those in a row; zero: the last answer was none
}

// end notes that the upstream has shown the resource.
func (f *refusals) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first = time.Time{}
}

// lastFor notes a refusal, and returns for how long there has been nothing else.
func (f *refusals) lastFor(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first.IsZero() {
		f.first = now
	}
	return now.Sub(f.first)
}

// final notes a refusal, and reports whether the relay may not see the resource any more: the upstream says so, or has refused
// for refusalPatience. It asks the upstream, and waits for the answer.
func (f *refusals) final(ctx context.Context, r *Relay, resource schema.GroupResource) bool {
	if f.lastFor(r.contact.now()) >= refusalPatience {
		return true
	}
	for _, verb := range []string{"list", "watch"} {
		if allowed, err := r.may(ctx, onResource(verb, resource.Group, resource.Resource, "")); err == nil && !allowed {
			return true
		}
	}
	return false
}

// isNotShown reports whether an error says that the upstream does not have a resource, or does not show it to the relay. It notes
// refusals: see final.
func (f *refusals) isNotShown(ctx context.Context, r *Relay, resource schema.GroupResource, err error) bool {
	if isRefusal(err) {
		return f.final(ctx, r, resource)
	}
	return client.IsStatus(err) && (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err))
}

// refused is called when the upstream has refused to list or watch the resource. It drops the source, unless the upstream may only have
// to read its roles, and returns an error for who waits for the answer.
func (s *source) refused(refusals *refusals, err error) error {
	// Nobody uses what the cache has before its first fill: requests that are passed on wait less.
	if !s.cache.IsReady() || refusals.final(s.running, s.relay, s.res.GroupResource()) {
		// The relay shows nothing that it may not see itself any more.
		s.breakUp(err)
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, apierrors.NewServiceUnavailable("the upstream refuses the relay: "+err.Error()))
}

// isRefusal reports whether an upstream has refused a request because of who asks.
func isRefusal(err error) bool { return client.IsStatus(err) && apierrors.IsForbidden(err) }
