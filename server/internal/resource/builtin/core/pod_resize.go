package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validateResize: cpu and memory of a pod and of its containers may change within its quality of service
// (KEP-1287, KEP-5419). Nothing of them may be taken away.
func validateResize(pod, old *corev1.Pod) field.ErrorList {
	if _, isMirror := old.Annotations[corev1.MirrorPodAnnotationKey]; isMirror {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	if old.Spec.OS != nil && old.Spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	errs := podspec.Validate(validate.SpecPath, &pod.Spec)
	if before := old.Status.QOSClass; before != qosClass(&pod.Spec) && (before != "" || qosClass(&old.Spec) != qosClass(&pod.Spec)) {
		errs = append(errs, field.Invalid(validate.SpecPath, pod.Status.QOSClass, "Pod QOS Class may not change as a result of resizing"))
	}
	if !nodeResizes(&old.Status) {
		errs = append(errs, field.Forbidden(validate.SpecPath, "Pod running on node without support for resize"))
	}
	rest := pod.Spec.DeepCopy() // as it would be without what may change
	errs = append(errs, validatePodResize(rest, &old.Spec)...)
	if order := validateSameContainers(&pod.Spec, &old.Spec); len(order) > 0 {
		return append(errs, order...)
	}
	errs = append(errs, validateKeptResources(validate.SpecPath.Child("initContainers"), pod.Spec.InitContainers, old.Spec.InitContainers)...)
	errs = append(errs, validateKeptResources(validate.SpecPath.Child("containers"), pod.Spec.Containers, old.Spec.Containers)...)
	for i := range rest.Containers {
		if keepCPUAndMemory(&rest.Containers[i].Resources, &old.Spec.Containers[i].Resources); !equality.Semantic.DeepEqual(rest.Containers[i], old.Spec.Containers[i]) {
			errs = append(errs, field.Forbidden(validate.SpecPath, onlyCPUAndMemory))
		}
	}
	errs = append(errs, validateInitResize(rest.InitContainers, old.Spec.InitContainers)...)
	if len(errs) == 0 && !equality.Semantic.DeepEqual(rest, &old.Spec) {
		errs = append(errs, field.Forbidden(validate.SpecPath, onlyCPUAndMemory))
	}
	return errs
}

const onlyCPUAndMemory = "only cpu and memory resources are mutable"

// nodeResizes reports whether the kubelet of a running pod can resize it: one that can says what its
// containers have.
func nodeResizes(status *corev1.PodStatus) bool {
	for i := range status.ContainerStatuses {
		if c := &status.ContainerStatuses[i]; c.State.Running != nil {
			return c.Resources != nil
		}
	}
	return true
}

// validatePodResize checks the resources of the pod as a whole, and gives rest those of before.
func validatePodResize(rest, old *corev1.PodSpec) field.ErrorList {
	has := func(r *corev1.ResourceRequirements) bool { return r != nil && len(r.Requests)+len(r.Limits) > 0 }
	if !has(rest.Resources) && !has(old.Resources) {
		return nil
	}
	at := validate.SpecPath.Child("resources")
	if old.Resources != nil && rest.Resources == nil {
		return field.ErrorList{field.Forbidden(at, "pod-level resources cannot be removed")}
	}
	var errs field.ErrorList
	before := old.Resources
	if before == nil {
		before = &corev1.ResourceRequirements{}
	}
	if removed(rest.Resources.Requests, before.Requests) {
		errs = append(errs, field.Forbidden(at.Child("requests"), "pod-level resource requests cannot be removed"))
	}
	if removed(rest.Resources.Limits, before.Limits) {
		errs = append(errs, field.Forbidden(at.Child("limits"), "pod-level resource limits cannot be removed"))
	}
	keepCPUAndMemory(rest.Resources, before)
	if old.Resources == nil && !has(rest.Resources) && len(rest.Resources.Claims) == 0 {
		rest.Resources = nil
	}
	if !equality.Semantic.DeepEqual(rest.Resources, old.Resources) {
		errs = append(errs, field.Forbidden(validate.SpecPath, "only cpu and memory resources are mutable at pod-level"))
	}
	return errs
}

// validateSameContainers: containers are neither added nor removed, nor renamed nor moved.
func validateSameContainers(spec, old *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name        string
		now, before []corev1.Container
	}{{"containers", spec.Containers, old.Containers}, {"initContainers", spec.InitContainers, old.InitContainers}} {
		at := validate.SpecPath.Child(list.name)
		if len(list.now) != len(list.before) {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("%s may not be added or removed on resize", list.name)))
			continue
		}
		for i := range list.now {
			if list.now[i].Name != list.before[i].Name {
				errs = append(errs, field.Forbidden(at.Index(i).Child("name"), fmt.Sprintf("%s may not be renamed or reordered on resize", list.name)))
			}
		}
	}
	return errs
}

func validateKeptResources(path *field.Path, now, before []corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for i := range now {
		at := path.Index(i).Child("resources")
		if removed(now[i].Resources.Requests, before[i].Resources.Requests) {
			errs = append(errs, field.Forbidden(at.Child("requests"), "resource requests cannot be removed"))
		}
		if removed(now[i].Resources.Limits, before[i].Resources.Limits) {
			errs = append(errs, field.Forbidden(at.Child("limits"), "resource limits cannot be removed"))
		}
	}
	return errs
}

// validateInitResize checks init containers, of which only those that go on running may be started again
// for it. They get the cpu and memory of before.
func validateInitResize(rest, old []corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for i := range rest {
		c, at := &rest[i], validate.SpecPath.Child("initContainers").Index(i)
		changed := !equality.Semantic.DeepEqual(*c, old[i])
		if keepCPUAndMemory(&c.Resources, &old[i].Resources); !equality.Semantic.DeepEqual(*c, old[i]) {
			errs = append(errs, field.Forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable"))
		}
		if !changed || c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			continue
		}
		for _, policy := range c.ResizePolicy {
			if policy.RestartPolicy == corev1.RestartContainer {
				errs = append(errs, field.Forbidden(at, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"))
			}
		}
	}
	return errs
}

// keepCPUAndMemory gives resources the cpu and memory of others.
func keepCPUAndMemory(resources, of *corev1.ResourceRequirements) {
	resources.Requests = withCPUAndMemory(resources.Requests, of.Requests)
	resources.Limits = withCPUAndMemory(resources.Limits, of.Limits)
}

func withCPUAndMemory(list, of corev1.ResourceList) corev1.ResourceList {
	if list == nil && of == nil {
		return nil
	}
	if list == nil {
		list = corev1.ResourceList{}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity, ok := of[name]; ok {
			list[name] = quantity
		} else {
			delete(list, name)
		}
	}
	return list
}

// removed reports whether a list lacks a resource that it had.
func removed(list, before corev1.ResourceList) bool {
	for name := range before {
		if _, ok := list[name]; !ok {
			return true
		}
	}
	return false
}
