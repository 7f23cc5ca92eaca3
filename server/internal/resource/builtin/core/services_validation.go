package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/podspec"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// isHeadless reports whether a service is only a name.
func isHeadless(spec *corev1.ServiceSpec) bool {
	return spec.ClusterIP == corev1.ClusterIPNone
}

// validateService checks a service in kube-apiserver's order. The addresses and families have been
// checked by then, where they are allocated.
func validateService(svc *corev1.Service) field.ErrorList {
	spec, at := &svc.Spec, validate.SpecPath
	var errs field.ErrorList
	if hints, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		if mode, ok := svc.Annotations[corev1.AnnotationTopologyMode]; ok && mode != hints {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(corev1.AnnotationTopologyMode), mode,
				"must match annotations["+corev1.DeprecatedAnnotationTopologyAwareHints+"] when both are specified"))
		}
	}
	if len(spec.Ports) == 0 && !isHeadless(spec) && spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		errs = append(errs, validateExternalName(spec)...)
	case isHeadless(spec) && hasOutsidePorts(spec.Type):
		errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), corev1.ClusterIPNone, fmt.Sprintf("may not be set to 'None' for %s services", spec.Type)))
	}
	errs = append(errs, validateServicePorts(spec)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.Selector, at.Child("selector"))...)
	errs = append(errs, validateAffinityToClients(spec)...)
	for i, ip := range spec.ExternalIPs {
		errs = append(errs, validEndpointIP(at.Child("externalIPs").Index(i), ip)...)
	}
	errs = append(errs, validate.OneOf(at.Child("type"), spec.Type,
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)...)
	errs = append(errs, validateServicePortNumbers(spec)...)
	errs = append(errs, validateBalancer(svc)...)
	return append(errs, validateTrafficPolicies(spec)...)
}

// validateExternalName: a service that stands for another name has no addresses.
func validateExternalName(spec *corev1.ServiceSpec) field.ErrorList {
	const why = "may not be set for ExternalName services"
	var errs field.ErrorList
	if len(spec.ClusterIPs) > 0 {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("clusterIPs"), why))
	}
	if len(spec.IPFamilies) > 0 {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("ipFamilies"), why))
	}
	if spec.IPFamilyPolicy != nil {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("ipFamilyPolicy"), why))
	}
	name := strings.TrimSuffix(spec.ExternalName, ".")
	return append(errs, validate.RequiredSyntax(validate.SpecPath.Child("externalName"), name, validation.IsDNS1123Subdomain)...)
}

func validateServicePorts(spec *corev1.ServiceSpec) field.ErrorList {
	names := sets.New[string]()
	var errs field.ErrorList
	for i, p := range spec.Ports {
		at := validate.SpecPath.Child("ports").Index(i)
		switch {
		case p.Name != "":
			errs = append(errs, validate.Invalid(at.Child("name"), p.Name, validation.IsDNS1123Label(p.Name))...)
			if names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		case len(spec.Ports) > 1:
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		errs = append(errs, validate.PortNumber(at.Child("port"), p.Port)...)
		errs = append(errs, podspec.Protocol(at.Child("protocol"), p.Protocol)...)
		errs = append(errs, validate.PortReference(at.Child("targetPort"), p.TargetPort)...)
		if p.AppProtocol != nil {
			errs = append(errs, validate.Invalid(at.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName(*p.AppProtocol))...)
		}
	}
	return errs
}

// validateServicePortNumbers: no two ports have the same number and protocol, in the cluster or
// on its nodes.
func validateServicePortNumbers(spec *corev1.ServiceSpec) field.ErrorList {
	type numbered struct {
		protocol corev1.Protocol
		port     int32
	}
	path := validate.SpecPath.Child("ports")
	var errs field.ErrorList
	if spec.Type == corev1.ServiceTypeClusterIP {
		for i, p := range spec.Ports {
			if p.NodePort != 0 {
				errs = append(errs, field.Forbidden(path.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
			}
		}
	}
	nodePorts := sets.New[numbered]()
	for i, p := range spec.Ports {
		if p.NodePort == 0 {
			continue
		}
		n := numbered{p.Protocol, p.NodePort}
		if nodePorts.Has(n) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("nodePort"), p.NodePort))
		}
		nodePorts.Insert(n)
	}
	ports := sets.New[numbered]()
	for i, p := range spec.Ports {
		n := numbered{p.Protocol, p.Port}
		if ports.Has(n) {
			errs = append(errs, field.Duplicate(path.Index(i), corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		ports.Insert(n)
	}
	return errs
}

func validateAffinityToClients(spec *corev1.ServiceSpec) field.ErrorList {
	errs := validate.OneOf(validate.SpecPath.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	at, config := validate.SpecPath.Child("sessionAffinityConfig"), spec.SessionAffinityConfig
	switch {
	case spec.SessionAffinity == corev1.ServiceAffinityNone && config != nil:
		errs = append(errs, field.Forbidden(at, "must not be set when session affinity is None"))
	case spec.SessionAffinity == corev1.ServiceAffinityClientIP && config != nil && config.ClientIP != nil:
		const most = 86400
		if seconds := define.ValueOr(config.ClientIP.TimeoutSeconds, 0); seconds <= 0 || seconds > most {
			errs = append(errs, field.Invalid(at.Child("clientIP", "timeoutSeconds"), seconds, fmt.Sprintf("must be greater than 0 and less than %d", most)))
		}
	}
	return errs
}

// validateBalancer checks what only services with a load balancer have. The path of the ranges is
// kube-apiserver's.
func validateBalancer(svc *corev1.Service) field.ErrorList {
	spec, balanced := &svc.Spec, svc.Spec.Type == corev1.ServiceTypeLoadBalancer
	var errs field.ErrorList
	forbid := func(at *field.Path, set bool) {
		if set && !balanced {
			errs = append(errs, field.Forbidden(at, onlyBalanced))
		}
	}
	ranges := validate.SpecPath.Child("LoadBalancerSourceRanges")
	forbid(ranges, len(spec.LoadBalancerSourceRanges) > 0)
	for i, cidr := range spec.LoadBalancerSourceRanges {
		errs = append(errs, validate.CIDR(ranges.Index(i), strings.TrimSpace(cidr))...)
	}
	if list, annotated := svc.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]; annotated && len(spec.LoadBalancerSourceRanges) == 0 {
		at := field.NewPath("metadata", "annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
		forbid(at, true)
		if list = strings.TrimSpace(list); list != "" {
			for cidr := range strings.SplitSeq(list, ",") {
				errs = append(errs, validate.CIDR(at, strings.TrimSpace(cidr))...)
			}
		}
	}
	forbid(validate.SpecPath.Child("allocateLoadBalancerNodePorts"), spec.AllocateLoadBalancerNodePorts != nil)
	return append(errs, validateBalancerClass(spec)...)
}

func validateBalancerClass(spec *corev1.ServiceSpec) field.ErrorList {
	class, at := spec.LoadBalancerClass, validate.SpecPath.Child("loadBalancerClass")
	switch {
	case class == nil:
		return nil
	case spec.Type != corev1.ServiceTypeLoadBalancer:
		return field.ErrorList{field.Forbidden(at, onlyBalanced)}
	}
	return validate.Invalid(at, *class, validation.IsQualifiedName(*class))
}

const onlyBalanced = "may only be used when `type` is 'LoadBalancer'"

func validateTrafficPolicies(spec *corev1.ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	at := validate.SpecPath.Child("externalTrafficPolicy")
	if fromOutside(spec) {
		errs = append(errs, validate.OneOf(at, spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	} else if spec.ExternalTrafficPolicy != "" {
		errs = append(errs, field.Invalid(at, spec.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if port, at := spec.HealthCheckNodePort, validate.SpecPath.Child("healthCheckNodePort"); port != 0 {
		if healthChecked(spec) {
			errs = append(errs, validate.PortNumber(at, port)...)
		} else {
			errs = append(errs, field.Invalid(at, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
		}
	}
	if p := spec.InternalTrafficPolicy; p != nil {
		errs = append(errs, validate.Supported(validate.SpecPath.Child("internalTrafficPolicy"), *p, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	if p := spec.TrafficDistribution; p != nil {
		errs = append(errs, validate.SupportedInOrder(validate.SpecPath.Child("trafficDistribution"), *p, corev1.ServiceTrafficDistributionPreferClose,
			corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
	}
	return errs
}

// validateServiceUpdate: addresses, families and the class of the load balancer stay for as long as
// the service has them.
func validateServiceUpdate(svc, old *corev1.Service) field.ErrorList {
	const stays = "may not change once set"
	spec, was := &svc.Spec, &old.Spec
	var errs field.ErrorList
	if spec.Type != corev1.ServiceTypeExternalName && was.Type != corev1.ServiceTypeExternalName && !(isHeadless(spec) && isHeadless(was)) {
		at := validate.SpecPath.Child("clusterIPs").Index(0)
		switch {
		case len(was.ClusterIPs) == 0:
		case len(spec.ClusterIPs) == 0:
			errs = append(errs, field.Invalid(at, spec.ClusterIPs, "primary clusterIP can not be unset"))
		case spec.ClusterIPs[0] != was.ClusterIPs[0]:
			errs = append(errs, field.Invalid(at, spec.ClusterIPs, stays))
		}
		if isHeadless(spec) == isHeadless(was) && len(spec.IPFamilies) > 0 && len(was.IPFamilies) > 0 && spec.IPFamilies[0] != was.IPFamilies[0] {
			errs = append(errs, field.Invalid(validate.SpecPath.Child("ipFamilies").Index(0), spec.IPFamilies, stays))
		}
	}
	both := spec.Type == corev1.ServiceTypeLoadBalancer && was.Type == corev1.ServiceTypeLoadBalancer
	if both && (spec.LoadBalancerClass == nil) != (was.LoadBalancerClass == nil) || both && define.ValueOr(spec.LoadBalancerClass, "") != define.ValueOr(was.LoadBalancerClass, "") {
		errs = append(errs, field.Invalid(validate.SpecPath.Child("loadBalancerClass"), spec.LoadBalancerClass, stays))
	}
	errs = append(errs, validateBalancerClass(spec)...) // before the rest of the service, of which it is a part, too
	if healthChecked(spec) && healthChecked(was) && spec.HealthCheckNodePort != was.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(validate.SpecPath.Child("healthCheckNodePort"), validate.Immutable))
	}
	return errs
}

// validateServiceStatus checks the addresses of a load balancer, which only some services have. Those
// that were there before may have any form that was allowed then.
func validateServiceStatus(svc, old *corev1.Service) field.ErrorList {
	ingresses, path := svc.Status.LoadBalancer.Ingress, field.NewPath("status", "loadBalancer", "ingress")
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(ingresses) > 0 {
		return field.ErrorList{field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	before := sets.New[string]()
	for _, ingress := range old.Status.LoadBalancer.Ingress {
		before.Insert(ingress.IP)
	}
	var errs field.ErrorList
	for i, ingress := range ingresses {
		at := path.Index(i)
		if ingress.IP != "" && !before.Has(ingress.IP) {
			errs = append(errs, validate.IP(at.Child("ip"), ingress.IP)...)
		}
		errs = append(errs, validateIPMode(at.Child("ipMode"), &ingress)...)
		if ingress.Hostname != "" {
			errs = append(errs, validate.Invalid(at.Child("hostname"), ingress.Hostname, validation.IsDNS1123Subdomain(ingress.Hostname))...)
			errs = append(errs, validate.NotAddress(at.Child("hostname"), ingress.Hostname)...)
		}
	}
	return errs
}

// validateIPMode checks how a load balancer's address is served. One without is given a mode by defaults.
func validateIPMode(path *field.Path, ingress *corev1.LoadBalancerIngress) field.ErrorList {
	switch {
	case ingress.IPMode == nil:
		return nil
	case ingress.IP == "":
		return field.ErrorList{field.Forbidden(path, "may not be specified when `ip` is not set")}
	}
	return validate.Supported(path, *ingress.IPMode, corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP)
}

func serviceWarnings(svc, _ *corev1.Service) []string {
	spec, at := &svc.Spec, validate.SpecPath
	var warnings []string
	if _, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		warnings = append(warnings, fmt.Sprintf("annotation %s is deprecated, please use %s instead", corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
	}
	headless, named := spec.Type == corev1.ServiceTypeClusterIP && spec.ClusterIP == corev1.ClusterIPNone, spec.Type == corev1.ServiceTypeExternalName
	if spec.ClusterIP != "" && !headless {
		for i, ip := range spec.ClusterIPs {
			warnings = append(warnings, validation.GetWarningsForIP(at.Child("clusterIPs").Index(i), ip)...)
		}
	}
	if headless {
		warnings = append(warnings, warnOf(spec.LoadBalancerIP != "", "spec.loadBalancerIP is ignored for headless services")...)
		warnings = append(warnings, warnOf(len(spec.ExternalIPs) > 0, "spec.externalIPs is ignored for headless services")...)
		warnings = append(warnings, warnOf(spec.SessionAffinity != corev1.ServiceAffinityNone, "spec.SessionAffinity is ignored for headless services")...)
	}
	for i, ip := range spec.ExternalIPs {
		warnings = append(warnings, validation.GetWarningsForIP(at.Child("externalIPs").Index(i), ip)...)
	}
	warnings = append(warnings, warnOf(len(spec.ExternalIPs) > 0 && !headless && !named, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")...)
	if netutils.ParseIPSloppy(spec.LoadBalancerIP) != nil { // nothing refuses one that is none, of which the library would write to the log
		warnings = append(warnings, validation.GetWarningsForIP(at.Child("loadBalancerIP"), spec.LoadBalancerIP)...)
	}
	for i, cidr := range spec.LoadBalancerSourceRanges {
		warnings = append(warnings, validation.GetWarningsForCIDR(at.Child("loadBalancerSourceRanges").Index(i), cidr)...)
	}
	warnings = append(warnings, warnOf(named && len(spec.ExternalIPs) > 0, `spec.externalIPs is ignored when spec.type is "ExternalName"`)...)
	warnings = append(warnings, warnOf(!named && spec.ExternalName != "", `spec.externalName is ignored when spec.type is not "ExternalName"`)...)
	return append(warnings, warnOf(define.ValueOr(spec.TrafficDistribution, "") == corev1.ServiceTrafficDistributionPreferClose,
		`spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`)...)
}

// warnOf is a warning, or none.
func warnOf(is bool, text string) []string {
	if !is {
		return nil
	}
	return []string{text}
}

// validEndpointIP checks an address that traffic may be sent to. Its own, or one that only it has, is none.
func validEndpointIP(path *field.Path, value string) field.ErrorList {
	if errs := validate.IP(path, value); len(errs) > 0 {
		return errs
	}
	return validate.EndpointIP(path, value)
}
