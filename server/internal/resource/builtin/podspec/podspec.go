// Package podspec completes and validates pod specs, pod templates and claim
// specs, wherever a kind contains one.
package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Validate checks a pod's spec, in a pod or in a template.
func Validate(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	errs, volumes := validateVolumes(path.Child("volumes"), spec.Volumes)
	errs = append(errs, validateContainers(path, spec, volumes)...)
	errs = append(errs, validate.OneOf(path.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, validate.OneOf(path.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, validate.NotNegative(path.Child("terminationGracePeriodSeconds"), spec.TerminationGracePeriodSeconds)...)
	errs = append(errs, validate.AtLeast(path.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds, 1)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validatePodNames(path, spec)...)
	errs = append(errs, ValidateTolerations(path.Child("tolerations"), spec.Tolerations)...)
	errs = append(errs, validateAffinity(path.Child("affinity"), spec.Affinity)...)
	errs = append(errs, validateSpread(path.Child("topologySpreadConstraints"), spec.TopologySpreadConstraints)...)
	errs = append(errs, validateDNSConfig(path, spec)...)
	errs = append(errs, validateGates(path.Child("schedulingGates"), spec)...)
	errs = append(errs, validatePodSecurity(path, spec)...)
	errs = append(errs, validateReadinessGates(path.Child("readinessGates"), spec.ReadinessGates)...)
	errs = append(errs, validate.Quantities(path.Child("overhead"), spec.Overhead)...)
	for i, secret := range spec.ImagePullSecrets {
		errs = append(errs, validate.Required(path.Child("imagePullSecrets").Index(i).Child("name"), secret.Name)...)
	}
	if spec.OS != nil {
		errs = append(errs, validate.OneOf(path.Child("os", "name"), spec.OS.Name, corev1.Linux, corev1.Windows)...)
	}
	if p := spec.PreemptionPolicy; p != nil {
		errs = append(errs, validate.OneOf(path.Child("preemptionPolicy"), *p, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	return errs
}

// validatePodNames checks the fields that name other things.
func validatePodNames(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	check := func(name, value string, syntax func(string) []string) {
		if value != "" {
			errs = append(errs, validate.Invalid(path.Child(name), value, syntax(value))...)
		}
	}
	check("nodeName", spec.NodeName, validation.IsDNS1123Subdomain)
	check("serviceAccountName", spec.ServiceAccountName, validation.IsDNS1123Subdomain)
	check("hostname", spec.Hostname, validation.IsDNS1123Label)
	check("subdomain", spec.Subdomain, validation.IsDNS1123Label)
	check("priorityClassName", spec.PriorityClassName, validation.IsDNS1123Subdomain)
	check("schedulerName", spec.SchedulerName, validation.IsDNS1123Subdomain)
	if spec.RuntimeClassName != nil {
		check("runtimeClassName", *spec.RuntimeClassName, validation.IsDNS1123Subdomain)
	}
	for i, alias := range spec.HostAliases {
		at := path.Child("hostAliases").Index(i)
		errs = append(errs, validation.IsValidIP(at.Child("ip"), alias.IP)...)
		for j, name := range alias.Hostnames {
			errs = append(errs, validate.Invalid(at.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name))...)
		}
	}
	return errs
}

// ValidateTolerations checks the tolerations of a pod or of a RuntimeClass.
func ValidateTolerations(path *field.Path, tolerations []corev1.Toleration) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		at := path.Index(i)
		if t.Key != "" {
			errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			errs = append(errs, validate.Invalid(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		case corev1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(at.Child("value"), t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		case "Lt", "Gt": // numeric comparison, KEP-5471
		default:
			errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if t.Effect != "" {
			errs = append(errs, TaintEffect(at.Child("effect"), t.Effect)...)
		}
	}
	return errs
}

// TaintEffect checks the effect of a taint or of a toleration.
func TaintEffect(path *field.Path, effect corev1.TaintEffect) field.ErrorList {
	return validate.OneOf(path, effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

func validateSpread(path *field.Path, constraints []corev1.TopologySpreadConstraint) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, c := range constraints {
		at := path.Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(at.Child("topologyKey"), "can not be empty"))
		}
		errs = append(errs, validate.OneOf(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		if pair := c.TopologyKey + "/" + string(c.WhenUnsatisfiable); seen.Has(pair) {
			errs = append(errs, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), "{"+c.TopologyKey+", "+string(c.WhenUnsatisfiable)+"}"))
		} else {
			seen.Insert(pair)
		}
		errs = append(errs, validate.AtLeast(at.Child("minDomains"), c.MinDomains, 1)...)
		if c.MinDomains != nil && c.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs, field.Invalid(at.Child("minDomains"), *c.MinDomains, "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "+string(c.WhenUnsatisfiable)))
		}
		for name, policy := range map[string]*corev1.NodeInclusionPolicy{"nodeAffinityPolicy": c.NodeAffinityPolicy, "nodeTaintsPolicy": c.NodeTaintsPolicy} {
			if policy != nil {
				errs = append(errs, validate.OneOf(at.Child(name), *policy, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor)...)
			}
		}
		errs = append(errs, validate.LabelSelector(at.Child("labelSelector"), c.LabelSelector)...)
	}
	return errs
}

func validateReadinessGates(path *field.Path, gates []corev1.PodReadinessGate) field.ErrorList {
	var errs field.ErrorList
	for i, gate := range gates {
		at := path.Index(i).Child("conditionType")
		errs = append(errs, validate.Invalid(at, gate.ConditionType, validation.IsQualifiedName(string(gate.ConditionType)))...)
	}
	return errs
}

func validateDNSConfig(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	const maxNameservers, maxSearches = 3, 32
	at := path.Child("dnsConfig")
	if spec.DNSConfig == nil {
		if spec.DNSPolicy == corev1.DNSNone {
			return field.ErrorList{field.Required(at, "must provide `dnsConfig` when `dnsPolicy` is None")}
		}
		return nil
	}
	var errs field.ErrorList
	if n := len(spec.DNSConfig.Nameservers); n > maxNameservers {
		errs = append(errs, field.TooMany(at.Child("nameservers"), n, maxNameservers))
	} else if n == 0 && spec.DNSPolicy == corev1.DNSNone {
		errs = append(errs, field.Required(at.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None"))
	}
	for i, server := range spec.DNSConfig.Nameservers {
		errs = append(errs, validation.IsValidIP(at.Child("nameservers").Index(i), server)...)
	}
	if n := len(spec.DNSConfig.Searches); n > maxSearches {
		errs = append(errs, field.TooMany(at.Child("searches"), n, maxSearches))
	}
	for i, option := range spec.DNSConfig.Options {
		errs = append(errs, validate.Required(at.Child("options").Index(i).Child("name"), option.Name)...)
	}
	return errs
}

func validateGates(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, gate := range spec.SchedulingGates {
		errs = append(errs, metavalidation.ValidateLabelName(gate.Name, path.Index(i).Child("name"))...)
		if seen.Has(gate.Name) {
			errs = append(errs, field.Duplicate(path.Index(i), gate.Name))
		}
		seen.Insert(gate.Name)
	}
	return errs
}
