package replicaset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

func (c *Controller[T]) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	owner, ok := c.informer.Lister().Get(key.Namespace, key.Name)
	if !ok {
		c.selectors.Forget(key)
		return controller.Result{}, nil
	}
	set := c.owners.set(owner)
	selector, err := c.selectors.Of(owner, set.Spec.Selector)
	if err != nil || selector.Empty() {
		return controller.Result{}, nil // validation refuses such sets; one that slipped through owns nothing
	}
	// Decided before the pods are read: a settled key stays settled only if
	// what is read afterwards is at least as new.
	settled, recheck := c.control.Settled(ctx, key)
	mine, err := c.control.Claim(ctx, owner, selector, c.pods, ownership.StillThere(c.api, owner))
	if err != nil {
		return controller.Result{}, err
	}
	var active []*corev1.Pod
	for _, pod := range mine {
		if pods.Active(pod) {
			active = append(active, pod)
		}
	}
	var scaled, behind error
	if settled && set.DeletionTimestamp == nil && len(active) != int(replicas(set)) {
		if behind = controller.Consistent(ctx, owner); behind == nil {
			scaled = c.scale(ctx, owner, set, active)
		}
	}
	again, err := c.writeStatus(ctx, owner, set, active, scaled, time.Now())
	return controller.After(controller.Sooner(again, recheck)), errors.Join(scaled, err, behind)
}

// scale creates or deletes the difference.
func (c *Controller[T]) scale(ctx context.Context, owner T, set *appsv1.ReplicaSet, active []*corev1.Pod) error {
	difference := len(active) - int(replicas(set))
	switch {
	case difference < 0:
		return c.control.Create(ctx, owner, &set.Spec.Template, min(-difference, pods.Burst), nil)
	case difference > 0:
		victims := append([]*corev1.Pod(nil), active...)
		pods.SortForDeletion(victims)
		return c.control.Delete(ctx, owner, victims[:min(difference, pods.Burst)])
	}
	return nil
}

func replicas(set *appsv1.ReplicaSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

// writeStatus reports the count, if it is not what the owner shows already. It
// returns when to count again because a pod will have become available.
func (c *Controller[T]) writeStatus(ctx context.Context, owner T, set *appsv1.ReplicaSet, active []*corev1.Pod, scaled error, now time.Time) (time.Duration, error) {
	status, again := count(set, active, now)
	setFailure(&status, scaled, now)
	if equality.Semantic.DeepEqual(status, set.Status) {
		return again, nil
	}
	update := owner.DeepCopyObject().(T)
	c.owners.setStatus(update, status)
	_, err := c.api.Namespace(set.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return again, nil // a newer state is on its way and brings us back
	}
	if err != nil {
		return 0, fmt.Errorf("write status: %w", err)
	}
	return again, nil
}

func count(set *appsv1.ReplicaSet, active []*corev1.Pod, now time.Time) (status appsv1.ReplicaSetStatus, again time.Duration) {
	status = *set.Status.DeepCopy()
	status.ObservedGeneration = set.Generation
	status.Replicas, status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = int32(len(active)), 0, 0, 0
	for _, pod := range active {
		if ownership.SelectsAll(set.Spec.Template.Labels, pod.Labels) {
			status.FullyLabeledReplicas++
		}
		if !pods.Ready(pod) {
			continue
		}
		status.ReadyReplicas++
		available, in := pods.Available(pod, set.Spec.MinReadySeconds, now)
		if available {
			status.AvailableReplicas++
		} else if again == 0 || in < again {
			again = in
		}
	}
	return status, again
}

// setFailure sets or clears the ReplicaFailure condition.
func setFailure(status *appsv1.ReplicaSetStatus, failure error, now time.Time) {
	var kept []appsv1.ReplicaSetCondition
	var old *appsv1.ReplicaSetCondition
	for i := range status.Conditions {
		if status.Conditions[i].Type == appsv1.ReplicaSetReplicaFailure {
			old = &status.Conditions[i]
		} else {
			kept = append(kept, status.Conditions[i])
		}
	}
	if failure != nil {
		condition := appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
			Reason: "FailedCreate", Message: failure.Error(), LastTransitionTime: metav1.NewTime(now),
		}
		if old != nil {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		kept = append(kept, condition)
	}
	status.Conditions = kept
}
