package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry/specstatus"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// prepare sets what clients do not decide in an object that they sent.
func (w *pendingWrite) prepare(ctx context.Context) {
	w.mergeOwners(false)
	switch w.action {
	case create:
		w.prepareCreate(ctx)
	case replace:
		w.prepareUpdate(ctx)
	case keep, mark, remove: // nothing that a client sent is written
	}
}

// prepareCreate sets the metadata that clients do not own in a new object, and
// its defaults. The fields that the client sent, and the defaults, belong to
// the client's field manager; fields that the kind's strategy adds have no owner.
func (w *pendingWrite) prepareCreate(ctx context.Context) {
	obj, set, res := w.object, w.registry.set, w.registry.res
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj.SetUID(set.config.NewUID())
	obj.SetCreationTimestamp(set.Now())
	if !res.Strategy.NoGeneration && !res.Strategy.NoFirstGeneration { // of other kinds it is what the client says, as in Kubernetes
		obj.SetGeneration(1)
	}
	if res.Status && !res.Strategy.CreateWithStatus {
		specstatus.ClearStatus(obj)
	}
	call(res.Strategy.Default, obj)
	callTimes(res.Strategy.DefaultTimes, obj, set.Now())
	w.trackOwnership(ctx, nil)
	call(res.Strategy.PrepareForCreate, obj)
}

// prepareUpdate takes over from the current object what an update through the
// endpoint cannot change.
func (w *pendingWrite) prepareUpdate(ctx context.Context) {
	obj, old, strategy, now := w.object, w.current.object, &w.registry.res.Strategy, w.registry.set.Now()
	obj.SetSelfLink("")
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	keepDeletion(obj, old)
	obj.SetGeneration(old.GetGeneration())
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	switch w.endpoint.Scope {
	case ScopeMain:
		if w.registry.res.Status {
			specstatus.CopyStatus(obj, old)
		}
		call(strategy.Default, obj)
		callTimes(strategy.DefaultTimes, obj, now)
		w.trackOwnership(ctx, old)
		callUpdate(strategy.PrepareForUpdate, obj, old)
		if strategy.RenewTimes != nil {
			strategy.RenewTimes(obj, old, now)
		}
	case ScopeStatus:
		call(strategy.Default, obj) // of which only the status counts
		specstatus.KeepAllButStatus(obj, old, strategy.StatusKeeps)
		w.trackOwnership(ctx, old)
		callUpdate(strategy.PrepareForStatusUpdate, obj, old)
	case ScopeSubresource:
		call(strategy.Default, obj)
		w.trackOwnership(ctx, old)
	case ScopeBinding:
		w.trackOwnership(ctx, old)
	}
}

// keepDeletion keeps what a deletion has set. What a client sends without one, or another
// grace period, stays in the object, and validation refuses it.
func keepDeletion(obj, old resource.Object) {
	if at := old.GetDeletionTimestamp(); at != nil {
		obj.SetDeletionTimestamp(at)
	}
	if obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
}

// countGeneration gives a replaced object another generation if what its owner wants has
// changed. The mutating hooks have had it by then: what they always fill in is no change.
func (w *pendingWrite) countGeneration() {
	obj, old, scope := w.object, w.current.object, w.endpoint.Scope
	// Binding a pod sets its spec, but does not change what its owner wants.
	if scope == ScopeStatus || scope == ScopeBinding || w.registry.res.Strategy.NoGeneration {
		return
	}
	if !specstatus.SameSpec(w.registry.res, obj, old) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// prepareAgain prepares the object that a hook has put in the place of before. What the
// hook has changed has no owner.
func (w *pendingWrite) prepareAgain(ctx context.Context, before resource.Object) {
	obj, tracked := w.object, w.endpoint.Ownership
	obj.SetManagedFields(before.GetManagedFields())
	if w.action == replace {
		w.endpoint.Ownership = OwnershipStated // leaves managedFields alone
		w.prepareUpdate(ctx)
		w.endpoint.Ownership = tracked
		return
	}
	res := w.registry.res
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj.SetUID(before.GetUID())
	obj.SetCreationTimestamp(before.GetCreationTimestamp())
	obj.SetGeneration(before.GetGeneration())
	if res.Status && !res.Strategy.CreateWithStatus {
		specstatus.ClearStatus(obj)
	}
	call(res.Strategy.Default, obj)
	callTimes(res.Strategy.DefaultTimes, obj, w.registry.set.Now())
	call(res.Strategy.PrepareForCreate, obj)
}

func call(f func(resource.Object), obj resource.Object) {
	if f != nil {
		f(obj)
	}
}

func callTimes(f func(resource.Object, metav1.Time), obj resource.Object, now metav1.Time) {
	if f != nil {
		f(obj, now)
	}
}

func callUpdate(f func(obj, old resource.Object), obj, old resource.Object) {
	if f != nil {
		f(obj, old)
	}
}
