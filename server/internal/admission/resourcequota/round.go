package resourcequota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/internal/quota"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// round decides the claims of one batch. It is used by one goroutine.
type round struct {
	ctx       context.Context // ends with the batch's time
	quotas    registry.Registry
	namespace string
}

// maxAttempts bounds how often a batch is decided again because another server has
// written a quota first. Each time that server has made progress.
const maxAttempts = 100

// decide sets the outcome of all claims. Each attempt decides the open ones in their
// order, on the states that the quotas have after the claims before; then it writes the
// quotas that have changed. The store refuses the write of a state that is not the
// current one any more, and a refusal counts only on a current state: so such claims
// are decided again, on what the store has. What they hold of other quotas they keep
// meanwhile, and a claim that is refused in the end gives it back.
func (r round) decide(claims []*claim) {
	quotas, err := r.load()
	if err != nil {
		fail(claims, err)
		return
	}
	open := claims
	for range maxAttempts {
		if open = r.attempt(quotas, open); len(open) == 0 {
			return
		}
		if err := r.ctx.Err(); err != nil {
			break
		}
		quotas = slices.DeleteFunc(quotas, func(s *state) bool { return s.gone })
	}
	fail(open, apierrors.NewInternalError(errors.New("resource quota evaluation timed out")))
	r.returnHeld(quotas, open)
}

func fail(claims []*claim, err error) {
	for _, c := range claims {
		c.err = err
	}
}

// state is a quota during a round.
type state struct {
	quota *corev1.ResourceQuota // as the store has, or had, it
	next  *corev1.ResourceQuota // with the claims of this attempt
	// What the store has said during this attempt about the state that was decided on:
	// it is the current one, or another one has taken its place and is in quota now.
	confirmed, replaced bool

	changed bool // next differs from quota
	gone    bool // it has been deleted
	err     error
}

// load returns the quotas of the namespace by name, as the cache has them.
func (r round) load() ([]*state, error) {
	snapshot, err := r.quotas.Snapshot(r.ctx)
	if err != nil {
		return nil, err
	}
	var states []*state
	for o := range snapshot.Range(r.namespace+"/", "") {
		q, err := registry.DecodeAs[*corev1.ResourceQuota](r.ctx, r.quotas, o)
		if err != nil {
			return nil, err
		}
		states = append(states, &state{quota: q})
	}
	slices.SortFunc(states, func(a, b *state) int { return cmp.Compare(a.quota.Name, b.quota.Name) })
	return states, nil
}

// verdict is how an attempt has decided one claim.
type verdict struct {
	claim *claim
	added map[types.UID]corev1.ResourceList
	basis types.UID // of the quota by which it is refused
	err   error
}

// attempt decides claims once, and returns those that have to be decided again.
func (r round) attempt(quotas []*state, claims []*claim) (open []*claim) {
	next := make([]*corev1.ResourceQuota, len(quotas))
	for i, s := range quotas {
		s.next, s.changed, s.confirmed, s.replaced, s.err = s.quota.DeepCopy(), false, false, false, nil
		next[i] = s.next
	}
	verdicts := make([]verdict, len(claims))
	for i, c := range claims {
		verdicts[i] = tentative(quotas, next, c)
	}
	for _, s := range quotas {
		if s.changed {
			r.write(s)
		}
	}
	var refused []*claim
	for _, v := range verdicts {
		switch done, err := r.conclude(quotas, v); {
		case !done:
			open = append(open, v.claim)
		case err != nil:
			v.claim.err = err
			refused = append(refused, v.claim)
		}
	}
	r.returnHeld(quotas, refused)
	return open
}

// tentative decides a claim on the states of this attempt, and adds to them what it
// claims.
func tentative(quotas []*state, next []*corev1.ResourceQuota, c *claim) verdict {
	v := verdict{claim: c}
	if c.giveBack != nil {
		v.added = map[types.UID]corev1.ResourceList{}
		for _, s := range quotas {
			if back, ok := c.giveBack[s.quota.UID]; ok && !s.gone {
				quota.Subtract(s.next.Status.Used, back)
				s.changed, v.added[s.quota.UID] = true, back
			}
		}
		return v
	}
	added, basis, err := c.check(next)
	if err != nil {
		v.err = err
		if basis != nil {
			v.basis = basis.UID
		}
		return v
	}
	if c.dryRun {
		return v
	}
	v.added = added
	for _, s := range quotas {
		if more, ok := added[s.quota.UID]; ok {
			quota.Add(s.next.Status.Used, more)
			s.changed = true
		}
	}
	return v
}

// conclude makes a verdict final after the quotas have been written. It returns false
// if a state on which it is based was not the current one.
func (r round) conclude(quotas []*state, v verdict) (done bool, err error) {
	done = true
	for _, s := range quotas {
		amounts, ok := v.added[s.quota.UID]
		switch {
		case !ok || s.gone:
		case s.err != nil:
			err = s.err
		case !s.confirmed:
			done = false
		case v.claim.giveBack != nil:
			delete(v.claim.giveBack, s.quota.UID)
		default:
			v.claim.hold(s.quota.UID, amounts)
		}
	}
	if v.err == nil || err != nil {
		return done || err != nil, err
	}
	for _, s := range quotas {
		if s.quota.UID == v.basis && !s.confirmed && !r.confirm(s) {
			return false, nil
		}
	}
	return true, v.err
}

// errReplaced ends a write that was decided on a state that is not the current one.
var errReplaced = apierrors.NewConflict(corev1.Resource("resourcequotas"), "", errors.New("another claim came first"))

// write writes the used amounts of a quota if its state still is the one that was
// decided on. Otherwise the current one takes its place.
func (r round) write(s *state) {
	var current *corev1.ResourceQuota
	result, err := r.quotas.UpdateStatus(r.ctx, r.namespace, s.quota.Name, func(obj resource.Object) (resource.Object, error) {
		var ok bool
		if current, ok = obj.(*corev1.ResourceQuota); !ok {
			return nil, fmt.Errorf("resourcequotas are kept as %T", obj)
		}
		if current.UID != s.quota.UID || current.ResourceVersion != s.quota.ResourceVersion {
			return nil, errReplaced
		}
		return s.next, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites})
	switch {
	case err == nil:
		s.confirmed = true
		if written, ok := result.Object.(*corev1.ResourceQuota); ok {
			s.quota = written
		}
	case errors.Is(err, errReplaced) && current != nil:
		s.replace(current.DeepCopy())
	case apierrors.IsNotFound(err):
		s.gone = true
	default:
		s.err = err
	}
}

// confirm reports whether the store's state of a quota is the one that was decided on.
func (r round) confirm(s *state) bool {
	if s.replaced || s.gone {
		return false
	}
	obj, err := r.quotas.GetFromStore(r.ctx, r.namespace, s.quota.Name)
	current, ok := obj.(*corev1.ResourceQuota)
	switch {
	case apierrors.IsNotFound(err):
		s.gone = true
		return false
	case err != nil || !ok:
		return true // the refusal stands: the store cannot say otherwise
	case current.UID != s.quota.UID || current.ResourceVersion != s.quota.ResourceVersion:
		s.replace(current)
		return false
	}
	s.confirmed = true
	return true
}

// replace makes current the state of the next attempt. A quota of the same name that
// was created meanwhile limits nothing yet.
func (s *state) replace(current *corev1.ResourceQuota) {
	s.gone = current.UID != s.quota.UID
	s.quota, s.replaced = current, true
}

// returnHeld gives back what refused claims hold of other quotas.
func (r round) returnHeld(quotas []*state, refused []*claim) {
	for _, c := range refused {
		if len(c.held) == 0 {
			continue
		}
		back := &claim{giveBack: c.held}
		for range maxAttempts {
			if len(r.attempt(quotas, []*claim{back})) == 0 || r.ctx.Err() != nil {
				break
			}
		}
		c.held = nil
	}
}
