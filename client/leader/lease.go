package leader

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// instant is a moment by both clocks.
type instant struct{ monotonic, wall time.Time }

func (e *Elector) instant() instant { return instant{e.now(), e.wall().Round(0)} }

// since is the time that has passed by the clock that says more: the monotonic
// one stands still while a machine sleeps, and the wall clock may be set back.
func (e *Elector) since(at instant) time.Duration {
	return max(e.now().Sub(at.monotonic), e.wall().Round(0).Sub(at.wall))
}

// observation is a state of the Lease. at is when its spec was first seen, by
// the monotonic clock: the leader has renewed then at the latest, whatever
// time its own clock wrote. The lease is never changed.
type observation struct {
	lease *coordinationv1.Lease
	at    time.Time
}

func holder(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// claim takes the Lease if no candidate holds it, or renews it if this one
// does. A leader never takes it from another candidate: if the Lease has
// another name, even one that has run out, claim returns ErrLost.
func (e *Elector) claim(ctx context.Context, leading bool) (held bool, err error) {
	if lease := e.own(); lease != nil {
		// As a rule no other client writes the Lease, and one request is enough.
		held, err := e.write(ctx, lease)
		if held || !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return held, err
		}
	}
	found, err := e.leases.Get(ctx, e.opts.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return e.create(ctx)
	case err != nil:
		return false, e.failed("read", err)
	}
	e.observe(found)
	if holder(found) != e.opts.Identity {
		if leading {
			return false, fmt.Errorf("%w: %q has the lease", ErrLost, holder(found))
		}
		if e.left() > 0 {
			return false, nil
		}
	}
	if leading {
		e.mu.Lock()
		e.stats.SlowRenewals++
		e.mu.Unlock()
	}
	return e.write(ctx, found)
}

// own returns the Lease as it was last seen, if it was in this candidate's
// name.
func (e *Elector) own() *coordinationv1.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	if lease := e.observed.lease; holder(lease) == e.opts.Identity {
		return lease
	}
	return nil
}

func (e *Elector) create(ctx context.Context) (held bool, err error) {
	sent := e.instant()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.opts.Namespace, Name: e.opts.Name}}
	e.sign(lease, sent)
	created, err := e.leases.Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return false, e.failed("create", err)
	}
	return e.wrote("create", created, sent)
}

// write puts this candidate's name and the present time into the Lease. What
// else is in it, other fields of its spec too, stays. The write is guarded: it
// fails if the Lease is not any more as it was seen.
func (e *Elector) write(ctx context.Context, seen *coordinationv1.Lease) (held bool, err error) {
	sent := e.instant()
	lease := seen.DeepCopy()
	e.sign(lease, sent)
	updated, err := e.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil {
		return false, e.failed("write", err)
	}
	return e.wrote("write", updated, sent)
}

func (e *Elector) sign(lease *coordinationv1.Lease, at instant) {
	now := metav1.NewMicroTime(at.wall)
	seconds := int32((e.opts.LeaseDuration + time.Second - 1) / time.Second)
	spec := &lease.Spec
	transitions := int32(0)
	if spec.LeaseTransitions != nil {
		transitions = *spec.LeaseTransitions
	}
	if holder(lease) != e.opts.Identity {
		identity := e.opts.Identity
		spec.HolderIdentity, spec.AcquireTime = &identity, &now
		if lease.ResourceVersion != "" {
			transitions++
		}
	}
	spec.RenewTime, spec.LeaseDurationSeconds, spec.LeaseTransitions = &now, &seconds, &transitions
}

// release takes the name out, so that the others need not wait. A renewal that
// was under way when the work ended may have been written although its answer
// was not waited for: then the Lease is read again, until ctx ends. If there is
// no Lease any more, there is nothing to release.
func (e *Elector) release(ctx context.Context) error {
	for lease := e.own(); holder(lease) == e.opts.Identity; {
		released, err := e.leases.Update(ctx, e.unsigned(lease), metav1.UpdateOptions{})
		switch {
		case err == nil:
			e.observe(released)
			return nil
		case apierrors.IsNotFound(err):
			e.forget()
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("%w: %w", ErrNotReleased, e.failed("release", err))
		}
		lease, err = e.leases.Get(ctx, e.opts.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			e.forget()
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotReleased, e.failed("read", err))
		}
		e.observe(lease)
	}
	return nil
}

// unsigned is the Lease without a holder. The duration is the shortest that a
// Lease can have.
func (e *Elector) unsigned(seen *coordinationv1.Lease) *coordinationv1.Lease {
	lease := seen.DeepCopy()
	now, second := metav1.NewMicroTime(e.wall()), int32(1)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = nil, &second
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	return lease
}

// wrote takes note of the answer to a write. The Lease is held only if the answer says so:
// admission may have put another name into it, or something before the server has answered
// with another state. It is then read before the next write, which conflicts or does not know
// a holder.
func (e *Elector) wrote(doing string, lease *coordinationv1.Lease, sent instant) (held bool, err error) {
	if is := holder(lease); is != e.opts.Identity {
		return false, e.failed(doing, fmt.Errorf("the answer has the holder %q and not %q, which was sent", is, e.opts.Identity))
	}
	e.mu.Lock()
	e.renewed = sent
	e.stats.Renewals++
	e.mu.Unlock()
	e.observe(lease)
	return true, nil
}

func (e *Elector) observe(lease *coordinationv1.Lease) {
	e.mu.Lock()
	before := e.observed.lease
	if before == nil || !equality.Semantic.DeepEqual(before.Spec, lease.Spec) {
		e.observed.at = e.now()
	}
	e.observed.lease = lease
	e.mu.Unlock()
	if is := holder(lease); is != "" && is != holder(before) {
		e.opts.Logger.Info("the lease has a new holder", "holder", is)
		e.panics.Call(e.opts.Logger, "OnNewLeader", func() { e.opts.OnNewLeader(is) })
	}
}

// forget drops a Lease that does not exist any more.
func (e *Elector) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed = observation{}
}

// left is how long others must leave the Lease alone; not positive: it has run
// out, or was released, or never seen.
func (e *Elector) left() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	lease := e.observed.lease
	if holder(lease) == "" {
		return 0
	}
	duration := e.opts.LeaseDuration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		duration = time.Duration(*seconds) * time.Second
	}
	return duration - e.now().Sub(e.observed.at)
}

func (e *Elector) failed(doing string, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Failures++
	return fmt.Errorf("%s lease %s/%s: %w", doing, e.opts.Namespace, e.opts.Name, err)
}
