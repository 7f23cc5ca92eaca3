// Package podspec completes and validates pod specs, pod templates and claim
// specs, wherever a kind contains one.
package podspec

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// Validate checks the spec of a pod template, and most of a pod's: see ValidatePod. What is
// wrong is told in kube-apiserver's order.
func Validate(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	errs := validateSpec(path, spec, &metav1.ObjectMeta{})
	return append(errs, tagsOfResponders(path, spec.EvictionResponders)...)
}

// validateSpec is Validate of the spec of a pod. The pods of a template have no metadata yet.
func validateSpec(path *field.Path, spec *corev1.PodSpec, pod *metav1.ObjectMeta) field.ErrorList {
	errs, volumes := validateVolumes(path.Child("volumes"), spec.Volumes, pod.Name)
	claims := claimNamesOf(spec.ResourceClaims)
	if _, mirror := pod.Annotations[mirrorAnnotation]; mirror && len(spec.ResourceClaims) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath(""), "static pods do not support resource claims"))
	} else {
		errs = append(errs, validatePodClaims(path.Child("resourceClaims"), spec.ResourceClaims)...)
	}
	errs = append(errs, validateContainers(path, spec, references{volumes, claims})...)
	errs = append(errs, validatePodResources(path.Child("resources"), spec, claims)...)
	errs = append(errs, hostNetworkPorts(path, spec)...)
	errs = append(errs, validate.OneOfInOrder(path.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, validate.OneOfInOrder(path.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validatePodSecurity(path, spec)...)
	errs = append(errs, validateAffinity(path.Child("affinity"), spec.Affinity)...)
	errs = append(errs, validateDNSConfig(path, spec)...)
	errs = append(errs, validateReadinessGates(path.Child("readinessGates"), spec.ReadinessGates)...)
	errs = append(errs, validateGates(path.Child("schedulingGates"), spec.SchedulingGates)...)
	errs = append(errs, validateSpread(path.Child("topologySpreadConstraints"), spec.TopologySpreadConstraints)...)
	errs = append(errs, validateHostProcess(path, spec)...)
	errs = append(errs, validateHostUsers(path, spec)...)
	errs = append(errs, validateHostnameOverride(path, spec)...)
	errs = append(errs, validateNames(path, spec)...)
	errs = append(errs, ValidateLimits(path.Child("overhead"), spec.Overhead)...)
	errs = append(errs, validateOS(path, spec)...)
	errs = append(errs, validateSchedulingGroup(path, spec)...)
	return append(errs, validateVariableFiles(path, spec)...)
}

// ValidatePod checks the spec of a pod.
func ValidatePod(path *field.Path, spec *corev1.PodSpec, pod *metav1.ObjectMeta) field.ErrorList {
	errs := validateSpec(path, spec, pod)
	if spec.ServiceAccountName == "" {
		errs = append(errs, forbidTokens(path.Child("volumes"), spec.Volumes)...)
	}
	errs = append(errs, validate.NotNegative(path.Child("terminationGracePeriodSeconds"), spec.TerminationGracePeriodSeconds)...)
	errs = append(errs, validateImages(path.Child("containers"), spec.Containers)...)
	errs = append(errs, validateImages(path.Child("initContainers"), spec.InitContainers)...)
	return append(errs, tagsOfResponders(path, spec.EvictionResponders)...)
}

// forbidTokens: only a pod with an account has a token of it. A template gets its account later.
func forbidTokens(path *field.Path, volumes []corev1.Volume) field.ErrorList {
	var errs field.ErrorList
	for i := range volumes {
		if volumes[i].Projected == nil {
			continue
		}
		sources := path.Index(i).Child("projected", "sources")
		for j := range volumes[i].Projected.Sources {
			if volumes[i].Projected.Sources[j].ServiceAccountToken != nil {
				errs = append(errs, field.Forbidden(sources.Index(j).Child("serviceAccountToken"), "must not be specified when serviceAccountName is not set"))
			}
		}
	}
	return errs
}

// validateImages: a template may have an image that says that another one has to be filled in,
// which is often a blank.
func validateImages(path *field.Path, containers []corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		errs = append(errs, validateImage(path.Index(i), containers[i].Image)...)
	}
	return errs
}

func validateImage(container *field.Path, image string) field.ErrorList {
	if strings.TrimSpace(image) == image {
		return nil
	}
	return field.ErrorList{field.Invalid(container.Child("image"), image, "must not have leading or trailing whitespace")}
}

// validateNames checks the fields that name other things, and those between them.
func validateNames(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	check := func(name, value string, syntax func(string) []string) {
		if value != "" {
			errs = append(errs, validate.Invalid(path.Child(name), value, syntax(value))...)
		}
	}
	check("serviceAccountName", spec.ServiceAccountName, validation.IsDNS1123Subdomain)
	if spec.DeprecatedServiceAccount != spec.ServiceAccountName {
		errs = append(errs, field.Invalid(path.Child("deprecatedServiceAccount"), spec.DeprecatedServiceAccount, fmt.Sprintf("must be the same as serviceAccountName: %q", spec.ServiceAccountName)))
	}
	check("nodeName", spec.NodeName, validation.IsDNS1123Subdomain)
	if n := spec.ActiveDeadlineSeconds; n != nil && (*n < 1 || *n > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *n, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	check("hostname", spec.Hostname, validation.IsDNS1123Label)
	check("subdomain", spec.Subdomain, validation.IsDNS1123Label)
	errs = append(errs, ValidateTolerations(path.Child("tolerations"), spec.Tolerations)...)
	for i, alias := range spec.HostAliases {
		at := path.Child("hostAliases").Index(i)
		errs = append(errs, validate.IP(at.Child("ip"), alias.IP)...)
		for j, name := range alias.Hostnames {
			errs = append(errs, validate.Invalid(at.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name))...)
		}
	}
	check("priorityClassName", spec.PriorityClassName, validation.IsDNS1123Subdomain)
	if name := spec.RuntimeClassName; name != nil {
		errs = append(errs, validate.Invalid(path.Child("runtimeClassName"), *name, validation.IsDNS1123Subdomain(*name))...)
	}
	if p := spec.PreemptionPolicy; p != nil {
		errs = append(errs, validate.OneOfInOrder(path.Child("preemptionPolicy"), *p, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	return errs
}

// validateHostUsers: a pod with users of its own shares nothing else with its host that its
// users would matter for.
func validateHostUsers(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	if spec.HostUsers == nil || *spec.HostUsers {
		return nil
	}
	const why = "when `hostUsers` is false"
	var errs field.ErrorList
	if spec.HostNetwork {
		errs = append(errs, field.Forbidden(path.Child("hostNetwork"), why))
	}
	// The names of these are kube-apiserver's.
	if spec.HostPID {
		errs = append(errs, field.Forbidden(path.Child("HostPID"), why))
	}
	if spec.HostIPC {
		errs = append(errs, field.Forbidden(path.Child("HostIPC"), why))
	}
	visitContainers(path, spec, func(at *field.Path, c *corev1.Container) {
		if len(c.VolumeDevices) > 0 {
			errs = append(errs, field.Forbidden(at.Child("volumeDevices"), why))
		}
	})
	return errs
}

// maxHostname is what Linux takes.
const maxHostname = 64

func validateHostnameOverride(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	if spec.HostnameOverride == nil {
		return nil
	}
	var errs field.ErrorList
	at, name := path.Child("hostnameOverride"), *spec.HostnameOverride
	if spec.SetHostnameAsFQDN != nil && *spec.SetHostnameAsFQDN {
		errs = append(errs, field.Forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
	}
	if spec.HostNetwork {
		errs = append(errs, field.Forbidden(at, "may not be specified when hostNetwork is true"))
	}
	if len(name) > maxHostname {
		errs = append(errs, field.TooLong(at, "", maxHostname))
	}
	return append(errs, validate.Invalid(at, name, validation.IsDNS1123Subdomain(name))...)
}

// ValidateTolerations checks tolerations of pods, which may compare numbers.
func ValidateTolerations(path *field.Path, tolerations []corev1.Toleration) field.ErrorList {
	return validateTolerations(path, tolerations, true)
}

// ValidateTolerationsOfClass checks the tolerations of a RuntimeClass.
func ValidateTolerationsOfClass(path *field.Path, tolerations []corev1.Toleration) field.ErrorList {
	return validateTolerations(path, tolerations, false)
}

func validateTolerations(path *field.Path, tolerations []corev1.Toleration, compares bool) field.ErrorList {
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
		errs = append(errs, validateTolerationOperator(at, t, compares)...)
		if t.Effect != "" {
			errs = append(errs, TaintEffect(at.Child("effect"), t.Effect)...)
		}
	}
	return errs
}

// validateTolerationOperator checks what a toleration compares the value of a taint with. Unless
// it compares numbers, kube-apiserver refuses the operators for them, and lists them all the same.
func validateTolerationOperator(at *field.Path, t corev1.Toleration, compares bool) field.ErrorList {
	operator := at.Child("operator")
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		if messages := validation.IsValidLabelValue(t.Value); len(messages) > 0 {
			return field.ErrorList{field.Invalid(operator, t.Value, strings.Join(messages, ";"))}
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			return field.ErrorList{field.Invalid(operator, t.Value, "value must be empty when `operator` is 'Exists'")}
		}
	case corev1.TolerationOpLt, corev1.TolerationOpGt: // numeric comparison, KEP-5471
		if !compares {
			return field.ErrorList{field.NotSupported(operator, t.Operator,
				[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt})}
		}
		return validateNumber(at.Child("value"), t.Value)
	default:
		return field.ErrorList{field.NotSupported(operator, t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists})}
	}
	return nil
}

// validateNumber checks the value of a toleration that is compared as a number.
func validateNumber(path *field.Path, value string) field.ErrorList {
	errs := validate.Invalid(path, value, content.IsDecimalInteger(value))
	if _, err := strconv.ParseInt(value, 10, 64); err != nil {
		errs = append(errs, field.Invalid(path, value, err.Error()))
	}
	return errs
}

// TaintEffect checks the effect of a taint or of a toleration.
func TaintEffect(path *field.Path, effect corev1.TaintEffect) field.ErrorList {
	return validate.OneOfInOrder(path, effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

func validateSpread(path *field.Path, constraints []corev1.TopologySpreadConstraint) field.ErrorList {
	type term struct {
		key  string
		when corev1.UnsatisfiableConstraintAction
	}
	later := map[term]int{}
	for i := range constraints {
		later[term{constraints[i].TopologyKey, constraints[i].WhenUnsatisfiable}]++
	}
	var errs field.ErrorList
	for i, c := range constraints {
		at := path.Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(at.Child("topologyKey"), "can not be empty"))
		}
		errs = append(errs, validate.Supported(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		same := term{c.TopologyKey, c.WhenUnsatisfiable}
		if later[same]--; later[same] > 0 {
			errs = append(errs, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%s, %s}", c.TopologyKey, c.WhenUnsatisfiable)))
		}
		if n := c.MinDomains; n != nil && *n <= 0 {
			errs = append(errs, field.Invalid(at.Child("minDomains"), *n, "must be greater than zero"))
		}
		if c.MinDomains != nil && c.WhenUnsatisfiable != corev1.DoNotSchedule {
			errs = append(errs, field.Invalid(at.Child("minDomains"), *c.MinDomains, "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "+string(c.WhenUnsatisfiable)))
		}
		errs = append(errs, nodeInclusion(at.Child("nodeAffinityPolicy"), c.NodeAffinityPolicy)...)
		errs = append(errs, nodeInclusion(at.Child("nodeTaintsPolicy"), c.NodeTaintsPolicy)...)
		errs = append(errs, validateLabelKeys(at, c.MatchLabelKeys, nil, c.LabelSelector)...)
		errs = append(errs, validate.LabelSelector(at.Child("labelSelector"), c.LabelSelector)...)
	}
	return errs
}

func nodeInclusion(path *field.Path, policy *corev1.NodeInclusionPolicy) field.ErrorList {
	if policy == nil {
		return nil
	}
	return validate.Supported(path, *policy, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor)
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
	const maxNameservers, maxSearches, maxSearchBytes = 3, 32, 2048
	at, config := path.Child("dnsConfig"), spec.DNSConfig
	if spec.DNSPolicy == corev1.DNSNone {
		switch {
		case config == nil:
			return field.ErrorList{field.Required(at, "must provide `dnsConfig` when `dnsPolicy` is None")}
		case len(config.Nameservers) == 0:
			return field.ErrorList{field.Required(at.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")}
		}
	}
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	if n := len(config.Nameservers); n > maxNameservers {
		errs = append(errs, field.Invalid(at.Child("nameservers"), config.Nameservers, fmt.Sprintf("must not have more than %d nameservers", maxNameservers)))
	}
	for i, server := range config.Nameservers {
		errs = append(errs, validate.IP(at.Child("nameservers").Index(i), server)...)
	}
	if n := len(config.Searches); n > maxSearches {
		errs = append(errs, field.Invalid(at.Child("searches"), config.Searches, fmt.Sprintf("must not have more than %d search paths", maxSearches)))
	}
	if list := strings.Join(config.Searches, " "); len(list) > maxSearchBytes {
		errs = append(errs, field.Invalid(at.Child("searches"), config.Searches, fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", maxSearchBytes)))
	}
	for i, search := range config.Searches {
		if search == "." {
			continue
		}
		search = strings.TrimSuffix(search, ".")
		errs = append(errs, validate.Invalid(at.Child("searches").Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(search))...)
	}
	for i, option := range config.Options {
		if option.Name == "" {
			errs = append(errs, field.Required(at.Child("options").Index(i), "must not be empty"))
		}
	}
	return errs
}

func validateGates(path *field.Path, gates []corev1.PodSchedulingGate) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, gate := range gates {
		errs = append(errs, validate.Invalid(path.Index(i), gate.Name, validation.IsQualifiedName(gate.Name))...)
		if seen.Has(gate.Name) {
			errs = append(errs, field.Duplicate(path.Index(i), gate.Name))
		}
		seen.Insert(gate.Name)
	}
	return errs
}
