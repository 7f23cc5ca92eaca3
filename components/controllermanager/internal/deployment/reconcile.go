package deployment

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
)

// rollout is what one reconciliation knows of a deployment. d and the sets are
// replaced by the server's answers as it writes; none is shared with the
// informers once written.
type rollout struct {
	*Controller
	seen    *appsv1.Deployment // as the informer has it
	d       *appsv1.Deployment
	lim     limits
	current *appsv1.ReplicaSet   // the set of the present template, or nil
	old     []*appsv1.ReplicaSet // all others, oldest first
	// made is what to say about progress because of a new or found set.
	made *appsv1.DeploymentCondition
}

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	d, ok := c.deployments.Lister().Get(key.Namespace, key.Name)
	if !ok {
		c.selectors.Forget(key)
		return controller.Result{}, nil
	}
	selector, err := c.selectors.Of(d, d.Spec.Selector)
	if err != nil || selector.Empty() {
		return controller.Result{}, nil // validation refuses such deployments; one that slipped through owns nothing
	}
	candidates, err := c.sets.Candidates(d)
	if err != nil {
		return controller.Result{}, err
	}
	sets, err := c.claimer.Claim(ctx, d, selector, candidates, ownership.StillThere(c.api, d))
	if err != nil {
		return controller.Result{}, err
	}
	read := []metav1.Object{d}
	for _, set := range sets {
		read = append(read, set)
	}
	if err := c.written.Current(ctx, read...); err != nil {
		return controller.Result{}, err
	}
	lim, err := limitsOf(d)
	if err != nil {
		return controller.Result{}, err
	}
	r := &rollout{Controller: c, seen: d, d: d, lim: lim}
	r.sort(sets)
	if d.DeletionTimestamp == nil {
		if err := r.step(ctx); err != nil {
			return controller.Result{}, err
		}
	}
	again, err := r.writeStatus(ctx)
	return controller.After(again), err
}

// sort finds the set of the deployment's template. If two have it, the older
// is taken, always the same.
func (r *rollout) sort(sets []*appsv1.ReplicaSet) {
	sets = slices.Clone(sets)
	slices.SortFunc(sets, byAge)
	for _, set := range sets {
		if r.current == nil && set.DeletionTimestamp == nil && sameTemplate(&set.Spec.Template, &r.d.Spec.Template) {
			r.current = set
		} else {
			r.old = append(r.old, set)
		}
	}
}

// step brings the deployment one step forward.
func (r *rollout) step(ctx context.Context) error {
	switch {
	case r.d.Spec.Paused:
		if err := r.refreshCurrent(ctx, false); err != nil {
			return err
		}
		if err := r.scale(ctx); err != nil {
			return err
		}
		return r.cleanUp(ctx)
	case r.rescaled():
		if err := r.refreshCurrent(ctx, false); err != nil {
			return err
		}
		return r.scale(ctx)
	case r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return r.recreate(ctx)
	}
	return r.roll(ctx)
}

// rescaled reports whether spec.replicas has changed since the active sets were
// scaled.
func (r *rollout) rescaled() bool {
	return slices.ContainsFunc(r.active(), func(set *appsv1.ReplicaSet) bool {
		desired, ok := number(set, desiredAnnotation)
		return ok && desired != replicas(r.d)
	})
}

// all returns every set, oldest first, the current one last.
func (r *rollout) all() []*appsv1.ReplicaSet {
	all := slices.Clone(r.old)
	if r.current != nil {
		all = append(all, r.current)
	}
	return all
}

func (r *rollout) active() []*appsv1.ReplicaSet {
	return slices.DeleteFunc(r.all(), func(set *appsv1.ReplicaSet) bool { return sizeOf(set) == 0 })
}

// most is how many pods there may be at once.
func (r *rollout) most() int32 { return replicas(r.d) + r.lim.surge }

// resize gives a set its size, with the note of what was wanted then.
func (r *rollout) resize(ctx context.Context, set *appsv1.ReplicaSet, to int32) (changed bool, err error) {
	update := set.DeepCopy()
	noted := noteScale(update, replicas(r.d), r.most())
	from := sizeOf(set)
	if from == to && !noted {
		return false, nil
	}
	if err := controller.Consistent(ctx, r.seen); err != nil {
		return false, err
	}
	update.Spec.Replicas = &to
	written, err := r.setAPI.Namespace(set.Namespace).Update(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("scale %s: %w", set.Name, err)
	}
	r.replace(set, written)
	if from != to {
		r.reportScale(written.Name, from, to)
	}
	return from != to, nil
}

func (r *rollout) reportScale(set string, from, to int32) {
	direction := "down"
	if to > from {
		direction = "up"
	}
	r.events.Normal(r.d, "ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", direction, set, from, to)
}

// replace puts the server's answer in the place of what was written.
func (r *rollout) replace(set, written *appsv1.ReplicaSet) {
	r.written.Record(written)
	if r.current == set {
		r.current = written
	}
	for i := range r.old {
		if r.old[i] == set {
			r.old[i] = written
		}
	}
}
