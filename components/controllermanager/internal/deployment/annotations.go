package deployment

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations that kubectl rollout and other tools read.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	rollbackAnnotation = "deprecated.deployment.rollback.to"
)

// ownAnnotations are not copied between a deployment and its sets.
var ownAnnotations = map[string]bool{
	revisionAnnotation: true, desiredAnnotation: true, maxAnnotation: true, historyAnnotation: true,
	rollbackAnnotation: true, corev1.LastAppliedConfigAnnotation: true,
}

func number(obj metav1.Object, annotation string) (int32, bool) {
	n, err := strconv.ParseInt(obj.GetAnnotations()[annotation], 10, 32)
	return int32(n), err == nil
}

func revisionOf(obj metav1.Object) int64 {
	n, err := strconv.ParseInt(obj.GetAnnotations()[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// annotate returns the annotations of the newest set: the deployment's own,
// and its revision. A set that comes back keeps the revisions it had.
func annotate(d *appsv1.Deployment, set *appsv1.ReplicaSet, revision int64) map[string]string {
	result := maps.Clone(set.Annotations)
	if result == nil {
		result = map[string]string{}
	}
	for key, value := range d.Annotations {
		if !ownAnnotations[key] {
			result[key] = value
		}
	}
	was := set.Annotations[revisionAnnotation]
	if revisionOf(set) < revision {
		result[revisionAnnotation] = strconv.FormatInt(revision, 10)
		if was != "" {
			result[historyAnnotation] = appendRevision(result[historyAnnotation], was)
		}
	}
	return result
}

// historyMost bounds the list of revisions that a set was, in characters.
const historyMost = 2000

func appendRevision(history, revision string) string {
	switch {
	case history == "":
		return revision
	case len(history)+len(revision) >= historyMost:
		return history
	}
	return history + "," + revision
}

// noteScale writes down at a set what the deployment wanted when it was
// scaled; it returns whether something changed.
func noteScale(set *appsv1.ReplicaSet, wanted, most int32) bool {
	desired, max := strconv.Itoa(int(wanted)), strconv.Itoa(int(most))
	if set.Annotations[desiredAnnotation] == desired && set.Annotations[maxAnnotation] == max {
		return false
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[desiredAnnotation], set.Annotations[maxAnnotation] = desired, max
	return true
}
