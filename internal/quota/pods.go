package quota

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

const (
	requestsPrefix    = corev1.DefaultResourceRequestsPrefix // "requests."
	limitsPrefix      = "limits."
	deviceClassPrefix = "deviceclass.resource.kubernetes.io/"
)

// podKind counts pods and the compute resources that they request and limit.
type podKind struct{}

func (podKind) tracks(name corev1.ResourceName) bool {
	switch name {
	case "count/pods", corev1.ResourcePods,
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		return true
	}
	requested, ok := strings.CutPrefix(string(name), requestsPrefix)
	return ok && (strings.HasPrefix(requested, corev1.ResourceHugePagesPrefix) || isExtended(requested))
}

// isExtended reports whether the name is that of a resource that nodes have beside
// those of Kubernetes, such as nvidia.com/gpu, or of a class of devices.
func isExtended(name string) bool {
	domain, _, ok := strings.Cut(name, "/")
	if !ok || strings.HasPrefix(name, requestsPrefix) {
		return false
	}
	return !strings.HasSuffix(domain, "kubernetes.io") || strings.HasPrefix(name, deviceClassPrefix)
}

// usage: all pods are counted by count/pods; those that have ended use nothing else.
func (podKind) usage(obj any, now time.Time) corev1.ResourceList {
	used := corev1.ResourceList{"count/pods": one()}
	pod, ok := obj.(*corev1.Pod)
	if !ok || hasEnded(pod, now) {
		return used
	}
	used[corev1.ResourcePods] = one()
	if isLarge(pod) {
		requests, limits := allTogether(pod)
		addCompute(used, requests, limits)
		return used
	}
	opts := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	addCompute(used, resourcehelper.PodRequests(pod, opts), resourcehelper.PodLimits(pod, opts))
	return used
}

// hasEnded reports whether the pod's processes are gone, or should be: the grace
// period of a deletion is over, and its node may be lost.
func hasEnded(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	end, deleted := EndOfGrace(pod)
	return deleted && now.After(end)
}

// EndOfGrace returns the time from which a deleted pod uses nothing although it still
// exists.
func EndOfGrace(pod *corev1.Pod) (end time.Time, deleted bool) {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return time.Time{}, false
	}
	return pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second), true
}

// addCompute adds what is requested and limited by the names that quotas have for it.
func addCompute(used, requests, limits corev1.ResourceList) {
	for name, amount := range requests {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			used[name] = amount
			used[requestsPrefix+name] = amount
		case isExtended(string(name)):
			used[requestsPrefix+name] = amount
		}
	}
	for name, amount := range limits {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			used[limitsPrefix+name] = amount
		}
	}
}

func (podKind) inScope(obj any, scope corev1.ScopedResourceSelectorRequirement) bool {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return false
	}
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return isTerminating(pod)
	case corev1.ResourceQuotaScopeNotTerminating:
		return !isTerminating(pod)
	case corev1.ResourceQuotaScopeBestEffort:
		return IsBestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !IsBestEffort(pod)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		if pod.Spec.PriorityClassName == "" {
			return selects(scope)
		}
		return selects(scope, pod.Spec.PriorityClassName)
	}
	return false
}

// mustBeStated are the amounts that each container has to state if a quota limits
// them. Kubernetes keeps it so for cpu and memory only.
var mustBeStated = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceMemory,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
}

func (podKind) missing(obj any, required []corev1.ResourceName) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok || resourcehelper.IsPodLevelResourcesSet(pod) {
		return nil
	}
	var problems []string
	for _, name := range mustBeStated { // in the order of the message
		if !slices.Contains(required, name) {
			continue
		}
		if names := containersWithout(pod, name); len(names) > 0 {
			problems = append(problems, fmt.Sprintf("%s for: %s", name, strings.Join(names, ",")))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("must specify %s", strings.Join(problems, "; "))
}

// containersWithout returns the containers that do not state an amount, sorted.
func containersWithout(pod *corev1.Pod, name corev1.ResourceName) []string {
	var names []string
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			stated := corev1.ResourceList{}
			addCompute(stated, containers[i].Resources.Requests, containers[i].Resources.Limits)
			if _, ok := stated[name]; !ok {
				names = append(names, containers[i].Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
