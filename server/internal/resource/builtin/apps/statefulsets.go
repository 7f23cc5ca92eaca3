package apps

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
	"github.com/levelwire/levelwire/server/internal/resource/structequal"
)

func statefulSetRules() define.Rules[*appsv1.StatefulSet] {
	return define.Rules[*appsv1.StatefulSet]{
		Default:        defaultStatefulSet,
		Validate:       validateStatefulSet,
		ValidateUpdate: validateStatefulSetUpdate,
		Warnings:       statefulSetWarnings,
	}
}

// statefulSetWarnings are about the template, if an update changes the generation, the claims, whose
// paths kube-apiserver spells in two ways, and a history that never ends.
func statefulSetWarnings(s, old *appsv1.StatefulSet) []string {
	var warnings []string
	if old == nil || old.Generation != s.Generation {
		warnings = podspec.TemplateWarnings(validate.SpecPath.Child("template"), &s.Spec.Template)
	}
	for i := range s.Spec.VolumeClaimTemplates {
		at := validate.SpecPath.Child("volumeClaimTemplates").Index(i)
		if old != nil {
			at = at.Child("Spec")
		}
		warnings = append(warnings, podspec.ClaimWarnings(at, &s.Spec.VolumeClaimTemplates[i].Spec)...)
	}
	if limit := s.Spec.RevisionHistoryLimit; limit != nil && *limit < 0 {
		warnings = append(warnings, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
	}
	return warnings
}

func defaultStatefulSet(s *appsv1.StatefulSet) {
	podspec.DefaultTemplate(&s.Spec.Template)
	define.SetDefaultPtr(&s.Spec.Replicas, 1)
	define.SetDefaultPtr(&s.Spec.RevisionHistoryLimit, revisionHistory)
	define.SetDefault(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	define.SetDefault(&s.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		define.SetDefaultPtr(&s.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		define.SetDefaultPtr(&s.Spec.UpdateStrategy.RollingUpdate.Partition, 0)
		define.SetDefaultPtr(&s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	define.SetDefaultPtr(&s.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	policy := s.Spec.PersistentVolumeClaimRetentionPolicy
	define.SetDefault(&policy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	define.SetDefault(&policy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range s.Spec.VolumeClaimTemplates {
		claim := &s.Spec.VolumeClaimTemplates[i]
		claim.Kind, claim.APIVersion = "PersistentVolumeClaim", "v1"
		define.SetDefaultPtr(&claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		define.SetDefault(&claim.Status.Phase, "Pending")
	}
}

// validateMaxUnavailable: an update that may make no pod unavailable would not begin.
func validateMaxUnavailable(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	if value == nil {
		return nil
	}
	errs := validate.CountOrPercent(path, value)
	if scaled, err := intstr.GetScaledValueFromIntOrPercent(value, 100, false); err != nil || scaled == 0 {
		errs = append(errs, field.Invalid(path, value, "cannot be 0"))
	}
	return append(errs, validate.PercentAtMost100(path, value)...)
}

// validateStatefulSet checks a StatefulSet in kube-apiserver's order.
func validateStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	spec, at := &s.Spec, validate.SpecPath
	var errs field.ErrorList
	switch policy := spec.PodManagementPolicy; policy {
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	default:
		errs = append(errs, field.Invalid(at.Child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'"))
	}
	errs = append(errs, validateStatefulSetStrategy(at.Child("updateStrategy"), &spec.UpdateStrategy)...)
	if policy := spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		at := at.Child("persistentVolumeClaimRetentionPolicy")
		errs = append(errs, validateRetention(at.Child("whenDeleted"), policy.WhenDeleted)...)
		errs = append(errs, validateRetention(at.Child("whenScaled"), policy.WhenScaled)...)
	}
	for i := range spec.VolumeClaimTemplates {
		errs = append(errs, podspec.ValidateClaimSpec(at.Child("volumeClaimTemplates").Index(i).Child("spec"), &spec.VolumeClaimTemplates[i].Spec)...)
	}
	errs = append(errs, validate.NotNegative(at.Child("replicas"), spec.Replicas)...)
	errs = append(errs, validate.NotNegative(at.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	if spec.Ordinals != nil {
		errs = append(errs, validate.NotNegative(at.Child("ordinals.start"), &spec.Ordinals.Start)...)
	}
	if spec.ServiceName != "" {
		errs = append(errs, validate.Invalid(at.Child("serviceName"), spec.ServiceName, validation.IsDNS1123Label(spec.ServiceName))...)
	}
	selector, ok := validate.WorkloadSelector(spec.Selector, spec.Template.Labels, "empty selector is invalid for statefulset", "")
	errs = append(errs, selector...)
	if ok {
		errs = append(errs, validateStatefulTemplate(spec)...)
	}
	return errs
}

func validateRetention(path *field.Path, policy appsv1.PersistentVolumeClaimRetentionPolicyType) field.ErrorList {
	return validate.SupportedInOrder(path, policy, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
}

func validateStatefulSetStrategy(path *field.Path, s *appsv1.StatefulSetUpdateStrategy) field.ErrorList {
	at, rolling := path.Child("rollingUpdate"), s.RollingUpdate
	switch {
	case s.Type != appsv1.RollingUpdateStatefulSetStrategyType && s.Type != appsv1.OnDeleteStatefulSetStrategyType:
		return field.ErrorList{field.Invalid(path, s, "must be 'RollingUpdate' or 'OnDelete'")}
	case rolling == nil:
		return nil
	case s.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return field.ErrorList{field.Invalid(at, rolling, "only allowed for updateStrategy 'RollingUpdate'")}
	}
	errs := validate.NotNegative(at.Child("partition"), rolling.Partition)
	return append(errs, validateMaxUnavailable(at.Child("maxUnavailable"), rolling.MaxUnavailable)...)
}

// validateStatefulTemplate checks the template as its pods will be: the claims' volumes are added, so
// that containers may mount those, and the names are the controller's.
func validateStatefulTemplate(spec *appsv1.StatefulSetSpec) field.ErrorList {
	template := spec.Template
	template.Spec.Hostname, template.Spec.Subdomain = "", ""
	template.Spec.Volumes = slices.Clone(template.Spec.Volumes)
	template.Spec.Volumes = withClaims(template.Spec.Volumes, spec.VolumeClaimTemplates)
	return podspec.ValidateAlwaysRestartingTemplate(&template, "StatefulSet")
}

func validateStatefulSetUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	rest := s.Spec
	rest.Replicas = old.Spec.Replicas
	rest.Ordinals = old.Spec.Ordinals
	rest.Template = old.Spec.Template
	rest.UpdateStrategy = old.Spec.UpdateStrategy
	rest.RevisionHistoryLimit = old.Spec.RevisionHistoryLimit
	rest.MinReadySeconds = old.Spec.MinReadySeconds
	rest.PersistentVolumeClaimRetentionPolicy = old.Spec.PersistentVolumeClaimRetentionPolicy
	if !structequal.Semantic(&rest, &old.Spec) {
		return field.ErrorList{field.Forbidden(validate.SpecPath, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")}
	}
	return nil
}

func statefulSetScale() *resource.Scale {
	return define.Scale(func(s *appsv1.StatefulSet) (**int32, int32, *metav1.LabelSelector) {
		return &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector
	})
}

// withClaims adds the volumes of claim templates, each unless the template already names such a
// volume: the claim's takes its place.
func withClaims(volumes []corev1.Volume, claims []corev1.PersistentVolumeClaim) []corev1.Volume {
	places := make(map[string]int, len(volumes)+len(claims)) // of the first of each name
	for i := range slices.Backward(volumes) {
		places[volumes[i].Name] = i
	}
	for i := range claims {
		name := claims[i].Name
		volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}
		if at, ok := places[name]; ok {
			volumes[at] = volume
			continue
		}
		places[name] = len(volumes)
		volumes = append(volumes, volume)
	}
	return volumes
}
