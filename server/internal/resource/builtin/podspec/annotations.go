package podspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	mirrorAnnotation     = corev1.MirrorPodAnnotationKey
	tolerationAnnotation = corev1.TolerationsAnnotationKey
	appArmorAnnotation   = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
)

// validateAnnotations checks the annotations of a pod, or of a template, that mean something. old
// are those that it had before: a cost that was wrong may stay.
func validateAnnotations(path *field.Path, annotations, old map[string]string, spec *corev1.PodSpec) field.ErrorList {
	if len(annotations) == 0 {
		return nil
	}
	var errs field.ErrorList
	if value, mirror := annotations[mirrorAnnotation]; mirror && spec.NodeName == "" {
		errs = append(errs, field.Invalid(path.Key(mirrorAnnotation), value, "must set spec.nodeName if mirror pod annotation is set"))
	}
	if text := annotations[tolerationAnnotation]; text != "" {
		var tolerations []corev1.Toleration
		if err := json.Unmarshal([]byte(text), &tolerations); err != nil {
			errs = append(errs, field.Invalid(path, tolerationAnnotation, err.Error()))
		}
		errs = append(errs, ValidateTolerations(path.Child(tolerationAnnotation), tolerations)...)
	}
	if !isCost(annotations) && isCost(old) {
		errs = append(errs, field.Invalid(path.Key(corev1.PodDeletionCost), annotations[corev1.PodDeletionCost], "must be a 32bit integer"))
	}
	if profile, ok := annotations[corev1.SeccompPodAnnotationKey]; ok {
		errs = append(errs, seccompAnnotation(path.Child(corev1.SeccompPodAnnotationKey), profile)...)
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(key, corev1.SeccompContainerAnnotationKeyPrefix) {
			errs = append(errs, seccompAnnotation(path.Child(key), annotations[key])...)
		}
	}
	return append(errs, appArmorAnnotations(path, annotations, spec)...)
}

// isCost reports whether the annotation that says what the deletion of a pod costs is a number, or
// is not there.
func isCost(annotations map[string]string) bool {
	text, ok := annotations[corev1.PodDeletionCost]
	if !ok {
		return true
	}
	_, err := strconv.ParseInt(text, 10, 32)
	return err == nil && !strings.HasPrefix(text, "+") && (text == "0" || !strings.HasPrefix(text, "0"))
}

func seccompAnnotation(path *field.Path, profile string) field.ErrorList {
	switch profile {
	case corev1.SeccompProfileRuntimeDefault, corev1.DeprecatedSeccompProfileDockerDefault, corev1.SeccompProfileNameUnconfined:
		return nil
	}
	if file, ok := strings.CutPrefix(profile, corev1.SeccompLocalhostProfileNamePrefix); ok {
		return descendingPath(path, file)
	}
	return field.ErrorList{field.Invalid(path, profile, "must be a valid seccomp profile")}
}

func appArmorAnnotations(path *field.Path, annotations map[string]string, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	var names sets.Set[string] // of the containers, if it is needed
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, appArmorAnnotation)
		if !ok {
			continue
		}
		if names == nil {
			names = sets.New[string]()
			eachContainer(spec, func(_ string, _ int, c *corev1.Container) { names.Insert(c.Name) })
		}
		if !names.Has(name) {
			errs = append(errs, field.Invalid(path.Key(key), name, "container not found"))
		}
		if profile := annotations[key]; profile != "" && profile != corev1.DeprecatedAppArmorBetaProfileRuntimeDefault &&
			profile != corev1.DeprecatedAppArmorBetaProfileNameUnconfined && !strings.HasPrefix(profile, corev1.DeprecatedAppArmorBetaProfileNamePrefix) {
			errs = append(errs, field.Invalid(path.Key(key), profile, fmt.Sprintf("invalid AppArmor profile name: %q", profile)))
		}
	}
	return errs
}

// validateAnnotationChanges checks what an update of a pod does to its annotations.
func validateAnnotationChanges(path *field.Path, annotations, old map[string]string, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	forbid := func(key, appArmor, mirror string) {
		if strings.HasPrefix(key, appArmorAnnotation) {
			errs = append(errs, field.Forbidden(path.Key(key), appArmor))
		}
		if key == mirrorAnnotation {
			errs = append(errs, field.Forbidden(path.Key(key), mirror))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if value, ok := annotations[key]; !ok || value != old[key] {
			forbid(key, "may not remove or update AppArmor annotations", "may not remove or update mirror pod annotation")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if _, ok := old[key]; !ok {
			forbid(key, "may not add AppArmor annotations", "may not add mirror pod annotation")
		}
	}
	return append(errs, validateAnnotations(path, annotations, old, spec)...) // kube-apiserver says it twice
}

// validateProfiles checks that the annotations of a new pod, or of a template, name the profiles
// that its fields name.
func validateProfiles(path *field.Path, meta *metav1.ObjectMeta, spec *corev1.PodSpec) field.ErrorList {
	if len(meta.Annotations) == 0 {
		return nil
	}
	var errs field.ErrorList
	at := func(list string, i int, name string) *field.Path {
		return path.Child(list).Index(i).Child("securityContext", name)
	}
	if s := spec.SecurityContext; s != nil {
		errs = append(errs, sameSeccomp(path.Child("securityContext", "seccompProfile"), meta.Annotations, corev1.SeccompPodAnnotationKey, s.SeccompProfile)...)
	}
	eachContainer(spec, func(list string, i int, c *corev1.Container) {
		if s := c.SecurityContext; s != nil {
			errs = append(errs, sameSeccomp(at(list, i, "seccompProfile"), meta.Annotations, corev1.SeccompContainerAnnotationKeyPrefix+c.Name, s.SeccompProfile)...)
		}
	})
	if spec.OS != nil && spec.OS.Name == corev1.Windows {
		return errs
	}
	eachContainer(spec, func(list string, i int, c *corev1.Container) {
		var profile *corev1.AppArmorProfile
		if spec.SecurityContext != nil {
			profile = spec.SecurityContext.AppArmorProfile
		}
		if s := c.SecurityContext; s != nil && s.AppArmorProfile != nil {
			profile = s.AppArmorProfile
		}
		if annotation, ok := meta.Annotations[appArmorAnnotation+c.Name]; ok && profile != nil {
			errs = append(errs, sameProfile(at(list, i, "appArmorProfile"), "apparmor", string(profile.Type), profile.LocalhostProfile, annotation,
				corev1.DeprecatedAppArmorBetaProfileRuntimeDefault)...)
		}
	})
	return errs
}

func sameSeccomp(path *field.Path, annotations map[string]string, key string, profile *corev1.SeccompProfile) field.ErrorList {
	annotation, ok := annotations[key]
	if !ok || profile == nil {
		return nil
	}
	return sameProfile(path, "seccomp", string(profile.Type), profile.LocalhostProfile, annotation, corev1.SeccompProfileRuntimeDefault, corev1.DeprecatedSeccompProfileDockerDefault)
}

// sameProfile compares a field with an annotation, for both of which AppArmor and seccomp have the
// same words but for the defaults.
func sameProfile(path *field.Path, what, kind string, file *string, annotation string, defaults ...string) field.ErrorList {
	name, local := strings.CutPrefix(annotation, corev1.SeccompLocalhostProfileNamePrefix)
	otherType, otherFile := false, false
	switch kind {
	case string(corev1.SeccompProfileTypeUnconfined):
		otherType = annotation != corev1.SeccompProfileNameUnconfined
	case string(corev1.SeccompProfileTypeRuntimeDefault):
		otherType = !slices.Contains(defaults, annotation)
	case string(corev1.SeccompProfileTypeLocalhost):
		otherType, otherFile = !local, file == nil || *file != name
	}
	switch {
	case otherType:
		return field.ErrorList{field.Forbidden(path.Child("type"), what+" type in annotation and field must match")}
	case otherFile:
		return field.ErrorList{field.Forbidden(path.Child("localhostProfile"), what+" profile in annotation and field must match")}
	}
	return nil
}

// podAnnotations is where the annotations of a pod are.
var podAnnotations = field.NewPath("metadata", "annotations")

// ValidateNewPod checks a pod's annotations and spec.
func ValidateNewPod(pod *corev1.Pod) field.ErrorList {
	return append(validateAnnotations(podAnnotations, pod.Annotations, nil, &pod.Spec), ValidatePod(validate.SpecPath, &pod.Spec, &pod.ObjectMeta)...)
}

// ValidatePodProfiles checks that the annotations and the fields of a new pod name the same profiles.
func ValidatePodProfiles(pod *corev1.Pod) field.ErrorList {
	return validateProfiles(validate.SpecPath, &pod.ObjectMeta, &pod.Spec)
}

// ValidateChangedPod is ValidateNewPod for an update, before what may change.
func ValidateChangedPod(pod, old *corev1.Pod) field.ErrorList {
	errs := validateAnnotations(podAnnotations, pod.Annotations, old.Annotations, &pod.Spec)
	errs = append(errs, ValidatePod(validate.SpecPath, &pod.Spec, &pod.ObjectMeta)...)
	return append(errs, validateAnnotationChanges(podAnnotations, pod.Annotations, old.Annotations, &pod.Spec)...)
}

// ValidateAnnotationChanges checks what a write does to a pod's annotations that leaves its spec
// as it is.
func ValidateAnnotationChanges(pod, old *corev1.Pod) field.ErrorList {
	return validateAnnotationChanges(podAnnotations, pod.Annotations, old.Annotations, &pod.Spec)
}
