package endpoints

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func endpointsOf(from, to int) (list []discoveryv1.Endpoint) {
	for i := from; i < to; i++ {
		list = append(list, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250)}})
	}
	return list
}

func TestEndpointsStayInTheirSlices(t *testing.T) {
	for _, c := range []struct {
		name     string
		existing [][2]int // ranges of addresses
		wanted   [2]int
		want     string // sizes of the slices afterwards
	}{
		{"nothing at all", nil, [2]int{0, 0}, "0"},
		{"the first", nil, [2]int{0, 3}, "3"},
		{"a second slice", nil, [2]int{0, 101}, "100 1"},
		{"room in an existing one", [][2]int{{0, 100}, {100, 150}}, [2]int{0, 160}, "100 60"},
		{"gaps are filled", [][2]int{{0, 100}, {100, 200}}, [2]int{50, 210}, "60 100"},
		{"one becomes empty", [][2]int{{0, 10}, {10, 20}}, [2]int{10, 20}, "0 10"},
	} {
		var existing []*discoveryv1.EndpointSlice
		for _, r := range c.existing {
			existing = append(existing, &discoveryv1.EndpointSlice{Endpoints: endpointsOf(r[0], r[1])})
		}
		contents := arrange(existing, endpointsOf(c.wanted[0], c.wanted[1]))
		var sizes []string
		seen := map[string]bool{}
		for _, slice := range contents {
			sizes = append(sizes, fmt.Sprint(len(slice)))
			for _, e := range slice {
				if seen[e.Addresses[0]] {
					t.Errorf("%s: %s is in two places", c.name, e.Addresses[0])
				}
				seen[e.Addresses[0]] = true
			}
		}
		if got := strings.Join(sizes, " "); got != c.want {
			t.Errorf("%s: sizes %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTwoPodsOfOneAddressAreOneEndpoint(t *testing.T) {
	host := endpointsOf(0, 1)
	if contents := arrange(nil, append(host, host...)); len(contents[0]) != 1 {
		t.Errorf("%d endpoints for one address", len(contents[0]))
	}
}

func TestTargetPorts(t *testing.T) {
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}}
	for _, c := range []struct {
		target intstr.IntOrString
		want   int32
		ok     bool
	}{
		{intstr.FromInt32(0), 80, true}, {intstr.FromInt32(9000), 9000, true},
		{intstr.FromString("http"), 8080, true}, {intstr.FromString("grpc"), 0, false},
	} {
		service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: c.target, Protocol: corev1.ProtocolTCP}}}}
		got := portsOf(service, pod)
		if len(got) == 1 != c.ok || c.ok && *got[0].Port != c.want {
			t.Errorf("%s: %v", c.target.String(), got)
		}
	}
}

// TestManyNamedPorts: the ports of a service are looked up among those of a pod. When each was compared with each, this took
// 10,000,000,000 comparisons.
func TestManyNamedPorts(t *testing.T) {
	const many = 100_000
	service, pod := &corev1.Service{}, &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
	for i := range many {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{TargetPort: intstr.FromString(fmt.Sprintf("p%06d", i))})
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{Name: fmt.Sprintf("p%06d", many-1-i), ContainerPort: int32(i + 1)})
	}
	got := portsOf(service, pod)
	if len(got) != many || *got[0].Port != many || *got[many-1].Port != 1 {
		t.Errorf("%d of %d ports", len(got), many)
	}
}
