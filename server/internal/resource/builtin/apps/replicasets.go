package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func replicaSetRules() define.Rules[*appsv1.ReplicaSet] {
	return define.Rules[*appsv1.ReplicaSet]{
		Default: func(rs *appsv1.ReplicaSet) {
			podspec.DefaultTemplate(&rs.Spec.Template)
			define.SetDefaultPtr(&rs.Spec.Replicas, 1)
		},
		Validate: validateReplicaSet,
		Warnings: func(rs, old *appsv1.ReplicaSet) []string {
			if old == nil {
				return podspec.WorkloadWarnings(rs, nil, validate.SpecPath.Child("template"), &rs.Spec.Template)
			}
			return podspec.WorkloadWarnings(rs, old, validate.SpecPath.Child("template"), &rs.Spec.Template)
		},
		ValidateUpdate: func(rs, old *appsv1.ReplicaSet) field.ErrorList {
			return validate.Unchanged(validate.SpecPath.Child("selector"), rs.Spec.Selector, old.Spec.Selector)
		},
		ValidateStatus: validateReplicaSetStatus,
	}
}

func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	errs := validate.NotNegative(validate.SpecPath.Child("replicas"), rs.Spec.Replicas)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("minReadySeconds"), &rs.Spec.MinReadySeconds)...)
	return append(errs, validatePods(rs.Spec.Selector, &rs.Spec.Template)...)
}

func replicaSetScale() *resource.Scale {
	return define.Scale(func(rs *appsv1.ReplicaSet) (**int32, int32, *metav1.LabelSelector) {
		return &rs.Spec.Replicas, rs.Status.Replicas, rs.Spec.Selector
	})
}
