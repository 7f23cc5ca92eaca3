package batch

import (
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// The labels of a job's pods before they had a domain; they are still set.
const (
	legacyControllerUIDLabel = "controller-uid"
	legacyJobNameLabel       = "job-name"
)

func jobRules() define.Rules[*batchv1.Job] {
	return define.Rules[*batchv1.Job]{
		Default:          defaultJob,
		PrepareForCreate: prepareJobForCreate,
		Validate:         validateJob,
		ValidateUpdate:   validateJobUpdate,
	}
}

func defaultJob(j *batchv1.Job) {
	defaultJobSpec(&j.Spec)
	define.SetDefaultPtr(&j.Spec.ManualSelector, false)
	defaultJobLabels(j)
}

func defaultJobSpec(spec *batchv1.JobSpec) {
	podspec.DefaultTemplate(&spec.Template)
	if spec.Completions == nil && spec.Parallelism == nil {
		define.SetDefaultPtr(&spec.Completions, 1)
	}
	define.SetDefaultPtr(&spec.Parallelism, 1)
	define.SetDefaultPtr(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	define.SetDefaultPtr(&spec.Suspend, false)
	if spec.BackoffLimitPerIndex != nil {
		define.SetDefaultPtr(&spec.BackoffLimit, int32(1<<31-1))
	}
	define.SetDefaultPtr(&spec.BackoffLimit, 6)
	if spec.PodFailurePolicy != nil {
		define.SetDefaultPtr(&spec.PodReplacementPolicy, batchv1.Failed)
		for i := range spec.PodFailurePolicy.Rules {
			for j := range spec.PodFailurePolicy.Rules[i].OnPodConditions {
				define.SetDefault(&spec.PodFailurePolicy.Rules[i].OnPodConditions[j].Status, corev1.ConditionTrue)
			}
		}
	}
	define.SetDefaultPtr(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
}

// defaultJobLabels gives a job without labels those of its pods.
func defaultJobLabels(j *batchv1.Job) {
	if len(j.Labels) == 0 {
		j.Labels = maps.Clone(j.Spec.Template.Labels)
	}
}

// prepareJobForCreate makes the selector, which is unique because it is made
// of the job's uid, unless the user wants to be responsible for that.
func prepareJobForCreate(j *batchv1.Job) {
	if define.ValueOr(j.Spec.ManualSelector, false) {
		return
	}
	labels := maps.Clone(j.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	uid := string(j.UID)
	labels[legacyControllerUIDLabel], labels[batchv1.ControllerUidLabel] = uid, uid
	labels[legacyJobNameLabel], labels[batchv1.JobNameLabel] = j.Name, j.Name
	j.Spec.Template.Labels = labels
	defaultJobLabels(j)
	define.SetDefaultPtr(&j.Spec.Selector, metav1.LabelSelector{})
	selected := maps.Clone(j.Spec.Selector.MatchLabels)
	if selected == nil {
		selected = map[string]string{}
	}
	selected[batchv1.ControllerUidLabel] = uid
	j.Spec.Selector.MatchLabels = selected
}

func validateJob(j *batchv1.Job) field.ErrorList {
	errs := validateJobSpec(validate.SpecPath, &j.Spec)
	if selector := validate.SpecPath.Child("selector"); j.Spec.Selector == nil {
		errs = append(errs, field.Required(selector, ""))
	} else {
		errs = append(errs, validate.LabelSelector(selector, j.Spec.Selector)...)
	}
	errs = append(errs, validate.Selects(j.Spec.Selector, j.Spec.Template.Labels)...)
	if define.ValueOr(j.Spec.CompletionMode, "") == batchv1.IndexedCompletion && define.ValueOr(j.Spec.Completions, 0) > 0 {
		// The longest of the pods' hostnames must be one, too.
		last := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
		for range validation.IsDNS1123Label(last) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), j.Name, "will not able to create pod with invalid DNS label: "+last))
		}
	}
	return errs
}

// validateJobSpec checks a job's spec, in a job or a cron job.
func validateJobSpec(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	errs := validate.NotNegative(path.Child("parallelism"), spec.Parallelism)
	errs = append(errs, validate.NotNegative(path.Child("completions"), spec.Completions)...)
	errs = append(errs, validate.NotNegative(path.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)...)
	errs = append(errs, validate.NotNegative(path.Child("backoffLimit"), spec.BackoffLimit)...)
	errs = append(errs, validate.NotNegative(path.Child("backoffLimitPerIndex"), spec.BackoffLimitPerIndex)...)
	errs = append(errs, validate.NotNegative(path.Child("maxFailedIndexes"), spec.MaxFailedIndexes)...)
	errs = append(errs, validate.NotNegative(path.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished)...)
	if mode := spec.CompletionMode; mode != nil {
		errs = append(errs, validate.SupportedInOrder(path.Child("completionMode"), *mode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)...)
		if *mode == batchv1.IndexedCompletion && spec.Completions == nil {
			errs = append(errs, field.Required(path.Child("completions"), "when completion mode is Indexed"))
		}
		if *mode != batchv1.IndexedCompletion && spec.BackoffLimitPerIndex != nil {
			errs = append(errs, field.Invalid(path.Child("backoffLimitPerIndex"), *spec.BackoffLimitPerIndex, "requires indexed completion mode"))
		}
	}
	if policy := spec.PodReplacementPolicy; policy != nil {
		errs = append(errs, validate.OneOf(path.Child("podReplacementPolicy"), *policy, batchv1.TerminatingOrFailed, batchv1.Failed)...)
	}
	if by := spec.ManagedBy; by != nil {
		errs = append(errs, validation.IsDomainPrefixedPath(path.Child("managedBy"), *by)...)
	}
	errs = append(errs, validateIndexes(path, spec)...)
	errs = append(errs, validateFailurePolicy(path.Child("podFailurePolicy"), spec)...)
	errs = append(errs, validateSuccessPolicy(path.Child("successPolicy"), spec)...)
	template := path.Child("template")
	errs = append(errs, podspec.ValidateTemplate(template, &spec.Template)...)
	restart := template.Child("spec", "restartPolicy")
	switch spec.Template.Spec.RestartPolicy {
	case corev1.RestartPolicyOnFailure:
		if spec.PodFailurePolicy != nil {
			errs = append(errs, field.Invalid(restart, spec.Template.Spec.RestartPolicy, "only \"Never\" is supported when podFailurePolicy is specified"))
		}
	case corev1.RestartPolicyNever:
	default:
		errs = append(errs, field.Required(restart, "valid values: \"OnFailure\", \"Never\""))
	}
	return errs
}

// validateJobUpdate: what decides which pods belong to the job, and how many
// are needed, does not change once the job exists. A suspended job that has
// not started may still be placed elsewhere (KEP-2926).
func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	errs := validate.Unchanged(validate.SpecPath.Child("selector"), j.Spec.Selector, old.Spec.Selector)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("completionMode"), j.Spec.CompletionMode, old.Spec.CompletionMode)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("podFailurePolicy"), j.Spec.PodFailurePolicy, old.Spec.PodFailurePolicy)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("successPolicy"), j.Spec.SuccessPolicy, old.Spec.SuccessPolicy)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("backoffLimitPerIndex"), j.Spec.BackoffLimitPerIndex, old.Spec.BackoffLimitPerIndex)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("managedBy"), j.Spec.ManagedBy, old.Spec.ManagedBy)...)
	errs = append(errs, validateCompletionsChange(j, old)...)

	template, was := j.Spec.Template.DeepCopy(), &old.Spec.Template
	if define.ValueOr(old.Spec.Suspend, false) && old.Status.StartTime == nil {
		template.Labels, template.Annotations = was.Labels, was.Annotations
		template.Spec.NodeSelector = was.Spec.NodeSelector
		template.Spec.Affinity = was.Spec.Affinity
		template.Spec.Tolerations = was.Spec.Tolerations
		template.Spec.SchedulingGates = was.Spec.SchedulingGates
	}
	return append(errs, validate.Unchanged(validate.SpecPath.Child("template"), *template, *was)...)
}

// validateCompletionsChange: an indexed job is elastic, if completions and
// parallelism change together (KEP-3715).
func validateCompletionsChange(j, old *batchv1.Job) field.ErrorList {
	if equality.Semantic.DeepEqual(j.Spec.Completions, old.Spec.Completions) {
		return nil
	}
	at := validate.SpecPath.Child("completions")
	elastic := define.ValueOr(old.Spec.CompletionMode, "") == batchv1.IndexedCompletion &&
		j.Spec.Completions != nil && old.Spec.Completions != nil &&
		equality.Semantic.DeepEqual(j.Spec.Completions, j.Spec.Parallelism)
	if elastic {
		return nil
	}
	return field.ErrorList{field.Invalid(at, j.Spec.Completions, validate.Immutable)}
}
