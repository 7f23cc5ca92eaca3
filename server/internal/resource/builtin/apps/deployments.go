package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func deploymentRules() define.Rules[*appsv1.Deployment] {
	return define.Rules[*appsv1.Deployment]{
		Default: defaultDeployment,
		PrepareForUpdate: func(d, old *appsv1.Deployment) {
			if !equality.Semantic.DeepEqual(d.Annotations, old.Annotations) { // its ReplicaSets get them, too
				d.Generation = old.Generation + 1
			}
		},
		Validate: validateDeployment,
		Warnings: func(d, old *appsv1.Deployment) []string {
			if old == nil {
				return podspec.WorkloadWarnings(d, nil, validate.SpecPath.Child("template"), &d.Spec.Template)
			}
			return podspec.WorkloadWarnings(d, old, validate.SpecPath.Child("template"), &d.Spec.Template)
		},
		ValidateUpdate: func(d, old *appsv1.Deployment) field.ErrorList {
			return validate.Unchanged(validate.SpecPath.Child("selector"), d.Spec.Selector, old.Spec.Selector)
		},
		ValidateStatus: validateDeploymentStatus,
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	podspec.DefaultTemplate(&d.Spec.Template)
	define.SetDefaultPtr(&d.Spec.Replicas, 1)
	define.SetDefaultPtr(&d.Spec.RevisionHistoryLimit, revisionHistory)
	define.SetDefaultPtr(&d.Spec.ProgressDeadlineSeconds, 600)
	strategy := &d.Spec.Strategy
	define.SetDefault(&strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		define.SetDefaultPtr(&strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		define.SetDefaultPtr(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		define.SetDefaultPtr(&strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	spec := &d.Spec
	errs := validate.NotNegative(validate.SpecPath.Child("replicas"), spec.Replicas)
	errs = append(errs, validatePods(spec.Selector, &spec.Template)...)
	errs = append(errs, validateDeploymentStrategy(&spec.Strategy)...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit)...)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("progressDeadlineSeconds"), spec.ProgressDeadlineSeconds)...)
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil && *deadline <= spec.MinReadySeconds {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"))
	}
	return errs
}

// validatePods checks the selector and the template of a Deployment or a ReplicaSet, of which
// kube-apiserver speaks alike.
func validatePods(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) field.ErrorList {
	errs, ok := validate.WorkloadSelector(selector, template.Labels, "empty selector is invalid for deployment", "invalid label selector")
	if ok {
		errs = append(errs, podspec.ValidateAlwaysRestartingTemplate(template, "ReplicaSet")...)
	}
	return errs
}

func validateDeploymentStrategy(s *appsv1.DeploymentStrategy) field.ErrorList {
	path := validate.SpecPath.Child("strategy")
	if s.Type != appsv1.RecreateDeploymentStrategyType && s.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return field.ErrorList{field.NotSupported(path, s, []appsv1.DeploymentStrategyType{appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType})}
	}
	var errs field.ErrorList
	rolling := path.Child("rollingUpdate")
	switch {
	case s.RollingUpdate == nil:
	case s.Type == appsv1.RecreateDeploymentStrategyType:
		errs = append(errs, field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'"))
	default:
		errs = append(errs, validate.CountOrPercent(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable)...)
		errs = append(errs, validate.CountOrPercent(rolling.Child("maxSurge"), s.RollingUpdate.MaxSurge)...)
		if validate.IsZero(s.RollingUpdate.MaxUnavailable) && validate.IsZero(s.RollingUpdate.MaxSurge) {
			errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
		}
		errs = append(errs, validate.PercentAtMost100(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable)...)
	}
	return errs
}

func deploymentScale() *resource.Scale {
	return define.Scale(func(d *appsv1.Deployment) (**int32, int32, *metav1.LabelSelector) {
		return &d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector
	})
}

// revisionHistory is how many old revisions workloads keep by default.
const revisionHistory int32 = 10
