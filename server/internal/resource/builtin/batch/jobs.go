package batch

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		ValidateCreate:   func(j *batchv1.Job) field.ErrorList { return append(validateGeneratedSelector(j), validateJob(j)...) },
		ValidateUpdate:   func(j, old *batchv1.Job) field.ErrorList { return append(validateJob(j), validateJobUpdate(j, old)...) },
		Warnings: func(j, old *batchv1.Job) []string {
			if old == nil {
				return jobWarnings(j, nil, validate.SpecPath, &j.Spec)
			}
			return jobWarnings(j, old, validate.SpecPath, &j.Spec)
		},
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
	}
	define.SetDefaultPtr(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	defaultPodConditions(spec.PodFailurePolicy)
}

func defaultPodConditions(policy *batchv1.PodFailurePolicy) {
	if policy == nil {
		return
	}
	for i := range policy.Rules {
		for j := range policy.Rules[i].OnPodConditions {
			define.SetDefault(&policy.Rules[i].OnPodConditions[j].Status, corev1.ConditionTrue)
		}
	}
}

// defaultJobLabels gives a job without labels those of its pods.
func defaultJobLabels(j *batchv1.Job) {
	if len(j.Labels) == 0 {
		j.Labels = maps.Clone(j.Spec.Template.Labels)
	}
}

// prepareJobForCreate makes the selector, which is unique because it is made
// of the job's uid, unless the user wants to be responsible for that. Labels of
// its own names that the user has set stay, and are refused if they are others.
func prepareJobForCreate(j *batchv1.Job) {
	if define.ValueOr(j.Spec.ManualSelector, false) {
		return
	}
	labels := generatedLabels(j)
	maps.Copy(labels, j.Spec.Template.Labels)
	j.Spec.Template.Labels = labels
	defaultJobLabels(j)
	define.SetDefaultPtr(&j.Spec.Selector, metav1.LabelSelector{})
	selected := map[string]string{batchv1.ControllerUidLabel: string(j.UID)}
	maps.Copy(selected, j.Spec.Selector.MatchLabels)
	j.Spec.Selector.MatchLabels = selected
}

// generatedLabels are those of the pods of a job that does not select them on its own.
func generatedLabels(j *batchv1.Job) map[string]string {
	uid := string(j.UID)
	return map[string]string{
		legacyControllerUIDLabel: uid, batchv1.ControllerUidLabel: uid, legacyJobNameLabel: j.Name, batchv1.JobNameLabel: j.Name,
	}
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
