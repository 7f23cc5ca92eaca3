package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// revisionHistory is how many old revisions workloads keep by default.
const revisionHistory int32 = 10

func deploymentRules() rules[*appsv1.Deployment] {
	return rules[*appsv1.Deployment]{
		Default:  defaultDeployment,
		Validate: validateDeployment,
		ValidateUpdate: func(d, old *appsv1.Deployment) field.ErrorList {
			return unchanged(specPath.Child("selector"), d.Spec.Selector, old.Spec.Selector)
		},
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	defaultPodTemplate(&d.Spec.Template)
	setDefaultPtr(&d.Spec.Replicas, 1)
	setDefaultPtr(&d.Spec.RevisionHistoryLimit, revisionHistory)
	setDefaultPtr(&d.Spec.ProgressDeadlineSeconds, 600)
	strategy := &d.Spec.Strategy
	setDefault(&strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefaultPtr(&strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefaultPtr(&strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setDefaultPtr(&strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
}

func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	spec := &d.Spec
	errs := notNegative(specPath.Child("replicas"), spec.Replicas)
	errs = append(errs, workloadSelector(spec.Selector, spec.Template.Labels)...)
	errs = append(errs, validateLastingTemplate(&spec.Template)...)
	errs = append(errs, validateDeploymentStrategy(&spec.Strategy)...)
	errs = append(errs, notNegative(specPath.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	errs = append(errs, notNegative(specPath.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit)...)
	errs = append(errs, notNegative(specPath.Child("progressDeadlineSeconds"), spec.ProgressDeadlineSeconds)...)
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil && *deadline <= spec.MinReadySeconds {
		errs = append(errs, field.Invalid(specPath.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"))
	}
	return errs
}

// validateLastingTemplate checks the template of a workload whose pods are to
// run for ever.
func validateLastingTemplate(template *corev1.PodTemplateSpec) field.ErrorList {
	path := specPath.Child("template")
	errs := validatePodTemplate(path, template)
	if p := template.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in a workload's template is not supported"))
	}
	return errs
}

func validateDeploymentStrategy(s *appsv1.DeploymentStrategy) field.ErrorList {
	path := specPath.Child("strategy")
	errs := oneOf(path.Child("type"), s.Type, appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)
	rolling := path.Child("rollingUpdate")
	switch {
	case s.RollingUpdate == nil:
	case s.Type == appsv1.RecreateDeploymentStrategyType:
		errs = append(errs, field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'"))
	default:
		errs = append(errs, countOrPercent(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable)...)
		errs = append(errs, notAll(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable)...)
		errs = append(errs, countOrPercent(rolling.Child("maxSurge"), s.RollingUpdate.MaxSurge)...)
		if isZero(s.RollingUpdate.MaxUnavailable) && isZero(s.RollingUpdate.MaxSurge) {
			errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable, "may not be 0 when `maxSurge` is 0"))
		}
	}
	return errs
}

func deploymentScale() *resource.Scale {
	return scale(func(d *appsv1.Deployment) (**int32, int32, *metav1.LabelSelector) {
		return &d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector
	})
}

// scale makes the scale of a kind from where it keeps the replicas wanted
// and observed, and the selector.
func scale[T resource.Object](of func(T) (wanted **int32, observed int32, selector *metav1.LabelSelector)) *resource.Scale {
	return &resource.Scale{
		Get: func(obj resource.Object) (int32, int32, string, error) {
			wanted, observed, selector := of(obj.(T))
			text, err := selectorString(selector)
			return valueOr(*wanted, 0), observed, text, err
		},
		Set: func(obj resource.Object, replicas int32) error {
			wanted, _, _ := of(obj.(T))
			*wanted = &replicas
			return nil
		},
	}
}
