package endpoints

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// group is the endpoints that share their ports. A named target port may be
// another number in another pod, and a slice has one list of ports.
type group struct {
	ports     []discoveryv1.EndpointPort
	id        string                 // of the ports
	endpoints []discoveryv1.Endpoint // sorted by address
}

// state is what conditions an endpoint has because of its pod.
type state struct{ ready, serving, terminating, ended bool }

func stateOf(pod *corev1.Pod) state {
	serving := pods.Ready(pod)
	terminating := pod.DeletionTimestamp != nil
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return state{ready: serving && !terminating, serving: serving, terminating: terminating, ended: ended}
}

// desired works out the endpoints of a service, grouped by their ports. A pod
// without an address or that has ended has none. nowhere are the pods whose nodes are not known, and so not their zones.
func (c *Controller) desired(service *corev1.Service, candidates []*corev1.Pod) (sorted []group, nowhere []metav1.Object) {
	groups := map[string]*group{}
	for _, pod := range candidates {
		s := stateOf(pod)
		if pod.Status.PodIP == "" || s.ended {
			continue
		}
		ports := portsOf(service, pod)
		id := portsID(ports)
		if groups[id] == nil {
			groups[id] = &group{ports: ports, id: id}
		}
		endpoint, known := c.endpoint(service, pod, s)
		groups[id].endpoints = append(groups[id].endpoints, endpoint)
		if !known {
			nowhere = append(nowhere, pod)
		}
	}
	sorted = make([]group, 0, len(groups))
	for _, g := range groups {
		slices.SortFunc(g.endpoints, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(a.Addresses[0], b.Addresses[0]) })
		sorted = append(sorted, *g)
	}
	slices.SortFunc(sorted, func(a, b group) int { return cmp.Compare(a.id, b.id) })
	return sorted, nowhere
}

// endpoint returns the endpoint of a pod, and whether its node is known.
func (c *Controller) endpoint(service *corev1.Service, pod *corev1.Pod, s state) (e discoveryv1.Endpoint, known bool) {
	ready := s.ready || service.Spec.PublishNotReadyAddresses
	e = discoveryv1.Endpoint{
		Addresses:  []string{pod.Status.PodIP},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &s.serving, Terminating: &s.terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	known = true
	if node := pod.Spec.NodeName; node != "" {
		e.NodeName = &node
		var n *corev1.Node
		if n, known = c.nodes.Lister().Get("", node); known {
			if zone := n.Labels[corev1.LabelTopologyZone]; zone != "" {
				e.Zone = &zone
			}
		}
	}
	if pod.Spec.Hostname != "" && pod.Spec.Subdomain == service.Name {
		hostname := pod.Spec.Hostname
		e.Hostname = &hostname
	}
	return e, known
}

// portsOf resolves the service's ports for one pod. A name that no container
// has is left out.
func portsOf(service *corev1.Service, pod *corev1.Pod) []discoveryv1.EndpointPort {
	ports := []discoveryv1.EndpointPort{}
	var named map[namedPort]int32
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		number := port.TargetPort.IntVal
		if port.TargetPort.Type == intstr.String {
			if named == nil {
				named = namedPorts(pod)
			}
			var ok bool
			if number, ok = named[namedPort{port.TargetPort.StrVal, port.Protocol}]; !ok {
				continue
			}
		} else if number == 0 {
			number = port.Port
		}
		name, protocol := port.Name, port.Protocol
		ports = append(ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &number, AppProtocol: port.AppProtocol})
	}
	return ports
}

type namedPort struct {
	name     string
	protocol corev1.Protocol
}

// namedPorts returns the numbers of a pod's ports, of which there may be as many as a service has. The first one of a
// name counts.
func namedPorts(pod *corev1.Pod) map[namedPort]int32 {
	named := map[namedPort]int32{}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if key := (namedPort{p.Name, p.Protocol}); named[key] == 0 {
				named[key] = p.ContainerPort
			}
		}
	}
	return named
}

// portsID is the same for equal lists of ports.
func portsID(ports []discoveryv1.EndpointPort) string {
	var b strings.Builder
	for _, p := range ports {
		fmt.Fprintf(&b, "%s/%s/%d/%s;", deref(p.Name), deref(p.Protocol), deref(p.Port), deref(p.AppProtocol))
	}
	return b.String()
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
