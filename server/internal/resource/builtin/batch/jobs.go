package batch

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
		ValidateUpdate:   validateJobUpdate,
		ValidateStatus:   validateJobStatusUpdate,
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
