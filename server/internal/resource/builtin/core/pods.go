package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func podRules() define.Rules[*corev1.Pod] {
	return define.Rules[*corev1.Pod]{
		Default:                defaultPod,
		PrepareForCreate:       preparePodForCreate,
		CompleteNew:            completeNewPod,
		CompleteSubresource:    completeResize,
		PrepareForUpdate:       preparePodForUpdate,
		PrepareForStatusUpdate: preparePodForStatusUpdate,
		ValidateCreate:         validateNewPod,
		ValidateUpdate: func(pod, old *corev1.Pod) field.ErrorList {
			return append(podspec.ValidateChangedPod(pod, old), validatePodUpdate(pod, old)...)
		},
		ValidateStatus:      validatePodStatus,
		ValidateSubresource: validatePodSubresource,
		Graceful:            podGrace,
		Warnings: func(pod, old *corev1.Pod) []string {
			if old != nil { // few write pods by hand, and many change them often
				return nil
			}
			return podspec.PodWarnings(pod)
		},
		StatusWarnings: podStatusWarnings,
	}
}

// podStatusWarnings are about addresses that readers may understand differently.
func podStatusWarnings(pod *corev1.Pod) []string {
	var warnings []string
	for i, ip := range pod.Status.PodIPs {
		warnings = append(warnings, validation.GetWarningsForIP(field.NewPath("status", "podIPs").Index(i).Child("ip"), ip.IP)...)
	}
	for i, ip := range pod.Status.HostIPs {
		warnings = append(warnings, validation.GetWarningsForIP(field.NewPath("status", "hostIPs").Index(i).Child("ip"), ip.IP)...)
	}
	return warnings
}

// validateNewPod checks what only new pods must not have. A template may have it: whoever makes
// pods of it can change them.
func validateNewPod(pod *corev1.Pod) field.ErrorList {
	errs := podspec.ValidateNewPod(pod)
	if len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return append(errs, podspec.ValidatePodProfiles(pod)...)
}

// preparePodForCreate computes what a new pod's status begins with. The account,
// the priority and the tolerations that every pod has are admission's part.
func preparePodForCreate(pod *corev1.Pod) {
	podspec.DropInitContainerAnnotations(pod.Annotations)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&pod.Spec)}
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates", LastTransitionTime: pod.CreationTimestamp,
		}}
	}
}

// completeNewPod sets what depends on all containers and labels.
func completeNewPod(pod *corev1.Pod) {
	podspec.SelectOwnLabels(&pod.Spec, pod.Labels)
	if podspec.DefaultPodResources(&pod.Spec) {
		pod.Status.QOSClass = qosClass(&pod.Spec)
	}
}

// preparePodForUpdate keeps the fields that no client may write.
func preparePodForUpdate(pod, old *corev1.Pod) {
	podspec.DropInitContainerAnnotations(pod.Annotations)
	if pod.Spec.Resources == nil {
		pod.Spec.Resources = old.Spec.Resources // of which older clients do not know
	}
	pod.Status.QOSClass = old.Status.QOSClass
}

// podGrace says how long a pod that is being deleted may take. A pod that no
// kubelet is responsible for goes at once, and so does one that has ended.
func podGrace(pod *corev1.Pod, requested *int64) int64 {
	period := define.ValueOr(pod.Spec.TerminationGracePeriodSeconds, podspec.DefaultGraceSeconds)
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
	if podspec.HasPodResources(spec) {
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

// defaultPod completes a pod: its spec as in a template, and what only pods
// have.
func defaultPod(pod *corev1.Pod) {
	podspec.Default(&pod.Spec)
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	define.SetDefaultPtr(&pod.Spec.EnableServiceLinks, true)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
			for j := range containers[i].Ports {
				if p := &containers[i].Ports[j]; pod.Spec.HostNetwork {
					define.SetDefault(&p.HostPort, p.ContainerPort)
				}
			}
		}
	}
	define.SingularDecides(&pod.Status.PodIP, &pod.Status.PodIPs, func(ip *corev1.PodIP) *string { return &ip.IP })
	roundStatusAmounts(&pod.Status)
}

func roundStatusAmounts(status *corev1.PodStatus) {
	podspec.RoundAmounts(status.AllocatedResources)
	if status.Resources != nil {
		podspec.RoundAmounts(status.Resources.Limits, status.Resources.Requests)
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			podspec.RoundAmounts(list[i].AllocatedResources)
			if r := list[i].Resources; r != nil {
				podspec.RoundAmounts(r.Limits, r.Requests)
			}
		}
	}
}

// requestLimits makes a limit the request where there is none.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}
