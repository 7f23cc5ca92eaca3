package batch

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validateJobUpdate checks a job that takes the place of another: what decides which pods
// belong to it, and how many are needed, does not change once it exists.
func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	errs := validateSelectingSpec(j)
	errs = append(errs, validateCompletionsChange(&j.Spec, &old.Spec)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("selector"), j.Spec.Selector, old.Spec.Selector)...)
	errs = append(errs, validateTemplateChange(j, old)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("completionMode"), j.Spec.CompletionMode, old.Spec.CompletionMode)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("podFailurePolicy"), j.Spec.PodFailurePolicy, old.Spec.PodFailurePolicy)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("backoffLimitPerIndex"), j.Spec.BackoffLimitPerIndex, old.Spec.BackoffLimitPerIndex)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("managedBy"), j.Spec.ManagedBy, old.Spec.ManagedBy)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("successPolicy"), j.Spec.SuccessPolicy, old.Spec.SuccessPolicy)...)
	return append(errs, validateLongestHostname(j)...)
}

// validateCompletionsChange: an indexed job is elastic, if completions and parallelism
// change together (KEP-3715). That an indexed job needs completions is said elsewhere.
func validateCompletionsChange(spec, old *batchv1.JobSpec) field.ErrorList {
	path := validate.SpecPath.Child("completions")
	switch {
	case !isIndexed(spec):
		return validate.Unchanged(path, spec.Completions, old.Completions)
	case equality.Semantic.DeepEqual(spec.Completions, old.Completions), spec.Completions == nil:
		return nil
	case *spec.Completions != define.ValueOr(spec.Parallelism, 0):
		return field.ErrorList{field.Invalid(path, spec.Completions, "can only be modified in tandem with spec.parallelism")}
	}
	return nil
}

// validateTemplateChange: a suspended job without active pods, that has not started or says
// that it is suspended, may be placed elsewhere (KEP-2926, KEP-5440) and given other
// resources. What is compared then is the template's spec alone.
func validateTemplateChange(j, old *batchv1.Job) field.ErrorList {
	template, path := &j.Spec.Template, validate.SpecPath.Child("template")
	if !isTemplateFree(old) {
		return validate.Unchanged(path, template, &old.Spec.Template)
	}
	allowed := old.Spec.Template.Spec.DeepCopy()
	allowed.NodeSelector, allowed.Tolerations = template.Spec.NodeSelector, template.Spec.Tolerations
	allowed.SchedulingGates = template.Spec.SchedulingGates
	allowed.Affinity = withNodeAffinity(allowed.Affinity, template.Spec.Affinity)
	allowResources(allowed.Containers, template.Spec.Containers)
	allowResources(allowed.InitContainers, template.Spec.InitContainers)
	return validate.Unchanged(path.Child("spec"), template.Spec, *allowed)
}

func isTemplateFree(j *batchv1.Job) bool {
	return define.ValueOr(j.Spec.Suspend, false) && j.Status.Active == 0 &&
		(j.Status.StartTime == nil || hasCondition(j, batchv1.JobSuspended, corev1.ConditionTrue))
}

// withNodeAffinity returns an affinity with the node affinity of another, and nil if nothing
// is left that the other does not have either. It owns affinity.
func withNodeAffinity(affinity, other *corev1.Affinity) *corev1.Affinity {
	switch {
	case other == nil && affinity != nil:
		affinity.NodeAffinity = nil
		if *affinity == (corev1.Affinity{}) {
			return nil
		}
	case other != nil && affinity == nil:
		return &corev1.Affinity{NodeAffinity: other.NodeAffinity}
	case other != nil:
		affinity.NodeAffinity = other.NodeAffinity
	}
	return affinity
}

// allowResources gives containers the resources of their namesakes at the same place, if
// their number is the same.
func allowResources(allowed, containers []corev1.Container) {
	if len(allowed) != len(containers) {
		return
	}
	for i := range containers {
		if allowed[i].Name == containers[i].Name {
			allowed[i].Resources = containers[i].Resources
		}
	}
}
