package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validatePodResources checks the resources that the containers of a pod share (KEP-2837).
func validatePodResources(path *field.Path, spec *corev1.PodSpec, claims claimNames) field.ErrorList {
	r := spec.Resources
	if r == nil {
		return nil
	}
	if spec.OS != nil && spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(path, "may not be set for a windows pod")}
	}
	var errs field.ErrorList
	if r.Claims != nil {
		errs = append(errs, field.Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level"))
	}
	errs = append(errs, validateRequirements(path, r, podResource)...)
	errs = append(errs, validateClaimUses(path.Child("claims"), r.Claims, claims)...)
	return append(errs, withinPod(path, spec)...)
}

// HasPodResources reports whether the containers of a pod share resources.
func HasPodResources(spec *corev1.PodSpec) bool {
	if spec.Resources == nil {
		return false
	}
	for _, list := range []corev1.ResourceList{spec.Resources.Requests, spec.Resources.Limits} {
		for name := range list {
			if isShareable(name) {
				return true
			}
		}
	}
	return false
}

func isShareable(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || IsHugePages(name)
}

// DefaultPodResources completes what the containers of a new pod share by what they have, and reports
// whether they share anything. A pod requests what they request together, or up to its limit; and
// may use what they may use together, if all of them have a limit.
func DefaultPodResources(spec *corev1.PodSpec) bool {
	r := spec.Resources
	if r == nil || len(r.Limits)+len(r.Requests) == 0 {
		return false
	}
	limits := Together(spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	fillResources(&r.Limits, limits, func(name corev1.ResourceName) bool {
		_, requested := r.Requests[name]
		return IsHugePages(name) && !requested
	})
	fillResources(&r.Requests, Together(spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }), Overcommits)
	fillResources(&r.Requests, r.Limits, func(corev1.ResourceName) bool { return true })
	for name, amount := range limits { // none is lower than the request
		if requested := r.Requests[name]; requested.Cmp(amount) > 0 {
			limits[name] = requested.DeepCopy()
		}
	}
	fillResources(&r.Limits, limits, func(name corev1.ResourceName) bool {
		_, requested := r.Requests[name]
		return requested && allLimit(spec, name)
	})
	return true
}

// fillResources adds to a list what can be shared and is not in it.
func fillResources(list *corev1.ResourceList, from corev1.ResourceList, may func(corev1.ResourceName) bool) {
	for name, amount := range from {
		if _, ok := (*list)[name]; ok || !isShareable(name) || !may(name) {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = amount.DeepCopy()
	}
}

// allLimit reports whether all containers have a limit of a resource.
func allLimit(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if _, ok := list[i].Resources.Limits[name]; !ok {
				return false
			}
		}
	}
	return true
}

// podResource: few resources can be shared.
func podResource(path *field.Path, name corev1.ResourceName) field.ErrorList {
	if errs := QualifiedResource(path, name); len(errs) > 0 {
		return errs
	}
	if isShareable(name) {
		return nil
	}
	return validate.Supported(path, name, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceHugePagesPrefix)
}

// withinPod: the containers together request no more than their pod does, and none has a higher
// limit than it.
func withinPod(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	requested := Together(spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests })
	for _, name := range validate.SortedNames(requested) {
		sum := requested[name]
		if own, ok := spec.Resources.Requests[name]; ok && sum.Cmp(own) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), own.String(), "must be greater than or equal to aggregate container requests of "+sum.String()))
		}
	}
	limited := Together(spec, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	for _, name := range validate.SortedNames(limited) {
		sum := limited[name]
		if own, ok := spec.Resources.Limits[name]; ok && IsHugePages(name) && sum.Cmp(own) > 0 {
			errs = append(errs, field.Invalid(path.Child("limits").Key(string(name)), own.String(), "must be greater than or equal to aggregate container limits of "+sum.String()))
		}
	}
	for i := range spec.Containers {
		limits := spec.Containers[i].Resources.Limits
		for _, name := range validate.SortedNames(limits) {
			limit := limits[name]
			if own, ok := spec.Resources.Limits[name]; ok && limit.Cmp(own) > 0 {
				at := path.Child("containers").Index(i).Key(string(name)).Child("limits") // kube-apiserver's path
				errs = append(errs, field.Invalid(at, limit.String(), "must be less than or equal to pod limits of "+own.String()))
			}
		}
	}
	return errs
}

// Together is what the containers of a pod have at the same time at most: those that stay, or an init
// container and the sidecars before it. The result is the caller's.
func Together(spec *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	sum, sidecars, most := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		add(sum, of(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		own := of(c)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(sum, own)
			add(sidecars, own)
			continue
		}
		now := own.DeepCopy() // of others than its own, sum has what the sidecars have
		for name, amount := range now {
			if beside, ok := sidecars[name]; ok {
				amount.Add(beside)
				now[name] = amount // in the format of its own, as in Kubernetes
			}
		}
		raise(most, now)
	}
	raise(sum, most)
	return sum
}

func add(list, more corev1.ResourceList) {
	for name, amount := range more {
		sum := list[name]
		sum.Add(amount)
		list[name] = sum
	}
}

// raise makes the amounts of a list no less than those of another one.
func raise(list, least corev1.ResourceList) {
	for name, amount := range least {
		if have, ok := list[name]; !ok || have.Cmp(amount) < 0 {
			list[name] = amount.DeepCopy()
		}
	}
}
