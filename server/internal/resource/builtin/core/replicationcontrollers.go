package core

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func replicationControllerRules() define.Rules[*corev1.ReplicationController] {
	return define.Rules[*corev1.ReplicationController]{
		Default:        defaultReplicationController,
		ValidateCreate: func(rc *corev1.ReplicationController) field.ErrorList { return validateReplicationController(rc, nil) },
		Warnings: func(rc, old *corev1.ReplicationController) []string {
			if old == nil {
				return podspec.WorkloadWarnings(rc, nil, validate.SpecPath.Child("template"), rc.Spec.Template)
			}
			// kube-apiserver warns of the template as it was.
			return podspec.WorkloadWarnings(rc, old, validate.SpecPath.Child("template"), old.Spec.Template)
		},
		ValidateUpdate: validateReplicationController,
		ValidateStatus: validateControllerStatus,
	}
}

// nonConvertible begins annotations that named what a ReplicationController could not say of a
// ReplicaSet, while both were one kind.
const nonConvertible = "non-convertible.kubernetes.io"

// validateNonConvertible keeps what such an annotation of the old object names.
func validateNonConvertible(rc, old *corev1.ReplicationController) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(old.Annotations)) {
		parts := strings.Split(key, "/")
		switch {
		case !strings.HasPrefix(key, nonConvertible) || len(parts) != 2:
		case !strings.Contains(parts[1], "selector"):
			errs = append(errs, &field.Error{Type: field.ErrorTypeNotFound, BadValue: old.Annotations[key], Field: parts[1], Detail: "unknown non-convertible field"})
		case !equality.Semantic.DeepEqual(rc.Spec.Selector, old.Spec.Selector):
			errs = append(errs, field.Invalid(validate.SpecPath.Child("selector"), rc.Spec.Selector, "cannot update non-convertible selector"))
		}
	}
	return errs
}

// defaultReplicationController takes selector and labels from the template,
// where they are missing.
func defaultReplicationController(rc *corev1.ReplicationController) {
	define.SetDefaultPtr(&rc.Spec.Replicas, 1)
	if rc.Spec.Template == nil {
		return
	}
	podspec.DefaultTemplate(rc.Spec.Template)
	if len(rc.Spec.Selector) == 0 {
		rc.Spec.Selector = maps.Clone(rc.Spec.Template.Labels)
	}
	if len(rc.Labels) == 0 {
		rc.Labels = maps.Clone(rc.Spec.Template.Labels)
	}
}

// validateReplicationController checks a controller; old is nil for a new one.
func validateReplicationController(rc, old *corev1.ReplicationController) field.ErrorList {
	var errs field.ErrorList
	if len(rc.Spec.Selector) == 0 {
		errs = append(errs, field.Required(validate.SpecPath.Child("selector"), ""))
	}
	errs = append(errs, validateControllerTemplate(validate.SpecPath.Child("template"), rc)...)
	if old != nil {
		errs = append(errs, validateNonConvertible(rc, old)...)
	}
	// kube-apiserver has these rules in the tags of the type, and reports them last.
	if old == nil {
		errs = append(errs, validate.LongName(rc)...)
	}
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("replicas"), rc.Spec.Replicas)...)
	return append(errs, validate.NotNegative(validate.SpecPath.Child("minReadySeconds"), &rc.Spec.MinReadySeconds)...)
}

func validateControllerTemplate(path *field.Path, rc *corev1.ReplicationController) field.ErrorList {
	if rc.Spec.Template == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if selector := labels.Set(rc.Spec.Selector).AsSelector(); !selector.Empty() && !selector.Matches(labels.Set(rc.Spec.Template.Labels)) {
		errs = append(errs, validate.OtherLabels(path, rc.Spec.Template.Labels))
	}
	return append(errs, podspec.ValidateAlwaysRestartingTemplate(rc.Spec.Template, "ReplicationController")...)
}

// validateControllerStatus is as for a ReplicaSet.
func validateControllerStatus(rc, _ *corev1.ReplicationController) field.ErrorList {
	s, path := &rc.Status, field.NewPath("status")
	labeled, ready := validate.Count{Field: "fullyLabeledReplicas", Value: int64(s.FullyLabeledReplicas)}, validate.Count{Field: "readyReplicas", Value: int64(s.ReadyReplicas)}
	available := validate.Count{Field: "availableReplicas", Value: int64(s.AvailableReplicas)}
	errs := validate.Counts(path, validate.Count{Field: "replicas", Value: int64(s.Replicas)},
		labeled, ready, available, validate.Count{Field: "observedGeneration", Value: s.ObservedGeneration})
	errs = append(errs, validate.AtMost(path, int64(s.Replicas), "status.replicas", labeled, ready, available)...)
	return append(errs, validate.AtMost(path, ready.Value, "readyReplicas", available)...)
}

func replicationControllerScale() *resource.Scale {
	return define.Scale(func(rc *corev1.ReplicationController) (**int32, int32, *metav1.LabelSelector) {
		return &rc.Spec.Replicas, rc.Status.Replicas, &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}
	})
}
