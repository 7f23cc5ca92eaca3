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
		if _, isMirror := old.Annotations[corev1.MirrorPodAnnotationKey]; isMirror {
			return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
		}
		return append(podspec.Validate(validate.SpecPath, &pod.Spec), validateAddedEphemeral(pod, old)...)
	case "resize":
		return validateResize(pod, old)
	}
	return nil
}

// completeResize completes what the containers share, as in a new pod.
func completeResize(subresource string, pod *corev1.Pod) {
	if subresource == "resize" {
		podspec.DefaultPodResources(&pod.Spec)
	}
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
