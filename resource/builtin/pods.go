package builtin

import (
	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// tolerationSeconds is how long a pod stays on a node that is not ready or
// not reachable, unless it says otherwise.
const tolerationSeconds int64 = 300

func podRules() rules[*corev1.Pod] {
	return rules[*corev1.Pod]{
		Default:                defaultPod,
		PrepareForCreate:       preparePodForCreate,
		PrepareForUpdate:       preparePodForUpdate,
		PrepareForStatusUpdate: preparePodForStatusUpdate,
		Validate: func(pod *corev1.Pod) field.ErrorList {
			return validatePodSpec(specPath, &pod.Spec)
		},
		ValidateUpdate:      validatePodUpdate,
		ValidateSubresource: validatePodSubresource,
		Graceful:            podGrace,
	}
}

// preparePodForCreate does what API server and default admission do to every
// new pod.
func preparePodForCreate(pod *corev1.Pod) {
	setDefault(&pod.Spec.ServiceAccountName, defaultServiceAccount)
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	// Priorities of other classes are looked up, which is not for a strategy.
	if value, system := systemPriorities[pod.Spec.PriorityClassName]; system || pod.Spec.PriorityClassName == "" {
		setDefaultPtr(&pod.Spec.Priority, value)
	}
	setDefaultPtr(&pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	tolerateUnreadyNodes(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&pod.Spec)}
}

// preparePodForUpdate repeats what admission does on updates, and keeps what
// nobody may write.
func preparePodForUpdate(pod, old *corev1.Pod) {
	tolerateUnreadyNodes(pod)
	setDefaultPtr(&pod.Spec.Priority, valueOr(old.Spec.Priority, 0))
	setDefaultPtr(&pod.Spec.PreemptionPolicy, valueOr(old.Spec.PreemptionPolicy, corev1.PreemptLowerPriority))
	pod.Status.QOSClass = old.Status.QOSClass
}

// preparePodForStatusUpdate keeps the class that was computed at creation.
func preparePodForStatusUpdate(pod, old *corev1.Pod) {
	if pod.Status.QOSClass == "" {
		pod.Status.QOSClass = old.Status.QOSClass
	}
	pod.Spec = *old.Spec.DeepCopy()
}

// tolerateUnreadyNodes lets a pod stay for a while on a node that is not
// ready or not reachable, unless it has its own opinion about that.
func tolerateUnreadyNodes(pod *corev1.Pod) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if toleratesEviction(pod.Spec.Tolerations, key) {
			continue
		}
		seconds := tolerationSeconds
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
}

// toleratesEviction reports whether a toleration covers the NoExecute effect
// of a taint.
func toleratesEviction(tolerations []corev1.Toleration, key string) bool {
	for _, t := range tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}

// podGrace says how long a pod that is being deleted may take. A pod that no
// kubelet is responsible for goes at once, and so does one that has ended.
func podGrace(pod *corev1.Pod, requested *int64) int64 {
	period := valueOr(pod.Spec.TerminationGracePeriodSeconds, defaultGraceSeconds)
	if requested != nil {
		period = *requested
	}
	if period < 0 {
		period = 1 // a negative period means as soon as the kubelet can
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	return period
}

// qosClass is the pod's quality of service: Guaranteed if every container's
// requests are its limits for cpu and memory, BestEffort if there are none at
// all, else Burstable.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, any := true, false
	visit := func(r *corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			any = any || !request.IsZero() || !limit.IsZero()
			if limit.IsZero() || request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	if spec.Resources != nil {
		visit(spec.Resources)
	} else {
		for i := range spec.InitContainers {
			visit(&spec.InitContainers[i].Resources)
		}
		for i := range spec.Containers {
			visit(&spec.Containers[i].Resources)
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

func podTemplateRules() rules[*corev1.PodTemplate] {
	return rules[*corev1.PodTemplate]{
		Default: func(t *corev1.PodTemplate) { defaultPodTemplate(&t.Template) },
		Validate: func(t *corev1.PodTemplate) field.ErrorList {
			return validatePodTemplate(field.NewPath("template"), &t.Template)
		},
	}
}
