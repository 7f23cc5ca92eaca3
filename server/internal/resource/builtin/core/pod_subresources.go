package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// validatePodSubresource checks what came through one of a pod's subresources.
func validatePodSubresource(subresource string, pod, old *corev1.Pod) field.ErrorList {
	switch subresource {
	case "ephemeralcontainers":
		return append(podspec.Validate(validate.SpecPath, &pod.Spec), validateAddedEphemeral(pod, old)...)
	case "resize":
		return append(podspec.Validate(validate.SpecPath, &pod.Spec), validateResize(pod, old)...)
	}
	return nil
}

// validateAddedEphemeral: an ephemeral container stays as it came.
func validateAddedEphemeral(pod, old *corev1.Pod) field.ErrorList {
	at := validate.SpecPath.Child("ephemeralContainers")
	now := map[string]*corev1.EphemeralContainer{}
	for i := range pod.Spec.EphemeralContainers {
		now[pod.Spec.EphemeralContainers[i].Name] = &pod.Spec.EphemeralContainers[i]
	}
	var errs field.ErrorList
	for i := range old.Spec.EphemeralContainers {
		was := &old.Spec.EphemeralContainers[i]
		is, kept := now[was.Name]
		switch {
		case !kept:
			errs = append(errs, field.Forbidden(at, "existing ephemeral containers \""+was.Name+"\" may not be removed\n"))
		case !equality.Semantic.DeepEqual(was, is):
			errs = append(errs, field.Forbidden(at, "existing ephemeral containers \""+was.Name+"\" may not be changed\n"))
		}
	}
	return errs
}

// validateResize: cpu and memory of a running pod may change (KEP-1287), within
// its quality of service.
func validateResize(pod, old *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	if qosClass(&pod.Spec) != qosClass(&old.Spec) {
		errs = append(errs, field.Invalid(validate.SpecPath, qosClass(&pod.Spec), "Pod QOS Class may not change as a result of resizing"))
	}
	check := func(path *field.Path, now, before []corev1.Container) {
		for i := range now {
			if i >= len(before) {
				return
			}
			at := path.Index(i).Child("resources")
			errs = append(errs, validateResized(at.Child("limits"), now[i].Resources.Limits, before[i].Resources.Limits)...)
			errs = append(errs, validateResized(at.Child("requests"), now[i].Resources.Requests, before[i].Resources.Requests)...)
		}
	}
	check(validate.SpecPath.Child("containers"), pod.Spec.Containers, old.Spec.Containers)
	check(validate.SpecPath.Child("initContainers"), pod.Spec.InitContainers, old.Spec.InitContainers)
	return errs
}

func validateResized(path *field.Path, now, before corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	rest := func(list corev1.ResourceList) corev1.ResourceList {
		list = list.DeepCopy()
		delete(list, corev1.ResourceCPU)
		delete(list, corev1.ResourceMemory)
		return list
	}
	if !equality.Semantic.DeepEqual(rest(now), rest(before)) {
		errs = append(errs, field.Forbidden(path, "only cpu and memory resources are mutable"))
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, had := before[name]; had {
			if _, has := now[name]; !has {
				errs = append(errs, field.Forbidden(path, "resources cannot be removed"))
			}
		}
	}
	return errs
}
