package apps

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

func statefulSetRules() define.Rules[*appsv1.StatefulSet] {
	return define.Rules[*appsv1.StatefulSet]{
		Default:        defaultStatefulSet,
		ValidateCreate: validateStatefulSet,
		ValidateUpdate: validateStatefulSetUpdate,
		ValidateStatus: validateStatefulSetStatus,
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
	defaultStatefulSetStrategy(&s.Spec.UpdateStrategy)
	define.SetDefaultPtr(&s.Spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	policy := s.Spec.PersistentVolumeClaimRetentionPolicy
	define.SetDefault(&policy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	define.SetDefault(&policy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range s.Spec.VolumeClaimTemplates {
		claim := &s.Spec.VolumeClaimTemplates[i]
		claim.Kind, claim.APIVersion = "PersistentVolumeClaim", "v1"
		define.SetDefaultPtr(&claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		define.SetDefault(&claim.Status.Phase, "Pending")
		podspec.RoundClaim(&claim.Spec)
		podspec.RoundClaimStatus(&claim.Status)
	}
}

// defaultStatefulSetStrategy completes a rolling update. One that is asked for by its type only
// stays as it is.
func defaultStatefulSetStrategy(s *appsv1.StatefulSetUpdateStrategy) {
	if s.Type == "" {
		s.Type = appsv1.RollingUpdateStatefulSetStrategyType
		define.SetDefaultPtr(&s.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if s.Type == appsv1.RollingUpdateStatefulSetStrategyType && s.RollingUpdate != nil {
		define.SetDefaultPtr(&s.RollingUpdate.Partition, 0)
		define.SetDefaultPtr(&s.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
}

// validateMaxUnavailable: an update that may make no pod unavailable would not begin.
func validateMaxUnavailable(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	if value == nil {
		return nil
	}
	errs := validate.CountOrPercent(path, value)
	// A percentage that is none counts as 0, as in Kubernetes; another text as the number that it is.
	count := value.IntValue()
	if len(validation.IsValidPercent(value.StrVal)) == 0 {
		count, _ = strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	}
	if count == 0 {
		errs = append(errs, field.Invalid(path, value, "cannot be 0"))
	}
	return append(errs, validate.PercentAtMost100(path, value)...)
}

// statefulSetChecks are what is checked of a set. What an update cannot change is not, of an
// old one.
type statefulSetChecks struct{ old, skipTemplate bool }

func validateStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	return statefulSetChecks{}.validate(&s.Spec)
}

// validate checks a StatefulSet in kube-apiserver's order.
func (c statefulSetChecks) validate(spec *appsv1.StatefulSetSpec) field.ErrorList {
	at := validate.SpecPath
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
	if !c.old {
		for i := range spec.VolumeClaimTemplates {
			errs = append(errs, podspec.ValidateClaimSpec(at.Child("volumeClaimTemplates").Index(i).Child("spec"), &spec.VolumeClaimTemplates[i].Spec)...)
		}
	}
	errs = append(errs, validate.NotNegative(at.Child("replicas"), spec.Replicas)...)
	errs = append(errs, validate.NotNegative(at.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	if spec.Ordinals != nil {
		errs = append(errs, validate.NotNegative(at.Child("ordinals.start"), &spec.Ordinals.Start)...)
	}
	if spec.ServiceName != "" && !c.old {
		errs = append(errs, validate.Invalid(at.Child("serviceName"), spec.ServiceName, validation.IsDNS1123Label(spec.ServiceName))...)
	}
	selector, ok := validate.WorkloadSelector(spec.Selector, spec.Template.Labels, "empty selector is invalid for statefulset", "")
	errs = append(errs, selector...)
	if ok && !c.skipTemplate {
		errs = append(errs, validateStatefulTemplate(spec)...)
	}
	return append(errs, podspec.ValidateAlwaysRestarting(&spec.Template, "StatefulSet")...)
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
	if len(spec.VolumeClaimTemplates) > 0 {
		template.Spec.Volumes = withClaimVolumes(template.Spec.Volumes, spec.VolumeClaimTemplates)
	}
	return podspec.ValidateTemplate(validate.SpecPath.Child("template"), &template)
}

// validateStatefulSetUpdate checks a set that takes the place of another. What cannot change is
// not checked again, and a template is not if the old one would be refused: versions of
// Kubernetes before this one allowed more.
func validateStatefulSetUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	lenient := statefulSetChecks{old: true}
	lenient.skipTemplate = len(lenient.validate(&old.Spec)) > 0
	errs := lenient.validate(&s.Spec)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("selector"), s.Spec.Selector, old.Spec.Selector)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("volumeClaimTemplates"), s.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates)...)
	errs = append(errs, validate.Unchanged(validate.SpecPath.Child("serviceName"), s.Spec.ServiceName, old.Spec.ServiceName)...)
	return append(errs, validate.Unchanged(validate.SpecPath.Child("podManagementPolicy"), s.Spec.PodManagementPolicy, old.Spec.PodManagementPolicy)...)
}

func statefulSetScale() *resource.Scale {
	return define.Scale(func(s *appsv1.StatefulSet) (**int32, int32, *metav1.LabelSelector) {
		return &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector
	})
}

// withClaimVolumes returns the volumes of claim templates, and behind them those of the template that
// have other names.
func withClaimVolumes(volumes []corev1.Volume, claims []corev1.PersistentVolumeClaim) []corev1.Volume {
	all := make([]corev1.Volume, 0, len(claims)+len(volumes))
	names := sets.New[string]()
	for i := range claims {
		if name := claims[i].Name; !names.Has(name) {
			names.Insert(name)
			all = append(all, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
	}
	for i := range volumes {
		if !names.Has(volumes[i].Name) {
			all = append(all, volumes[i])
		}
	}
	return all
}
