package builtin

import (
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The labels of a job's pods before they had a domain; they are still set.
const (
	oldControllerUIDLabel = "controller-uid"
	oldJobNameLabel       = "job-name"
)

func jobRules() rules[*batchv1.Job] {
	return rules[*batchv1.Job]{
		Default:          func(j *batchv1.Job) { defaultJobSpec(&j.Spec); defaultJobLabels(j) },
		PrepareForCreate: prepareJobForCreate,
		Validate:         validateJob,
		ValidateUpdate:   validateJobUpdate,
	}
}

func defaultJobSpec(spec *batchv1.JobSpec) {
	defaultPodTemplate(&spec.Template)
	if spec.Completions == nil && spec.Parallelism == nil {
		setDefaultPtr(&spec.Completions, 1)
	}
	setDefaultPtr(&spec.Parallelism, 1)
	setDefaultPtr(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	setDefaultPtr(&spec.Suspend, false)
	if spec.BackoffLimitPerIndex != nil {
		setDefaultPtr(&spec.BackoffLimit, int32(1<<31-1))
	}
	setDefaultPtr(&spec.BackoffLimit, 6)
	if spec.PodFailurePolicy != nil {
		setDefaultPtr(&spec.PodReplacementPolicy, batchv1.Failed)
		for i := range spec.PodFailurePolicy.Rules {
			for j := range spec.PodFailurePolicy.Rules[i].OnPodConditions {
				setDefault(&spec.PodFailurePolicy.Rules[i].OnPodConditions[j].Status, corev1.ConditionTrue)
			}
		}
	}
	setDefaultPtr(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
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
	if valueOr(j.Spec.ManualSelector, false) {
		return
	}
	labels := maps.Clone(j.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	uid := string(j.UID)
	labels[oldControllerUIDLabel], labels[batchv1.ControllerUidLabel] = uid, uid
	labels[oldJobNameLabel], labels[batchv1.JobNameLabel] = j.Name, j.Name
	j.Spec.Template.Labels = labels
	setDefaultPtr(&j.Spec.Selector, metav1.LabelSelector{})
	selected := maps.Clone(j.Spec.Selector.MatchLabels)
	if selected == nil {
		selected = map[string]string{}
	}
	selected[batchv1.ControllerUidLabel] = uid
	j.Spec.Selector.MatchLabels = selected
}

func validateJob(j *batchv1.Job) field.ErrorList {
	errs := validateJobSpec(specPath, &j.Spec)
	errs = append(errs, workloadSelector(j.Spec.Selector, j.Spec.Template.Labels)...)
	if valueOr(j.Spec.CompletionMode, "") == batchv1.IndexedCompletion && valueOr(j.Spec.Completions, 0) > 0 {
		// The longest of the pods' hostnames must be one, too.
		last := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
		for _, message := range validation.IsDNS1123Label(last) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), j.Name, "will not able to create pod with invalid DNS label: "+last+": "+message))
		}
	}
	return errs
}

// validateJobSpec checks a job's spec, in a job or a cron job.
func validateJobSpec(path *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	errs := notNegative(path.Child("parallelism"), spec.Parallelism)
	errs = append(errs, notNegative(path.Child("completions"), spec.Completions)...)
	errs = append(errs, notNegative(path.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)...)
	errs = append(errs, notNegative(path.Child("backoffLimit"), spec.BackoffLimit)...)
	errs = append(errs, notNegative(path.Child("backoffLimitPerIndex"), spec.BackoffLimitPerIndex)...)
	errs = append(errs, notNegative(path.Child("maxFailedIndexes"), spec.MaxFailedIndexes)...)
	errs = append(errs, notNegative(path.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished)...)
	if mode := spec.CompletionMode; mode != nil {
		errs = append(errs, oneOf(path.Child("completionMode"), *mode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)...)
		if *mode == batchv1.IndexedCompletion && spec.Completions == nil {
			errs = append(errs, field.Required(path.Child("completions"), "when completion mode is Indexed"))
		}
		if *mode != batchv1.IndexedCompletion && spec.BackoffLimitPerIndex != nil {
			errs = append(errs, field.Invalid(path.Child("backoffLimitPerIndex"), *spec.BackoffLimitPerIndex, "requires indexed completion mode"))
		}
	}
	if policy := spec.PodReplacementPolicy; policy != nil {
		errs = append(errs, oneOf(path.Child("podReplacementPolicy"), *policy, batchv1.TerminatingOrFailed, batchv1.Failed)...)
	}
	if by := spec.ManagedBy; by != nil {
		errs = append(errs, validation.IsDomainPrefixedPath(path.Child("managedBy"), *by)...)
	}
	errs = append(errs, validateIndexes(path, spec)...)
	errs = append(errs, validateFailurePolicy(path.Child("podFailurePolicy"), spec)...)
	errs = append(errs, validateSuccessPolicy(path.Child("successPolicy"), spec)...)
	template := path.Child("template")
	errs = append(errs, validatePodTemplate(template, &spec.Template)...)
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
	errs := unchanged(specPath.Child("selector"), j.Spec.Selector, old.Spec.Selector)
	errs = append(errs, unchanged(specPath.Child("completionMode"), j.Spec.CompletionMode, old.Spec.CompletionMode)...)
	errs = append(errs, unchanged(specPath.Child("podFailurePolicy"), j.Spec.PodFailurePolicy, old.Spec.PodFailurePolicy)...)
	errs = append(errs, unchanged(specPath.Child("successPolicy"), j.Spec.SuccessPolicy, old.Spec.SuccessPolicy)...)
	errs = append(errs, unchanged(specPath.Child("backoffLimitPerIndex"), j.Spec.BackoffLimitPerIndex, old.Spec.BackoffLimitPerIndex)...)
	errs = append(errs, unchanged(specPath.Child("managedBy"), j.Spec.ManagedBy, old.Spec.ManagedBy)...)
	errs = append(errs, validateCompletionsChange(j, old)...)

	template, was := j.Spec.Template.DeepCopy(), &old.Spec.Template
	if valueOr(old.Spec.Suspend, false) && old.Status.StartTime == nil {
		template.Labels, template.Annotations = was.Labels, was.Annotations
		template.Spec.NodeSelector = was.Spec.NodeSelector
		template.Spec.Affinity = was.Spec.Affinity
		template.Spec.Tolerations = was.Spec.Tolerations
		template.Spec.SchedulingGates = was.Spec.SchedulingGates
	}
	return append(errs, unchanged(specPath.Child("template"), *template, *was)...)
}

// validateCompletionsChange: an indexed job is elastic, if completions and
// parallelism change together (KEP-3715).
func validateCompletionsChange(j, old *batchv1.Job) field.ErrorList {
	if equality.Semantic.DeepEqual(j.Spec.Completions, old.Spec.Completions) {
		return nil
	}
	at := specPath.Child("completions")
	elastic := valueOr(old.Spec.CompletionMode, "") == batchv1.IndexedCompletion &&
		j.Spec.Completions != nil && old.Spec.Completions != nil &&
		equality.Semantic.DeepEqual(j.Spec.Completions, j.Spec.Parallelism)
	if elastic {
		return nil
	}
	return field.ErrorList{field.Invalid(at, j.Spec.Completions, immutable)}
}
