package builtin_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestNewServicesListTheirClusterIP where admission has not: of a type that has none, or without a name.
func TestNewServicesListTheirClusterIP(t *testing.T) {
	r, obj := manifest(t, "service", "spec.clusterIP='10.0.0.7'")
	r.Strategy.CompleteNew(obj)
	if got := obj.(*corev1.Service).Spec.ClusterIPs; !slices.Equal(got, []string{"10.0.0.7"}) {
		t.Errorf("clusterIPs are %q", got)
	}
}

func TestPodGrace(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		name      string
		node      string
		phase     corev1.PodPhase
		spec      *int64
		requested *int64
		want      int64
	}{
		{"unbound goes at once", "", corev1.PodPending, seconds(30), nil, 0},
		{"bound takes the pod's period", "n", corev1.PodRunning, seconds(20), nil, 20},
		{"bound and pending too", "n", corev1.PodPending, seconds(20), nil, 20},
		{"the request wins", "n", corev1.PodRunning, seconds(20), seconds(5), 5},
		{"zero is zero", "n", corev1.PodRunning, seconds(20), seconds(0), 0},
		{"negative is one", "n", corev1.PodRunning, seconds(20), seconds(-1), 1},
		{"nothing said", "n", corev1.PodRunning, nil, nil, 30},
		{"ended", "n", corev1.PodSucceeded, seconds(20), seconds(5), 0},
		{"failed", "n", corev1.PodFailed, seconds(20), nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, obj := manifest(t, "pod")
			pod := obj.(*corev1.Pod)
			pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds, pod.Status.Phase = tt.node, tt.spec, tt.phase
			if got := r.Strategy.Graceful(pod, tt.requested); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestImmutableConfiguration(t *testing.T) {
	r, old := manifest(t, "secret", "immutable=true")
	for _, edits := range [][]string{{"immutable=true", "data.a=eA=="}, {"immutable=false"}, {}} {
		_, obj := manifest(t, "secret", edits...)
		if errs := validateChanged(r, obj, old); len(errs) == 0 {
			t.Errorf("%v: an immutable secret was changed", edits)
		}
	}
	_, same := manifest(t, "secret", "immutable=true", "metadata.labels={a: b}")
	if errs := validateChanged(r, same, old); len(errs) > 0 {
		t.Errorf("labels of an immutable secret: %v", errs)
	}
}

func TestServiceAddressStays(t *testing.T) {
	r, obj := manifest(t, "service-balanced")
	old := obj.(*corev1.Service)
	old.Spec.ClusterIP, old.Spec.ClusterIPs = "10.0.0.7", []string{"10.0.0.7"}
	svc := old.DeepCopy()
	svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "10.0.0.8", []string{"10.0.0.8"}
	if got := complaints(r.Strategy.ValidateUpdate(svc, old)); !slices.Contains(got, "Invalid spec.clusterIPs[0]") {
		t.Errorf("the address may change: %v", got)
	}
}

// TestServiceTypeChanges: what a patch of the type alone carries along from the
// old type is dropped; what the update itself asks for is refused.
func TestServiceTypeChanges(t *testing.T) {
	change := func(to corev1.ServiceType, more ...func(*corev1.ServiceSpec)) (*corev1.Service, []string) {
		r, obj := manifest(t, "service-balanced")
		old := obj.(*corev1.Service)
		old.Spec.ClusterIP, old.Spec.ClusterIPs = "10.0.0.7", []string{"10.0.0.7"}
		old.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		old.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		old.Spec.Ports[0].NodePort, old.Spec.HealthCheckNodePort = 30001, 30002
		old.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		svc := old.DeepCopy()
		svc.Spec.Type, svc.Spec.ExternalName = to, "example.com"
		for _, f := range more {
			f(&svc.Spec)
		}
		r.Strategy.Default(svc)
		r.Strategy.PrepareForUpdate(svc, old)
		return svc, complaints(r.Strategy.ValidateUpdate(svc, old))
	}
	for _, to := range []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeExternalName} {
		svc, errs := change(to)
		spec := svc.Spec
		if len(errs) > 0 || spec.AllocateLoadBalancerNodePorts != nil || len(svc.Status.LoadBalancer.Ingress) > 0 {
			t.Errorf("to %s: %v, %+v", to, errs, svc)
		}
		if outside := to == corev1.ServiceTypeNodePort; (spec.ExternalTrafficPolicy != "") != outside || (spec.Ports[0].NodePort != 0) != outside {
			t.Errorf("to %s: traffic policy %q, node port %d", to, spec.ExternalTrafficPolicy, spec.Ports[0].NodePort)
		}
		if inside := to != corev1.ServiceTypeExternalName; (spec.ClusterIP != "") != inside || (len(spec.ClusterIPs) > 0) != inside || (len(spec.IPFamilies) > 0) != inside {
			t.Errorf("to %s: addresses %v of %v", to, spec.ClusterIPs, spec.IPFamilies)
		}
	}
	svc, errs := change(corev1.ServiceTypeClusterIP, func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"192.0.2.9"} })
	if len(errs) > 0 || svc.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		t.Errorf("external IPs keep the traffic policy: %v, %+v", errs, svc.Spec)
	}
	for want, f := range map[string]func(*corev1.ServiceSpec){
		"Invalid spec.externalTrafficPolicy": func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster },
		"Forbidden spec.ports[0].nodePort":   func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30009 },
		"Invalid spec.clusterIPs[0]":         func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "10.0.0.8", []string{"10.0.0.8"} },
	} {
		if _, errs := change(corev1.ServiceTypeClusterIP, f); !slices.Contains(errs, want) {
			t.Errorf("want %q, got %v", want, errs)
		}
	}
	added := func(s *corev1.ServiceSpec) {
		s.Ports = append(s.Ports, corev1.ServicePort{Name: "added", Port: 1234, NodePort: 30009})
	}
	if _, errs := change(corev1.ServiceTypeClusterIP, added); !slices.Contains(errs, "Forbidden spec.ports[0].nodePort") || !slices.Contains(errs, "Forbidden spec.ports[2].nodePort") {
		t.Errorf("a new node port beside one that was kept: %v", errs)
	}
}

// TestTrafficPolicyOfNames: a service that is another name has no endpoints to choose from.
func TestTrafficPolicyOfNames(t *testing.T) {
	for to, want := range map[corev1.ServiceType]bool{corev1.ServiceTypeClusterIP: true, corev1.ServiceTypeExternalName: false} {
		r, obj := manifest(t, "service-balanced", "spec.internalTrafficPolicy=Local")
		svc := obj.(*corev1.Service)
		svc.Spec.Type = to
		r.Strategy.CompleteStored(svc)
		if got := svc.Spec.InternalTrafficPolicy != nil; got != want {
			t.Errorf("a service of type %s has a policy: %v", to, got)
		}
	}
}

func TestScaleSelector(t *testing.T) {
	r, obj := manifest(t, "deployment", "spec.replicas=4")
	spec, status, selector, err := r.Scale.Get(obj)
	if err != nil || *spec != 4 || status != 0 || selector != "app=web" {
		t.Errorf("got %d %d %q %v", *spec, status, selector, err)
	}
}

// TestHostPortsOfTemplates: a template in the host's network leaves its ports
// to the pods made of it, which have them.
func TestHostPortsOfTemplates(t *testing.T) {
	network, ports := "hostNetwork=true", "containers.0.ports=[{containerPort: 80}]"
	_, obj := manifest(t, "deployment", "spec.template.spec."+network, "spec.template.spec."+ports)
	if p := obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Ports[0]; p.HostPort != 0 {
		t.Errorf("the template has %+v", p)
	}
	_, obj = manifest(t, "pod", "spec."+network, "spec."+ports)
	if p := obj.(*corev1.Pod).Spec.Containers[0].Ports[0]; p.HostPort != 80 {
		t.Errorf("the pod has %+v", p)
	}
}
