package resourcequota

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/quota"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// commitTimeout is how long after its claim an object may be written. The resource quota
// controller relies on it: three times as long after the last claim of a quota, it takes
// what is claimed and not there for left behind.
const commitTimeout = 10 * time.Second

// Plugin is the admission plugin ResourceQuota. It is safe for concurrent use.
type Plugin struct {
	set     *registry.Set
	limited Limited
	now     func() time.Time
	batches batches
}

// New returns the plugin for the objects of a set. limited is what ParseConfig returns; it
// may be nil.
func New(set *registry.Set, limited Limited) *Plugin {
	return &Plugin{set: set, limited: limited, now: time.Now, batches: batches{namespaces: map[string]*batch{}}}
}

// Admit claims what the write will use, or refuses the write. It must be the last hook:
// what is claimed is what the hooks before have made of the object, and a write that one
// of them refuses claims nothing.
func (p *Plugin) Admit(ctx context.Context, q *registry.Request) error {
	if q.Namespace == "" || q.Operation != registry.Create && q.Operation != registry.Update || !mayUseMore(q) {
		return nil
	}
	quotas, ok := p.set.Lookup("", "v1", "resourcequotas")
	if !ok {
		return nil
	}
	limited := p.limited[q.Resource.GroupResource()]
	if has, err := hasQuotas(ctx, quotas, q.Namespace); err != nil || !has && len(limited) == 0 {
		return err
	}
	evaluator, ok := quota.For(q.Resource.GroupResource())
	if !ok {
		return nil
	}
	c := &claim{
		evaluator: evaluator, resource: q.Resource.GroupResource(), name: q.Name, subresource: q.Subresource,
		object: q.Object, old: q.Old, dryRun: q.DryRun, now: p.now(), limited: limited,
	}
	if err := p.settle(q.Namespace, quotas, c); err != nil {
		return err
	}
	if len(c.held) > 0 {
		q.CommitBy(time.Now().Add(commitTimeout))
		q.Finally(func(_ context.Context, outcome registry.Outcome) {
			if outcome == registry.Refused {
				// An error leaves the claim to the controller.
				_ = p.settle(q.Namespace, quotas, &claim{giveBack: c.held})
			}
		})
	}
	return nil
}

// hasQuotas reports whether a namespace has quotas. It asks the cache without waiting
// for this server's own writes: a quota limits nothing before its status says so, which
// another program writes. So a namespace without quotas does not wait for the claims of
// another.
func hasQuotas(ctx context.Context, quotas registry.Registry, namespace string) (bool, error) {
	cache := quotas.Cache()
	if cache == nil {
		return false, nil
	}
	if !cache.IsReady() {
		if err := cache.WaitReady(ctx); err != nil {
			return false, apierrors.NewServerTimeout(quotas.Resource().GroupResource(), "list", 1)
		}
	}
	return cache.Current().Count(namespace+"/", "") > 0, nil
}

// mayUseMore reports whether the write can use more of a quota than its object did
// before.
func mayUseMore(q *registry.Request) bool {
	if q.Operation == registry.Create {
		return q.Subresource == ""
	}
	switch object := q.Object.(type) {
	case *corev1.Pod:
		old, ok := q.Old.(*corev1.Pod)
		return ok && (q.Subresource == "resize" || q.Subresource == "" && hasDeadline(object) != hasDeadline(old))
	case *corev1.Service:
		return q.Subresource == ""
	case *corev1.PersistentVolumeClaim:
		return q.Subresource == "" || q.Subresource == "status"
	}
	return false
}

// hasDeadline reports whether the pod is in the scope Terminating.
func hasDeadline(pod *corev1.Pod) bool { return pod.Spec.ActiveDeadlineSeconds != nil }
