package deployment

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the conditions, which kubectl rollout status and others know.
const (
	newSetCreated    = "NewReplicaSetCreated"
	foundNewSet      = "FoundNewReplicaSet"
	setUpdated       = "ReplicaSetUpdated"
	setCreateError   = "ReplicaSetCreateError"
	newSetAvailable  = "NewReplicaSetAvailable"
	deadlineExceeded = "ProgressDeadlineExceeded"
	paused           = "DeploymentPaused"
	resumed          = "DeploymentResumed"
	enoughAvailable  = "MinimumReplicasAvailable"
	tooFewAvailable  = "MinimumReplicasUnavailable"
)

// writeStatus reports what the sets show. It returns when the progress
// deadline will have passed, if one is running.
func (r *rollout) writeStatus(ctx context.Context) (time.Duration, error) {
	status := r.count()
	now := r.now()
	r.judgeAvailability(&status, now)
	again := r.judgeProgress(&status, now)
	r.copyFailure(&status, now)
	if equality.Semantic.DeepEqual(status, r.d.Status) {
		return again, nil
	}
	update := r.d.DeepCopy()
	update.Status = status
	written, err := r.api.Namespace(update.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("write status: %w", err)
	}
	r.written.Record(written)
	return again, nil
}

// count adds the sets up.
func (r *rollout) count() appsv1.DeploymentStatus {
	status := *r.d.Status.DeepCopy()
	status.ObservedGeneration = r.d.Generation
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas, status.UpdatedReplicas = 0, 0, 0, 0
	for _, set := range r.all() {
		status.Replicas += set.Status.Replicas
		status.ReadyReplicas += set.Status.ReadyReplicas
		status.AvailableReplicas += set.Status.AvailableReplicas
	}
	if r.current != nil {
		status.UpdatedReplicas = r.current.Status.Replicas
	}
	status.UnavailableReplicas = max(totalSize(r.all())-status.AvailableReplicas, 0)
	return status
}

func (r *rollout) judgeAvailability(status *appsv1.DeploymentStatus, now time.Time) {
	condition := &appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
		Reason: enoughAvailable, Message: "Deployment has minimum availability.",
	}
	if status.AvailableReplicas < replicas(r.d)-r.lim.unavailable {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, tooFewAvailable, "Deployment does not have minimum availability."
	}
	setCondition(status, condition, now)
}

// judgeProgress brings the Progressing condition up to date and returns when
// its deadline passes.
func (r *rollout) judgeProgress(status *appsv1.DeploymentStatus, now time.Time) time.Duration {
	if r.d.Spec.ProgressDeadlineSeconds == nil || *r.d.Spec.ProgressDeadlineSeconds == 1<<31-1 {
		removeCondition(status, appsv1.DeploymentProgressing)
		return 0
	}
	if r.made != nil {
		setCondition(status, r.made, now)
	}
	condition := conditionOf(status, appsv1.DeploymentProgressing)
	if next := r.pausedOrResumed(condition); next != nil {
		setCondition(status, next, now)
		condition = next
	}
	if condition != nil && condition.Reason == newSetAvailable && status.Replicas == status.UpdatedReplicas || r.d.Spec.Paused {
		return 0 // done before: a pod that fails now is not a rollout that does
	}
	name := r.d.Name
	if r.current != nil {
		name = r.current.Name
	}
	deadline := time.Duration(*r.d.Spec.ProgressDeadlineSeconds) * time.Second
	switch {
	case r.current != nil && complete(r.d, status):
		setCondition(status, progressing(corev1.ConditionTrue, newSetAvailable, fmt.Sprintf("ReplicaSet %q has successfully progressed.", name)), now)
		return 0
	case r.made == nil && progressed(&r.d.Status, status):
		next := progressing(corev1.ConditionTrue, setUpdated, fmt.Sprintf("ReplicaSet %q is progressing.", name))
		next.LastUpdateTime = metav1.NewTime(now)
		setCondition(status, next, now)
		return deadline
	case condition == nil || condition.Reason == newSetAvailable || condition.Reason == deadlineExceeded:
		return 0
	}
	left := condition.LastUpdateTime.Add(deadline).Sub(now)
	if left > 0 {
		return left + time.Second // the API keeps whole seconds
	}
	setCondition(status, progressing(corev1.ConditionFalse, deadlineExceeded, fmt.Sprintf("ReplicaSet %q has timed out progressing.", name)), now)
	return 0
}

// pausedOrResumed stops and restarts the clock of the deadline.
func (r *rollout) pausedOrResumed(condition *appsv1.DeploymentCondition) *appsv1.DeploymentCondition {
	wasPaused := condition != nil && condition.Reason == paused
	switch {
	case condition != nil && condition.Reason == deadlineExceeded:
		return nil // a failed rollout stays failed until it moves
	case r.d.Spec.Paused && !wasPaused:
		return progressing(corev1.ConditionUnknown, paused, "Deployment is paused")
	case !r.d.Spec.Paused && wasPaused:
		return progressing(corev1.ConditionUnknown, resumed, "Deployment is resumed")
	}
	return nil
}

// progressed: there are more new pods, fewer old ones, or more that serve.
func progressed(before, after *appsv1.DeploymentStatus) bool {
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		after.ReadyReplicas > before.ReadyReplicas || after.AvailableReplicas > before.AvailableReplicas
}

// copyFailure shows a set's failure to create pods at the deployment.
func (r *rollout) copyFailure(status *appsv1.DeploymentStatus, now time.Time) {
	sets := r.old
	if r.current != nil {
		sets = append([]*appsv1.ReplicaSet{r.current}, r.old...)
	}
	for _, set := range sets {
		for _, failure := range set.Status.Conditions {
			if failure.Type == appsv1.ReplicaSetReplicaFailure && failure.Status == corev1.ConditionTrue {
				setCondition(status, &appsv1.DeploymentCondition{
					Type: appsv1.DeploymentReplicaFailure, Status: failure.Status, Reason: failure.Reason, Message: failure.Message,
				}, now)
				return
			}
		}
	}
	removeCondition(status, appsv1.DeploymentReplicaFailure)
}

func progressing(status corev1.ConditionStatus, reason, message string) *appsv1.DeploymentCondition {
	return &appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: message}
}

func conditionOf(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

// setCondition keeps the time of the last transition while the status stays,
// and the time of the last update while the reason stays too, unless the new
// condition brings its own.
func setCondition(status *appsv1.DeploymentStatus, next *appsv1.DeploymentCondition, now time.Time) {
	at := metav1.NewTime(now)
	next.LastTransitionTime = at
	refreshed := !next.LastUpdateTime.IsZero()
	if !refreshed {
		next.LastUpdateTime = at
	}
	old := conditionOf(status, next.Type)
	if old == nil {
		status.Conditions = append(status.Conditions, *next)
		return
	}
	if old.Status == next.Status {
		next.LastTransitionTime = old.LastTransitionTime
		if old.Reason == next.Reason && !refreshed {
			next.LastUpdateTime = old.LastUpdateTime
		}
	}
	*old = *next
}

func removeCondition(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	kept := status.Conditions[:0:0]
	for _, condition := range status.Conditions {
		if condition.Type != kind {
			kept = append(kept, condition)
		}
	}
	status.Conditions = kept
}
