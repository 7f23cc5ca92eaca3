package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// affinitySeconds is how long ClientIP affinity lasts by default: 3 hours.
const affinitySeconds int32 = 10800

func serviceRules() define.Rules[*corev1.Service] {
	return define.Rules[*corev1.Service]{
		Default:          defaultService,
		PrepareForUpdate: prepareServiceForUpdate,
		Validate:         validateService,
		ValidateUpdate:   validateServiceUpdate,
	}
}

func defaultService(svc *corev1.Service) {
	spec := &svc.Spec
	define.SetDefault(&spec.Type, corev1.ServiceTypeClusterIP)
	define.SetDefault(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		define.SetDefaultPtr(&spec.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		define.SetDefaultPtr(&spec.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		define.SetDefaultPtr(&spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, affinitySeconds)
	}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		define.SetDefault(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if fromOutside(spec) {
		define.SetDefault(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		define.SetDefaultPtr(&spec.AllocateLoadBalancerNodePorts, true)
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	define.SetDefaultPtr(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	define.SetDefaultPtr(&spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if len(spec.ClusterIPs) == 0 && spec.ClusterIP != "" {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	if spec.ClusterIP == "" && len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
}

// hasOutsidePorts reports whether a service can be reached from outside the
// cluster.
func hasOutsidePorts(t corev1.ServiceType) bool {
	return t == corev1.ServiceTypeNodePort || t == corev1.ServiceTypeLoadBalancer
}

// fromOutside reports whether a service says what becomes of traffic that
// comes from outside the cluster.
func fromOutside(spec *corev1.ServiceSpec) bool {
	return hasOutsidePorts(spec.Type) || spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0
}

// dropForType clears what only the old type had and the update carried along
// unchanged, as a patch of the type alone does. What the update itself sets is
// left for validation to refuse.
func dropForType(svc, old *corev1.Service) {
	spec, was := &svc.Spec, &old.Spec
	if fromOutside(was) && !fromOutside(spec) && spec.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
	if healthChecked(was) && !healthChecked(spec) && spec.HealthCheckNodePort == was.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	if hasOutsidePorts(was.Type) && !hasOutsidePorts(spec.Type) {
		dropNodePorts(spec, was)
	}
	if was.Type == corev1.ServiceTypeExternalName {
		return
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && spec.Type != was.Type {
		if equality.Semantic.DeepEqual(spec.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts) {
			spec.AllocateLoadBalancerNodePorts = nil
		}
		if equality.Semantic.DeepEqual(spec.LoadBalancerClass, was.LoadBalancerClass) {
			spec.LoadBalancerClass = nil
		}
		svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		dropClusterIPs(spec, was)
	}
}

// dropNodePorts clears the node ports that the old service had.
func dropNodePorts(spec, was *corev1.ServiceSpec) {
	for i := range spec.Ports {
		had := slices.ContainsFunc(was.Ports, func(p corev1.ServicePort) bool { return p.NodePort == spec.Ports[i].NodePort })
		if had {
			spec.Ports[i].NodePort = 0
		}
	}
}

// healthChecked reports whether a service has a node port of its own for the
// load balancer's health checks.
func healthChecked(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// dropClusterIPs clears the addresses and their families, each if it is the
// old service's.
func dropClusterIPs(spec, was *corev1.ServiceSpec) {
	if spec.ClusterIP == was.ClusterIP && (len(spec.ClusterIPs) == 0 || slices.Equal(spec.ClusterIPs, was.ClusterIPs)) {
		spec.ClusterIP, spec.ClusterIPs = "", nil
	}
	if slices.Equal(spec.IPFamilies, was.IPFamilies) {
		spec.IPFamilies = nil
	}
	if equality.Semantic.DeepEqual(spec.IPFamilyPolicy, was.IPFamilyPolicy) {
		spec.IPFamilyPolicy = nil
	}
}

// prepareServiceForUpdate keeps what was allocated when the update does not
// mention it, so that a manifest without it can be applied again.
func prepareServiceForUpdate(svc, old *corev1.Service) {
	dropForType(svc, old)
	if svc.Spec.Type == corev1.ServiceTypeExternalName || old.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	if svc.Spec.ClusterIP == "" && len(svc.Spec.ClusterIPs) == 0 {
		svc.Spec.ClusterIP = old.Spec.ClusterIP
		svc.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
	}
	if !hasOutsidePorts(svc.Spec.Type) || !hasOutsidePorts(old.Spec.Type) {
		return
	}
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		for _, was := range old.Spec.Ports {
			if p.NodePort == 0 && was.Port == p.Port && was.Protocol == p.Protocol && was.Name == p.Name {
				p.NodePort = was.NodePort
			}
		}
	}
}

func validateService(svc *corev1.Service) field.ErrorList {
	spec := &svc.Spec
	errs := validate.OneOf(validate.SpecPath.Child("type"), spec.Type,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	errs = append(errs, metavalidation.ValidateLabels(spec.Selector, validate.SpecPath.Child("selector"))...)
	errs = append(errs, validate.OneOf(validate.SpecPath.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)...)
	errs = append(errs, validateServicePorts(spec)...)
	errs = append(errs, validateClusterIPs(spec)...)
	errs = append(errs, validateTrafficPolicies(spec)...)
	for i, ip := range spec.ExternalIPs {
		errs = append(errs, validation.IsValidIP(validate.SpecPath.Child("externalIPs").Index(i), ip)...)
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		errs = append(errs, validate.RequiredSyntax(validate.SpecPath.Child("externalName"), spec.ExternalName, validation.IsDNS1123Subdomain)...)
	}
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil {
		if seconds := define.ValueOr(c.ClientIP.TimeoutSeconds, 0); seconds <= 0 || seconds > 86400 {
			errs = append(errs, field.Invalid(validate.SpecPath.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), seconds, "must be greater than 0 and less than 86400"))
		}
	}
	return errs
}

func validateServicePorts(spec *corev1.ServiceSpec) field.ErrorList {
	path := validate.SpecPath.Child("ports")
	headless := spec.ClusterIP == corev1.ClusterIPNone
	if len(spec.Ports) == 0 && !headless && spec.Type != corev1.ServiceTypeExternalName {
		return field.ErrorList{field.Required(path, "")}
	}
	type numbered struct {
		protocol corev1.Protocol
		port     int32
	}
	names, ports, nodePorts := sets.New[string](), sets.New[numbered](), sets.New[numbered]()
	var errs field.ErrorList
	for i, p := range spec.Ports {
		at := path.Index(i)
		if p.Name == "" {
			if len(spec.Ports) > 1 {
				errs = append(errs, field.Required(at.Child("name"), ""))
			}
		} else {
			errs = append(errs, validate.Invalid(at.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
			if names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		}
		errs = append(errs, validate.PortNumber(at.Child("port"), p.Port)...)
		errs = append(errs, podspec.Protocol(at.Child("protocol"), p.Protocol)...)
		errs = append(errs, validate.PortReference(at.Child("targetPort"), p.TargetPort)...)
		if p.AppProtocol != nil {
			errs = append(errs, validate.Invalid(at.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName(*p.AppProtocol))...)
		}
		if n := (numbered{p.Protocol, p.Port}); ports.Has(n) {
			errs = append(errs, field.Duplicate(at, p))
		} else {
			ports.Insert(n)
		}
		if p.NodePort == 0 {
			continue
		}
		if !hasOutsidePorts(spec.Type) {
			errs = append(errs, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is '"+string(spec.Type)+"'"))
		}
		if n := (numbered{p.Protocol, p.NodePort}); nodePorts.Has(n) {
			errs = append(errs, field.Duplicate(at.Child("nodePort"), p.NodePort))
		} else {
			nodePorts.Insert(n)
		}
	}
	return errs
}

func validateClusterIPs(spec *corev1.ServiceSpec) field.ErrorList {
	path := validate.SpecPath.Child("clusterIPs")
	if spec.Type == corev1.ServiceTypeExternalName {
		if len(spec.ClusterIPs) > 0 {
			return field.ErrorList{field.Forbidden(path, "may not be set for ExternalName services")}
		}
		return nil
	}
	if spec.ClusterIP == corev1.ClusterIPNone && spec.Type != corev1.ServiceTypeClusterIP {
		return field.ErrorList{field.Invalid(path.Index(0), spec.ClusterIP, "may not be set to 'None' for "+string(spec.Type)+" services")}
	}
	var errs field.ErrorList
	for i, ip := range spec.ClusterIPs {
		if ip == corev1.ClusterIPNone {
			continue
		}
		errs = append(errs, validation.IsValidIP(path.Index(i), ip)...)
	}
	if len(spec.ClusterIPs) > 0 && spec.ClusterIPs[0] != spec.ClusterIP {
		errs = append(errs, field.Invalid(path, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	for i, family := range spec.IPFamilies {
		errs = append(errs, validate.OneOf(validate.SpecPath.Child("ipFamilies").Index(i), family, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
	}
	if spec.IPFamilyPolicy != nil {
		errs = append(errs, validate.OneOf(validate.SpecPath.Child("ipFamilyPolicy"), *spec.IPFamilyPolicy,
			corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)...)
	}
	return errs
}

func validateTrafficPolicies(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	if p := spec.InternalTrafficPolicy; p != nil {
		errs = append(errs, validate.OneOf(validate.SpecPath.Child("internalTrafficPolicy"), *p, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	at := validate.SpecPath.Child("externalTrafficPolicy")
	switch {
	case spec.ExternalTrafficPolicy == "":
	case !fromOutside(spec):
		errs = append(errs, field.Invalid(at, spec.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	default:
		errs = append(errs, validate.OneOf(at, spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	}
	if p := spec.TrafficDistribution; p != nil {
		errs = append(errs, validate.OneOf(validate.SpecPath.Child("trafficDistribution"), *p, corev1.ServiceTrafficDistributionPreferClose,
			corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
	}
	if spec.Type != corev1.ServiceTypeLoadBalancer {
		if len(spec.LoadBalancerSourceRanges) > 0 {
			errs = append(errs, field.Forbidden(validate.SpecPath.Child("loadBalancerSourceRanges"), "may only be used when `type` is 'LoadBalancer'"))
		}
		if spec.AllocateLoadBalancerNodePorts != nil {
			errs = append(errs, field.Forbidden(validate.SpecPath.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'"))
		}
	}
	for i, cidr := range spec.LoadBalancerSourceRanges {
		errs = append(errs, validation.IsValidCIDR(validate.SpecPath.Child("loadBalancerSourceRanges").Index(i), strings.TrimSpace(cidr))...)
	}
	if spec.HealthCheckNodePort != 0 && !healthChecked(spec) {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("healthCheckNodePort"), spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	if spec.LoadBalancerClass != nil && spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"))
	}
	return errs
}

// validateServiceUpdate: the cluster IP stays for as long as the service has
// one.
func validateServiceUpdate(svc, old *corev1.Service) field.ErrorList {
	if svc.Spec.Type == corev1.ServiceTypeExternalName || old.Spec.Type == corev1.ServiceTypeExternalName || old.Spec.ClusterIP == "" {
		return nil
	}
	if svc.Spec.ClusterIP != old.Spec.ClusterIP {
		return field.ErrorList{field.Invalid(validate.SpecPath.Child("clusterIPs").Index(0), svc.Spec.ClusterIP, "may not change once set")}
	}
	return nil
}
