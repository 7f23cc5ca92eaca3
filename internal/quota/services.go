package quota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// serviceKind counts services, and those of their ports and load balancers that a
// cluster has few of.
type serviceKind struct{}

func (serviceKind) tracks(name corev1.ResourceName) bool {
	switch name {
	case "count/services", corev1.ResourceServices, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return false
}

func (serviceKind) usage(obj any, _ time.Time) corev1.ResourceList {
	used := corev1.ResourceList{
		"count/services": one(), corev1.ResourceServices: one(),
		corev1.ResourceServicesNodePorts: count(0), corev1.ResourceServicesLoadBalancers: count(0),
	}
	service, ok := obj.(*corev1.Service)
	if !ok {
		return used
	}
	switch service.Spec.Type {
	case corev1.ServiceTypeNodePort:
		used[corev1.ResourceServicesNodePorts] = count(len(service.Spec.Ports))
	case corev1.ServiceTypeLoadBalancer:
		used[corev1.ResourceServicesLoadBalancers] = one()
		used[corev1.ResourceServicesNodePorts] = count(balancerPorts(service))
	}
	return used
}

// balancerPorts counts the node ports of a load balancer. Those that the server will
// allocate count although the service does not name them yet.
func balancerPorts(service *corev1.Service) int {
	if allocate := service.Spec.AllocateLoadBalancerNodePorts; allocate == nil || *allocate {
		return len(service.Spec.Ports)
	}
	named := 0
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].NodePort != 0 {
			named++
		}
	}
	return named
}

// inScope: no scope is about services.
func (serviceKind) inScope(any, corev1.ScopedResourceSelectorRequirement) bool { return false }

func (serviceKind) missing(any, []corev1.ResourceName) error { return nil }
