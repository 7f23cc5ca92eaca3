package deployment

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
)

// roll makes a step of a rolling update: the new set grows, or else the old
// ones shrink, or else what is no longer needed is tidied away.
func (r *rollout) roll(ctx context.Context) error {
	if err := r.refreshCurrent(ctx, true); err != nil || r.current == nil {
		return err
	}
	grown, err := r.resize(ctx, r.current, newSetSize(r.d, r.lim, sizeOf(r.current), totalSize(r.all())))
	if grown || err != nil {
		return err
	}
	steps := shrinkOld(r.d, r.lim, r.current, r.old)
	for _, step := range steps {
		if _, err := r.resize(ctx, step.set, step.to); err != nil {
			return err
		}
	}
	if len(steps) > 0 {
		return nil
	}
	return r.cleanUpWhenComplete(ctx)
}

// recreate ends all old pods before it makes new ones.
func (r *rollout) recreate(ctx context.Context) error {
	if err := r.refreshCurrent(ctx, false); err != nil {
		return err
	}
	shrunk := false
	for _, set := range slices.Clone(r.old) {
		if sizeOf(set) == 0 {
			continue
		}
		if _, err := r.resize(ctx, set, 0); err != nil {
			return err
		}
		shrunk = true
	}
	running, err := r.oldPodsRun()
	if shrunk || running || err != nil {
		return err
	}
	if err := r.refreshCurrent(ctx, true); err != nil || r.current == nil {
		return err
	}
	if _, err := r.resize(ctx, r.current, replicas(r.d)); err != nil {
		return err
	}
	return r.cleanUpWhenComplete(ctx)
}

// oldPodsRun reports whether a pod of an old set has not ended.
func (r *rollout) oldPodsRun() (bool, error) {
	for _, set := range r.old {
		owned, err := r.pods.Owned(set.UID)
		if err != nil {
			return false, err
		}
		for _, pod := range owned {
			if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
				return true, nil
			}
		}
	}
	return false, nil
}

// scale brings all sets to a new total, without going on with the rollout.
func (r *rollout) scale(ctx context.Context) error {
	active := r.active()
	switch {
	case len(active) == 0 && r.current == nil && len(r.old) == 0:
		return nil
	case len(active) <= 1:
		only := r.current
		if len(active) == 1 {
			only = active[0]
		} else if only == nil {
			only = r.old[len(r.old)-1]
		}
		_, err := r.resize(ctx, only, replicas(r.d))
		return err
	case r.saturated():
		return r.apply(ctx, emptied(r.old))
	case r.d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType:
		return r.apply(ctx, shares(r.d, r.lim, active))
	}
	return nil
}

// saturated: the new set has all pods that are wanted, and they are available.
func (r *rollout) saturated() bool {
	if r.current == nil {
		return false
	}
	desired, ok := number(r.current, desiredAnnotation)
	return ok && sizeOf(r.current) == replicas(r.d) && desired == replicas(r.d) && r.current.Status.AvailableReplicas == replicas(r.d)
}

func emptied(sets []*appsv1.ReplicaSet) []resize {
	var steps []resize
	for _, set := range sets {
		if sizeOf(set) > 0 {
			steps = append(steps, resize{set, 0})
		}
	}
	return steps
}

func (r *rollout) apply(ctx context.Context, steps []resize) error {
	for _, step := range steps {
		if _, err := r.resize(ctx, step.set, step.to); err != nil {
			return err
		}
	}
	return nil
}

func (r *rollout) cleanUpWhenComplete(ctx context.Context) error {
	status := r.count()
	if !complete(r.d, &status) {
		return nil
	}
	return r.cleanUp(ctx)
}

// cleanUp deletes the oldest of the empty sets beyond the history limit.
func (r *rollout) cleanUp(ctx context.Context) error {
	old := surplus(r.d, r.old)
	if len(old) == 0 {
		return nil
	}
	decided := []metav1.Object{r.seen}
	for _, set := range r.all() {
		decided = append(decided, set)
	}
	if err := controller.Consistent(ctx, decided...); err != nil {
		return err // the history may be a longer one by now
	}
	for _, set := range old {
		err := r.setAPI.Namespace(set.Namespace).Delete(ctx, set.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the old replica set %s: %w", set.Name, err)
		}
	}
	return nil
}

// surplus returns the sets that are beyond the revision history.
func surplus(d *appsv1.Deployment, old []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	if d.Spec.RevisionHistoryLimit == nil {
		return nil
	}
	alive := slices.DeleteFunc(slices.Clone(old), func(set *appsv1.ReplicaSet) bool { return set.DeletionTimestamp != nil })
	excess := len(alive) - int(*d.Spec.RevisionHistoryLimit)
	if excess <= 0 {
		return nil
	}
	slices.SortStableFunc(alive, func(a, b *appsv1.ReplicaSet) int {
		return int(min(max(revisionOf(a)-revisionOf(b), -1), 1))
	})
	return slices.DeleteFunc(alive[:excess], func(set *appsv1.ReplicaSet) bool {
		return set.Status.Replicas != 0 || sizeOf(set) != 0 || set.Generation > set.Status.ObservedGeneration
	})
}
