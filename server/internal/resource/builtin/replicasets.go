package builtin

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func replicaSetRules() rules[*appsv1.ReplicaSet] {
	return rules[*appsv1.ReplicaSet]{
		Default: func(rs *appsv1.ReplicaSet) {
			defaultPodTemplate(&rs.Spec.Template)
			setDefaultPtr(&rs.Spec.Replicas, 1)
		},
		Validate: validateReplicaSet,
		ValidateUpdate: func(rs, old *appsv1.ReplicaSet) field.ErrorList {
			return unchanged(specPath.Child("selector"), rs.Spec.Selector, old.Spec.Selector)
		},
	}
}

func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	errs := notNegative(specPath.Child("replicas"), rs.Spec.Replicas)
	errs = append(errs, notNegative(specPath.Child("minReadySeconds"), &rs.Spec.MinReadySeconds)...)
	errs = append(errs, workloadSelector(rs.Spec.Selector, rs.Spec.Template.Labels)...)
	return append(errs, validateLastingTemplate(&rs.Spec.Template)...)
}

func replicaSetScale() *resource.Scale {
	return scale(func(rs *appsv1.ReplicaSet) (**int32, int32, *metav1.LabelSelector) {
		return &rs.Spec.Replicas, rs.Status.Replicas, rs.Spec.Selector
	})
}

func replicationControllerRules() rules[*corev1.ReplicationController] {
	return rules[*corev1.ReplicationController]{
		Default:  defaultReplicationController,
		Validate: validateReplicationController,
	}
}

// defaultReplicationController takes selector and labels from the template,
// where they are missing.
func defaultReplicationController(rc *corev1.ReplicationController) {
	setDefaultPtr(&rc.Spec.Replicas, 1)
	if rc.Spec.Template == nil {
		return
	}
	defaultPodTemplate(rc.Spec.Template)
	if len(rc.Spec.Selector) == 0 {
		rc.Spec.Selector = maps.Clone(rc.Spec.Template.Labels)
	}
	if len(rc.Labels) == 0 {
		rc.Labels = maps.Clone(rc.Spec.Template.Labels)
	}
}

func validateReplicationController(rc *corev1.ReplicationController) field.ErrorList {
	errs := notNegative(specPath.Child("replicas"), rc.Spec.Replicas)
	errs = append(errs, notNegative(specPath.Child("minReadySeconds"), &rc.Spec.MinReadySeconds)...)
	errs = append(errs, metavalidation.ValidateLabels(rc.Spec.Selector, specPath.Child("selector"))...)
	if len(rc.Spec.Selector) == 0 {
		errs = append(errs, field.Required(specPath.Child("selector"), ""))
	}
	if rc.Spec.Template == nil {
		return append(errs, field.Required(specPath.Child("template"), ""))
	}
	selector := labels.SelectorFromSet(rc.Spec.Selector)
	if !selector.Empty() && !selector.Matches(labels.Set(rc.Spec.Template.Labels)) {
		errs = append(errs, field.Invalid(specPath.Child("template", "metadata", "labels"), rc.Spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	return append(errs, validateLastingTemplate(rc.Spec.Template)...)
}

func replicationControllerScale() *resource.Scale {
	return scale(func(rc *corev1.ReplicationController) (**int32, int32, *metav1.LabelSelector) {
		return &rc.Spec.Replicas, rc.Status.Replicas, &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}
	})
}
