package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// The status of a workload has numbers that others count on: a rollout that waits for its replicas,
// an autoscaler, a DaemonSet's controller that counts its collisions up to get other names.

var statusPath = field.NewPath("status")

const (
	statusReplicas = "status.replicas"
	readyReplicas  = "readyReplicas"
)

func validateDeploymentStatus(d, old *appsv1.Deployment) field.ErrorList {
	s := &d.Status
	updated, ready := validate.Count{Field: "updatedReplicas", Value: int64(s.UpdatedReplicas)}, validate.Count{Field: readyReplicas, Value: int64(s.ReadyReplicas)}
	available := validate.Count{Field: "availableReplicas", Value: int64(s.AvailableReplicas)}
	errs := validate.Counts(statusPath,
		validate.Count{Field: "observedGeneration", Value: s.ObservedGeneration}, validate.Count{Field: "replicas", Value: int64(s.Replicas)},
		updated, ready, available, validate.Count{Field: "unavailableReplicas", Value: int64(s.UnavailableReplicas)})
	errs = append(errs, validate.NotNegative(statusPath.Child("terminatingReplicas"), s.TerminatingReplicas)...)
	errs = append(errs, validate.NotNegative(statusPath.Child("collisionCount"), s.CollisionCount)...)
	errs = append(errs, validate.AtMost(statusPath, int64(s.Replicas), statusReplicas, updated, ready, available)...)
	errs = append(errs, validate.AtMost(statusPath, ready.Value, readyReplicas, available)...)
	return append(errs, validate.NotDecreased(statusPath.Child("collisionCount"), s.CollisionCount, old.Status.CollisionCount)...)
}

func validateReplicaSetStatus(rs, _ *appsv1.ReplicaSet) field.ErrorList {
	s := &rs.Status
	labeled, ready := validate.Count{Field: "fullyLabeledReplicas", Value: int64(s.FullyLabeledReplicas)}, validate.Count{Field: readyReplicas, Value: int64(s.ReadyReplicas)}
	available := validate.Count{Field: "availableReplicas", Value: int64(s.AvailableReplicas)}
	errs := validate.Counts(statusPath, validate.Count{Field: "replicas", Value: int64(s.Replicas)},
		labeled, ready, available, validate.Count{Field: "observedGeneration", Value: s.ObservedGeneration})
	errs = append(errs, validate.NotNegative(statusPath.Child("terminatingReplicas"), s.TerminatingReplicas)...)
	errs = append(errs, validate.AtMost(statusPath, int64(s.Replicas), statusReplicas, labeled, ready, available)...)
	return append(errs, validate.AtMost(statusPath, ready.Value, readyReplicas, available)...)
}

func validateStatefulSetStatus(s, old *appsv1.StatefulSet) field.ErrorList {
	now := &s.Status
	ready, current := validate.Count{Field: readyReplicas, Value: int64(now.ReadyReplicas)}, validate.Count{Field: "currentReplicas", Value: int64(now.CurrentReplicas)}
	updated, available := validate.Count{Field: "updatedReplicas", Value: int64(now.UpdatedReplicas)}, validate.Count{Field: "availableReplicas", Value: int64(now.AvailableReplicas)}
	errs := validate.Counts(statusPath, validate.Count{Field: "replicas", Value: int64(now.Replicas)},
		ready, current, updated, available, validate.Count{Field: "observedGeneration", Value: now.ObservedGeneration})
	errs = append(errs, validate.NotNegative(statusPath.Child("collisionCount"), now.CollisionCount)...)
	errs = append(errs, validate.AtMost(statusPath, int64(now.Replicas), statusReplicas, ready, current, updated, available)...)
	errs = append(errs, validate.AtMost(statusPath, ready.Value, "status."+readyReplicas, available)...)
	return append(errs, validate.NotDecreased(statusPath.Child("collisionCount"), now.CollisionCount, old.Status.CollisionCount)...)
}

func validateDaemonSetStatus(d, old *appsv1.DaemonSet) field.ErrorList {
	s := &d.Status
	errs := validate.Counts(statusPath,
		validate.Count{Field: "currentNumberScheduled", Value: int64(s.CurrentNumberScheduled)}, validate.Count{Field: "numberMisscheduled", Value: int64(s.NumberMisscheduled)},
		validate.Count{Field: "desiredNumberScheduled", Value: int64(s.DesiredNumberScheduled)}, validate.Count{Field: "numberReady", Value: int64(s.NumberReady)},
		validate.Count{Field: "observedGeneration", Value: s.ObservedGeneration}, validate.Count{Field: "updatedNumberScheduled", Value: int64(s.UpdatedNumberScheduled)},
		validate.Count{Field: "numberAvailable", Value: int64(s.NumberAvailable)}, validate.Count{Field: "numberUnavailable", Value: int64(s.NumberUnavailable)})
	errs = append(errs, validate.NotNegative(statusPath.Child("collisionCount"), s.CollisionCount)...)
	return append(errs, validate.NotDecreased(statusPath.Child("collisionCount"), s.CollisionCount, old.Status.CollisionCount)...)
}
