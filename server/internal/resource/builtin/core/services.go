package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// affinitySeconds is how long ClientIP affinity lasts by default: 3 hours.
const affinitySeconds int32 = 10800

func serviceRules() define.Rules[*corev1.Service] {
	return define.Rules[*corev1.Service]{
		Default: defaultService,
		CompleteNew: func(svc *corev1.Service) { // what admission has not; of the rest it makes more than this
			if svc.Spec.ClusterIP != "" && len(svc.Spec.ClusterIPs) == 0 {
				svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
			}
		},
		CompleteStored: func(svc *corev1.Service) {
			if svc.Spec.Type == corev1.ServiceTypeExternalName { // it sends no traffic to endpoints
				svc.Spec.InternalTrafficPolicy = nil
			}
		},
		PrepareForUpdate: dropForType,
		ValidateCreate:   validateService,
		ValidateUpdate: func(svc, old *corev1.Service) field.ErrorList {
			return append(validateServiceUpdate(svc, old), validateService(svc)...)
		},
		ValidateStatus: validateServiceStatus,
		Warnings:       serviceWarnings,
		StatusWarnings: func(svc *corev1.Service) []string {
			var warnings []string
			at := field.NewPath("status", "loadBalancer", "ingress")
			for i, ingress := range svc.Status.LoadBalancer.Ingress {
				if ingress.IP != "" {
					warnings = append(warnings, validation.GetWarningsForIP(at.Index(i), ingress.IP)...)
				}
			}
			return warnings
		},
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
		for i := range svc.Status.LoadBalancer.Ingress {
			if ingress := &svc.Status.LoadBalancer.Ingress[i]; ingress.IP != "" {
				define.SetDefaultPtr(&ingress.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	define.SetDefaultPtr(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
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

// dropNodePorts clears the node ports, unless there are others than the old service had: these are the
// client's.
func dropNodePorts(spec, was *corev1.ServiceSpec) {
	had := sets.New[int32](0)
	for i := range was.Ports {
		had.Insert(was.Ports[i].NodePort)
	}
	if slices.ContainsFunc(spec.Ports, func(p corev1.ServicePort) bool { return !had.Has(p.NodePort) }) {
		return
	}
	for i := range spec.Ports {
		spec.Ports[i].NodePort = 0
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
