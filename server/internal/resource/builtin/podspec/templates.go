package podspec

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// ValidateAlwaysRestartingTemplate checks the template of a workload whose pods
// run until they are deleted. kind is how kube-apiserver calls the workload.
func ValidateAlwaysRestartingTemplate(template *corev1.PodTemplateSpec, kind string) field.ErrorList {
	errs := ValidateTemplate(validate.SpecPath.Child("template"), template)
	return append(errs, ValidateAlwaysRestarting(template, kind)...)
}

// ValidateAlwaysRestarting is the part of ValidateAlwaysRestartingTemplate that is about how long the pods run.
func ValidateAlwaysRestarting(template *corev1.PodTemplateSpec, kind string) field.ErrorList {
	path := validate.SpecPath.Child("template")
	var errs field.ErrorList
	if p := template.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}

// DefaultTemplate completes the template of a workload.
func DefaultTemplate(template *corev1.PodTemplateSpec) {
	DropInitContainerAnnotations(template.Annotations)
	Default(&template.Spec)
}

// ValidateTemplate checks the template of a workload.
func ValidateTemplate(path *field.Path, template *corev1.PodTemplateSpec) field.ErrorList {
	errs := metavalidation.ValidateLabels(template.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, path.Child("annotations"))...)
	errs = append(errs, validateAnnotations(path.Child("annotations"), template.Annotations, nil, &template.Spec)...)
	errs = append(errs, Validate(path.Child("spec"), &template.Spec)...)
	errs = append(errs, validateProfiles(path.Child("spec"), &template.ObjectMeta, &template.Spec)...)
	if len(template.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}
