package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	}
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

func validateStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	spec := &s.Spec
	errs := validate.NotNegative(validate.SpecPath.Child("replicas"), spec.Replicas)
	errs = append(errs, validate.NotNegative(validate.SpecPath.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	errs = append(errs, validate.WorkloadSelector(spec.Selector, spec.Template.Labels)...)
	errs = append(errs, validateStatefulTemplate(s)...)
	errs = append(errs, validate.OneOf(validate.SpecPath.Child("podManagementPolicy"), spec.PodManagementPolicy,
		appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)...)
	strategy := validate.SpecPath.Child("updateStrategy")
	errs = append(errs, validate.OneOf(strategy.Child("type"), spec.UpdateStrategy.Type,
		appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)...)
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil {
		at := strategy.Child("rollingUpdate")
		if spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			errs = append(errs, field.Invalid(at, rolling, "only allowed for updateStrategy 'RollingUpdate'"))
		}
		errs = append(errs, validate.NotNegative(at.Child("partition"), rolling.Partition)...)
		errs = append(errs, validateMaxUnavailable(at.Child("maxUnavailable"), rolling.MaxUnavailable)...)
	}
	if policy := spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		at := validate.SpecPath.Child("persistentVolumeClaimRetentionPolicy")
		for name, value := range map[string]appsv1.PersistentVolumeClaimRetentionPolicyType{"whenDeleted": policy.WhenDeleted, "whenScaled": policy.WhenScaled} {
			errs = append(errs, validate.OneOf(at.Child(name), value,
				appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)...)
		}
	}
	if spec.Ordinals != nil {
		errs = append(errs, validate.NotNegative(validate.SpecPath.Child("ordinals", "start"), &spec.Ordinals.Start)...)
	}
	return errs
}

// validateStatefulTemplate checks the template as it will be with the claims'
// volumes added, so that containers may mount those.
func validateStatefulTemplate(s *appsv1.StatefulSet) field.ErrorList {
	var errs field.ErrorList
	template := s.Spec.Template.DeepCopy()
	for i := range s.Spec.VolumeClaimTemplates {
		claim := &s.Spec.VolumeClaimTemplates[i]
		at := validate.SpecPath.Child("volumeClaimTemplates").Index(i)
		errs = append(errs, validate.Required(at.Child("metadata", "name"), claim.Name)...)
		errs = append(errs, podspec.ValidateClaimSpec(at.Child("spec"), &claim.Spec)...)
		template.Spec.Volumes = claimVolume(template.Spec.Volumes, claim.Name)
	}
	return append(errs, podspec.ValidateAlwaysRestartingTemplate(template)...)
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

// claimVolume adds the volume of a claim template, unless the template
// already names such a volume: the claim's takes its place.
func claimVolume(volumes []corev1.Volume, name string) []corev1.Volume {
	volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
	for i := range volumes {
		if volumes[i].Name == name {
			volumes[i] = volume
			return volumes
		}
	}
	return append(volumes, volume)
}
