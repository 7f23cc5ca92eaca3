package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Limits of a job's indexes.
const (
	maxIndexed          = 100_000 // pods at once, and failed indexes
	maxParallelPerIndex = 10_000
	maxFailedPerIndex   = 10_000
	maxBackoffPerIndex  = 100_000 // completions of a job that counts the failures of each index, without more limits
	maxManagedBy        = 63
)

// validateGeneratedSelector checks that the labels of a new job's pods, and its selector, are the
// generated ones: no other job may select the pods.
func validateGeneratedSelector(j *batchv1.Job) field.ErrorList {
	if define.ValueOr(j.Spec.ManualSelector, false) || j.Spec.Selector == nil {
		return nil
	}
	var errs field.ErrorList
	expected, path := generatedLabels(j), validate.SpecPath.Child("template", "metadata", "labels")
	for _, key := range []string{legacyControllerUIDLabel, legacyJobNameLabel, batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		if j.Spec.Template.Labels[key] != expected[key] {
			errs = append(errs, field.Invalid(path.Key(key), j.Spec.Template.Labels, fmt.Sprintf("must be '%s'", expected[key])))
		}
	}
	if selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil && !selector.Matches(labels.Set(expected)) {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("selector"), j.Spec.Selector, "`selector` not auto-generated"))
	}
	return errs
}

func validateJob(j *batchv1.Job) field.ErrorList {
	return append(validateSelectingSpec(j), validateLongestHostname(j)...)
}

// validateSelectingSpec checks a job's spec, and that its selector selects its pods.
func validateSelectingSpec(j *batchv1.Job) field.ErrorList {
	errs := validateJobSpec(validate.SpecPath, &j.Spec)
	if selector := validate.SpecPath.Child("selector"); j.Spec.Selector == nil {
		errs = append(errs, field.Required(selector, ""))
	} else {
		errs = append(errs, validate.LabelSelector(selector, j.Spec.Selector)...)
	}
	return append(errs, validate.Selects(j.Spec.Selector, j.Spec.Template.Labels)...)
}

// validateLongestHostname checks that the pod of an indexed job's last index can have a hostname.
func validateLongestHostname(j *batchv1.Job) field.ErrorList {
	if !isIndexed(&j.Spec) || define.ValueOr(j.Spec.Completions, 0) <= 0 {
		return nil
	}
	if last := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1); len(validation.IsDNS1123Label(last)) > 0 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), j.Name, "will not able to create pod with invalid DNS label: "+last)}
	}
	return nil
}

func isIndexed(spec *batchv1.JobSpec) bool {
	return define.ValueOr(spec.CompletionMode, "") == batchv1.IndexedCompletion
}

// validateJobSpec checks a job's spec, in a job or a cron job.
func validateJobSpec(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	errs := validateCounts(path, spec)
	errs = append(errs, validateManager(path.Child("managedBy"), spec.ManagedBy)...)
	errs = append(errs, validateCompletionMode(path, spec)...)
	errs = append(errs, validateFailurePolicy(path.Child("podFailurePolicy"), spec)...)
	errs = append(errs, validateSuccessPolicy(path.Child("successPolicy"), spec)...)
	if policy, at := spec.PodReplacementPolicy, path.Child("podReplacementPolicy"); policy != nil && spec.PodFailurePolicy != nil {
		errs = append(errs, validate.Supported(at, *policy, batchv1.Failed)...)
	} else if policy != nil {
		errs = append(errs, validate.Supported(at, *policy, batchv1.TerminatingOrFailed, batchv1.Failed)...)
	}
	template := path.Child("template")
	errs = append(errs, podspec.ValidateTemplate(template, &spec.Template)...)
	return append(errs, validateRestartPolicy(template.Child("spec", "restartPolicy"), spec)...)
}

func validateCounts(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	errs := validate.NotNegative(path.Child("parallelism"), spec.Parallelism)
	errs = append(errs, validate.NotNegative(path.Child("completions"), spec.Completions)...)
	errs = append(errs, validate.NotNegative(path.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)...)
	errs = append(errs, validate.NotNegative(path.Child("backoffLimit"), spec.BackoffLimit)...)
	errs = append(errs, validate.NotNegative(path.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished)...)
	errs = append(errs, validate.NotNegative(path.Child("backoffLimitPerIndex"), spec.BackoffLimitPerIndex)...)
	errs = append(errs, validate.NotNegative(path.Child("maxFailedIndexes"), spec.MaxFailedIndexes)...)
	if spec.MaxFailedIndexes != nil && spec.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	return errs
}

func validateManager(path *field.Path, by *string) field.ErrorList {
	if by == nil {
		return nil
	}
	errs := validation.IsDomainPrefixedPath(path, *by)
	if len(*by) > maxManagedBy {
		errs = append(errs, field.TooLong(path, "", maxManagedBy))
	}
	return errs
}

func validateCompletionMode(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	switch mode := spec.CompletionMode; {
	case mode == nil, *mode == batchv1.NonIndexedCompletion:
		var errs field.ErrorList
		if limit := spec.BackoffLimitPerIndex; limit != nil {
			errs = append(errs, field.Invalid(path.Child("backoffLimitPerIndex"), *limit, "requires indexed completion mode"))
		}
		if most := spec.MaxFailedIndexes; most != nil {
			errs = append(errs, field.Invalid(path.Child("maxFailedIndexes"), *most, "requires indexed completion mode"))
		}
		return errs
	case *mode == batchv1.IndexedCompletion:
		return validateIndexes(path, spec)
	}
	return validate.SupportedInOrder(path.Child("completionMode"), *spec.CompletionMode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
}

// validateIndexes checks how large an indexed job may be.
func validateIndexes(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	var errs field.ErrorList
	parallelism, failed := path.Child("parallelism"), path.Child("maxFailedIndexes")
	parallel, most := define.ValueOr(spec.Parallelism, 0), spec.MaxFailedIndexes
	if spec.Completions == nil {
		errs = append(errs, field.Required(path.Child("completions"), "when completion mode is Indexed"))
	}
	if parallel > maxIndexed {
		errs = append(errs, field.Invalid(parallelism, parallel, "must be less than or equal to 100000 when completion mode is Indexed"))
	}
	if spec.Completions != nil && most != nil && *most > *spec.Completions {
		errs = append(errs, field.Invalid(failed, *most, "must be less than or equal to completions"))
	}
	if most != nil && *most > maxIndexed {
		errs = append(errs, field.Invalid(failed, *most, "must be less than or equal to 100000"))
	}
	if define.ValueOr(spec.Completions, 0) <= maxBackoffPerIndex || spec.BackoffLimitPerIndex == nil {
		return errs
	}
	const high = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index"
	if most == nil {
		errs = append(errs, field.Required(failed, "must be specified when completions is above 100000"))
	}
	if parallel > maxParallelPerIndex {
		errs = append(errs, field.Invalid(parallelism, parallel, high))
	}
	if most != nil && *most > maxFailedPerIndex {
		errs = append(errs, field.Invalid(failed, *most, high))
	}
	return errs
}

func validateRestartPolicy(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	switch policy := spec.Template.Spec.RestartPolicy; {
	case policy == corev1.RestartPolicyAlways, policy == "": // it may be the default
		return field.ErrorList{field.Required(path, `valid values: "OnFailure", "Never"`)}
	case policy == corev1.RestartPolicyOnFailure && spec.PodFailurePolicy != nil:
		return field.ErrorList{field.Invalid(path, policy, `only "Never" is supported when podFailurePolicy is specified`)}
	default:
		return validate.SupportedInOrder(path, policy, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	}
}

// jobWarnings are about the job that an object describes at a path: its name, many completions at
// once, and its template. old is nil for a new object.
func jobWarnings(obj, old metav1.Object, path *field.Path, spec *batchv1.JobSpec) []string {
	warnings := podspec.WorkloadWarnings(obj, old, path.Child("template"), &spec.Template)
	changed := old == nil || obj.GetGeneration() != old.GetGeneration()
	if many := define.ValueOr(spec.Completions, 0) > maxBackoffPerIndex && define.ValueOr(spec.Parallelism, 0) > maxParallelPerIndex; !changed || !many || !isIndexed(spec) {
		return warnings
	}
	about := path.String() + ": In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4," +
		" Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
	// After what the name gives, before the template's.
	at := len(warnings) - len(podspec.TemplateWarnings(path.Child("template"), &spec.Template))
	return slices.Insert(warnings, at, about)
}
