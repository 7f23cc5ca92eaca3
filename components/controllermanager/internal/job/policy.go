package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// failureRule returns the action of the first rule of the job's failure policy
// (KEP-3329) that a failed pod matches, and what matched. Without one the pod
// counts as a failure.
func failureRule(job *batchv1.Job, pod *corev1.Pod) (batchv1.PodFailurePolicyAction, string) {
	policy := job.Spec.PodFailurePolicy
	if policy == nil || pod.Status.Phase != corev1.PodFailed {
		return batchv1.PodFailurePolicyActionCount, ""
	}
	for i := range policy.Rules {
		rule := &policy.Rules[i]
		if what := matched(rule, pod); what != "" {
			return rule.Action, fmt.Sprintf("%s matching %v rule at index %d", what, rule.Action, i)
		}
	}
	return batchv1.PodFailurePolicyActionCount, ""
}

// matched says what of a pod a rule is about, or "".
func matched(rule *batchv1.PodFailurePolicyRule, pod *corev1.Pod) string {
	if on := rule.OnExitCodes; on != nil {
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
			for i := range statuses {
				if end := statuses[i].State.Terminated; end != nil && exitMatches(on, statuses[i].Name, end.ExitCode) {
					return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %d", statuses[i].Name, pod.Namespace, pod.Name, end.ExitCode)
				}
			}
		}
		return ""
	}
	for _, pattern := range rule.OnPodConditions {
		for _, c := range pod.Status.Conditions {
			if c.Type == pattern.Type && c.Status == pattern.Status {
				return fmt.Sprintf("Pod %s/%s has condition %v", pod.Namespace, pod.Name, c.Type)
			}
		}
	}
	return ""
}

// exitMatches: an exit without failure matches nothing, even what it is not
// in.
func exitMatches(on *batchv1.PodFailurePolicyOnExitCodesRequirement, container string, code int32) bool {
	if code == 0 || on.ContainerName != nil && *on.ContainerName != container {
		return false
	}
	return slices.Contains(on.Values, code) == (on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn)
}

// successRule returns the first rule of an Indexed job's success policy
// (KEP-3998) that the completed indexes satisfy.
func successRule(job *batchv1.Job, completed indexSet) (message string, ok bool) {
	if job.Spec.SuccessPolicy == nil || !indexed(job) || job.Spec.Completions == nil {
		return "", false
	}
	for i, rule := range job.Spec.SuccessPolicy.Rules {
		have, all := completed.len(), int(*job.Spec.Completions)
		if rule.SucceededIndexes != nil {
			meant := parseIndexes(*rule.SucceededIndexes, all)
			have, all = meant.common(completed), meant.len()
		}
		needed := all
		if rule.SucceededCount != nil {
			needed = int(*rule.SucceededCount)
		}
		if have >= needed {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}
