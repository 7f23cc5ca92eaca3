package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func statefulSetRules() rules[*appsv1.StatefulSet] {
	return rules[*appsv1.StatefulSet]{
		Default:        defaultStatefulSet,
		Validate:       validateStatefulSet,
		ValidateUpdate: validateStatefulSetUpdate,
	}
}

func defaultStatefulSet(s *appsv1.StatefulSet) {
	defaultPodTemplate(&s.Spec.Template)
	setDefaultPtr(&s.Spec.Replicas, 1)
	setDefaultPtr(&s.Spec.RevisionHistoryLimit, revisionHistory)
	setDefault(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	setDefault(&s.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setDefaultPtr(&s.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		setDefaultPtr(&s.Spec.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	setDefaultPtr(&s.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	policy := s.Spec.PersistentVolumeClaimRetentionPolicy
	setDefault(&policy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&policy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range s.Spec.VolumeClaimTemplates {
		claim := &s.Spec.VolumeClaimTemplates[i]
		claim.Kind, claim.APIVersion = "PersistentVolumeClaim", "v1"
		defaultClaim(claim)
		setDefault(&claim.Status.Phase, "Pending")
	}
}

func validateStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	spec := &s.Spec
	errs := notNegative(specPath.Child("replicas"), spec.Replicas)
	errs = append(errs, notNegative(specPath.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	errs = append(errs, workloadSelector(spec.Selector, spec.Template.Labels)...)
	errs = append(errs, validateStatefulTemplate(s)...)
	errs = append(errs, oneOf(specPath.Child("podManagementPolicy"), spec.PodManagementPolicy,
		appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)...)
	strategy := specPath.Child("updateStrategy")
	errs = append(errs, oneOf(strategy.Child("type"), spec.UpdateStrategy.Type,
		appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)...)
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil {
		at := strategy.Child("rollingUpdate")
		if spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			errs = append(errs, field.Invalid(at, rolling, "only allowed for updateStrategy 'RollingUpdate'"))
		}
		errs = append(errs, notNegative(at.Child("partition"), rolling.Partition)...)
		errs = append(errs, countOrPercent(at.Child("maxUnavailable"), rolling.MaxUnavailable)...)
	}
	if policy := spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		at := specPath.Child("persistentVolumeClaimRetentionPolicy")
		for name, value := range map[string]appsv1.PersistentVolumeClaimRetentionPolicyType{"whenDeleted": policy.WhenDeleted, "whenScaled": policy.WhenScaled} {
			errs = append(errs, oneOf(at.Child(name), value,
				appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)...)
		}
	}
	if spec.Ordinals != nil {
		errs = append(errs, notNegative(specPath.Child("ordinals", "start"), &spec.Ordinals.Start)...)
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
		at := specPath.Child("volumeClaimTemplates").Index(i)
		errs = append(errs, required(at.Child("metadata", "name"), claim.Name)...)
		errs = append(errs, validateClaimSpec(at.Child("spec"), &claim.Spec)...)
		template.Spec.Volumes = claimVolume(template.Spec.Volumes, claim.Name)
	}
	return append(errs, validateLastingTemplate(template)...)
}

func validateStatefulSetUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	rest := s.Spec.DeepCopy()
	rest.Replicas = old.Spec.Replicas
	rest.Ordinals = old.Spec.Ordinals
	rest.Template = old.Spec.Template
	rest.UpdateStrategy = old.Spec.UpdateStrategy
	rest.RevisionHistoryLimit = old.Spec.RevisionHistoryLimit
	rest.MinReadySeconds = old.Spec.MinReadySeconds
	rest.PersistentVolumeClaimRetentionPolicy = old.Spec.PersistentVolumeClaimRetentionPolicy
	if !equality.Semantic.DeepEqual(rest, &old.Spec) {
		return field.ErrorList{field.Forbidden(specPath, "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")}
	}
	return nil
}

func statefulSetScale() *resource.Scale {
	return scale(func(s *appsv1.StatefulSet) (**int32, int32, *metav1.LabelSelector) {
		return &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector
	})
}
