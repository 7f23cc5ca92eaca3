package registry_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
)

func withFamilies(policy corev1.IPFamilyPolicy, families ...corev1.IPFamily) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.IPFamilies = families
		if policy != "" {
			s.Spec.IPFamilyPolicy = &policy
		}
	}
}

func withIPs(ips ...string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = ips[0], ips }
}

func withSelector(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "web"} }

// TestServiceFamilies: the server has IPv4 addresses, and nobody gets others.
func TestServiceFamilies(t *testing.T) {
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	single, prefer, require := corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	for _, c := range []struct {
		name     string
		change   []func(*corev1.Service)
		families []corev1.IPFamily
		policy   corev1.IPFamilyPolicy
		refused  string
	}{
		{name: "nothing named", families: []corev1.IPFamily{v4}, policy: single},
		{name: "both are preferred", change: []func(*corev1.Service){withFamilies(prefer)}, families: []corev1.IPFamily{v4}, policy: prefer},
		{name: "both are required", change: []func(*corev1.Service){withFamilies(require)},
			refused: `spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`},
		{name: "the other family", change: []func(*corev1.Service){withFamilies("", v6)},
			refused: `spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`},
		{name: "both families", change: []func(*corev1.Service){withFamilies("", v4, v6)},
			refused: "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"},
		{name: "both families, preferred", change: []func(*corev1.Service){withFamilies(prefer, v4, v6)},
			refused: `spec.ipFamilies[1]: Invalid value: "IPv6": not configured on this cluster`},
		{name: "a family twice", change: []func(*corev1.Service){withFamilies(prefer, v4, v4)}, refused: `spec.ipFamilies[1]: Duplicate value: "IPv4"`},
		{name: "an unknown family", change: []func(*corev1.Service){withFamilies("", "IPv5")}, refused: `spec.ipFamilies[0]: Unsupported value: "IPv5"`},
		{name: "an unknown policy", change: []func(*corev1.Service){withFamilies("Both")}, refused: `spec.ipFamilyPolicy: Unsupported value: "Both"`},
		{name: "two addresses", change: []func(*corev1.Service){withIPs("10.0.0.5", "2001:db8::1")},
			refused: "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"},
		{name: "two addresses, preferred", change: []func(*corev1.Service){withIPs("10.0.0.5", "2001:db8::1"), withFamilies(prefer)},
			refused: "IPv6 is not configured on this cluster"},
		{name: "two addresses of a family", change: []func(*corev1.Service){withIPs("10.0.0.5", "10.0.0.6"), withFamilies(prefer)},
			refused: "may specify no more than one IP for each IP family"},
		{name: "three addresses, of which one is none", change: []func(*corev1.Service){withIPs("10.0.0.5", "2001:db8::1", "nowhere"), withFamilies(prefer)},
			refused: "may only hold up to 2 values"},
		{name: "an address of another family than named", change: []func(*corev1.Service){withIPs("10.0.0.5"), withFamilies("", v6)},
			refused: "expected an IPv6 value as indicated by `ipFamilies[0]`"},
		{name: "an address in the list alone", change: []func(*corev1.Service){withIPs("10.0.0.5"), withIP("")},
			refused: "must be empty when `clusterIP` is not specified"},
		{name: "another address in the list", change: []func(*corev1.Service){withIPs("10.0.0.5"), withIP("10.0.0.6")},
			refused: "first value must match `clusterIP`"},
		{name: "no address", change: []func(*corev1.Service){withIPs("nowhere")}, refused: "spec.clusterIPs[0]: Invalid value"},
		{name: "None and an address", change: []func(*corev1.Service){withIPs("None", "10.0.0.5")}, refused: "'None' must be the first and only value"},
		{name: "headless", change: []func(*corev1.Service){withIP("None"), withSelector}, families: []corev1.IPFamily{v4}, policy: single},
		{name: "headless without a selector", change: []func(*corev1.Service){withIP("None")}, families: []corev1.IPFamily{v4, v6}, policy: require},
		{name: "headless without a selector, of the other family", change: []func(*corev1.Service){withIP("None"), withFamilies("", v6)}, families: []corev1.IPFamily{v6, v4}, policy: require},
		{name: "headless without a selector, single", change: []func(*corev1.Service){withIP("None"), withFamilies(single)}, families: []corev1.IPFamily{v4}, policy: single},
		{name: "without addresses", change: []func(*corev1.Service){withType(corev1.ServiceTypeExternalName)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			before := f.addresses(t)
			result, err := f.of(t, "services").Create(t.Context(), "default", newService("a", c.change...), registry.WriteOptions{})
			if c.refused != "" {
				wantStatus(t, c.name, err, 422, metav1.StatusReasonInvalid, c.refused)
				if f.addresses(t) != before {
					t.Errorf("%d addresses are claimed, were %d", f.addresses(t), before)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			spec := result.Object.(*corev1.Service).Spec
			policy := corev1.IPFamilyPolicy("")
			if spec.IPFamilyPolicy != nil {
				policy = *spec.IPFamilyPolicy
			}
			if !slices.Equal(spec.IPFamilies, c.families) || policy != c.policy {
				t.Errorf("families %v with policy %q, want %v with %q", spec.IPFamilies, policy, c.families, c.policy)
			}
		})
	}
}

// TestUpdatesKeepFamilies: an update that leaves out addresses, families or policy keeps them, also
// one of a client that knows only the first address.
func TestUpdatesKeepFamilies(t *testing.T) {
	for name, forget := range map[string]func(*corev1.ServiceSpec){
		"all":                     func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "", nil },
		"all but the first":       func(s *corev1.ServiceSpec) { s.ClusterIPs = nil },
		"the first of the fields": func(s *corev1.ServiceSpec) { s.ClusterIP = "" },
	} {
		f := newFixture(t)
		f.create(t, "services", newService("a", withFamilies(corev1.IPFamilyPolicyPreferDualStack)))
		result, err := f.of(t, "services").Update(t.Context(), "default", "a", changing(func(s *corev1.Service) {
			s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = nil, nil
			forget(&s.Spec)
		}), registry.UpdateOptions{})
		if err != nil {
			t.Errorf("without %s: %v", name, err)
			continue
		}
		spec := result.Object.(*corev1.Service).Spec
		if spec.ClusterIP == "" || !slices.Equal(spec.ClusterIPs, []string{spec.ClusterIP}) || len(spec.IPFamilies) != 1 || *spec.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack {
			t.Errorf("without %s: after the update %+v", name, spec)
		}
	}
}

// TestUpdatesOfTheFirstAddress: a client that knows only the first address is told what is wrong with
// another one.
func TestUpdatesOfTheFirstAddress(t *testing.T) {
	f := newFixture(t)
	f.create(t, "services", newService("a"))
	_, err := f.of(t, "services").Update(t.Context(), "default", "a", changing(func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "nowhere", nil
	}), registry.UpdateOptions{})
	wantStatus(t, "an update", err, 422, metav1.StatusReasonInvalid, `spec.clusterIPs[0]: Invalid value: "nowhere": must be a valid IP address`)
}

// TestAllocatedFieldsHaveNoOwner: what the server has allocated conflicts with nobody.
func TestAllocatedFieldsHaveNoOwner(t *testing.T) {
	f := newFixture(t)
	result, err := f.of(t, "services").Create(t.Context(), "default", newService("a", withNodePort(0)), by("creator"))
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, result.Object, `creator Update {"f:spec":{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}},"f:type":{}}}`)
}

// TestNodePortsOfOneNumber: ports of one number over several protocols get one node port,
// in a new Service.
func TestNodePortsOfOneNumber(t *testing.T) {
	dns := func(udp, tcp int32) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{
				{Name: "udp", Port: 53, Protocol: corev1.ProtocolUDP, NodePort: udp}, {Name: "tcp", Port: 53, Protocol: corev1.ProtocolTCP, NodePort: tcp},
				{Name: "web", Port: 80, Protocol: corev1.ProtocolTCP},
			}
		}
	}
	for _, kind := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer} {
		for _, named := range [][2]int32{{}, {30003, 0}, {0, 30003}, {30003, 30003}} {
			f := newFixture(t)
			before := f.ports(t)
			ports := f.create(t, "services", newService("a", withType(kind), dns(named[0], named[1]))).Object.(*corev1.Service).Spec.Ports
			wanted := max(named[0], named[1])
			if wanted == 0 {
				wanted = ports[0].NodePort
			}
			if ports[0].NodePort == 0 || ports[0].NodePort != wanted || ports[1].NodePort != wanted || ports[2].NodePort == 0 || ports[2].NodePort == wanted {
				t.Errorf("%s, %v: node ports %+v", kind, named, ports)
			}
			if n := f.ports(t) - before; n != 2 {
				t.Errorf("%s, %v: %d ports are claimed, want 2", kind, named, n)
			}
		}
	}
}

// TestNodePortsAreKeptByName: a node port belongs to the port of its name, whatever else
// of that changes.
func TestNodePortsAreKeptByName(t *testing.T) {
	without := false
	port := func(name string, number, nodePort int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP, NodePort: nodePort}
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.ServiceSpec)
		want   []int32 // 0: another than before; -1: none
	}{
		{"another number", func(s *corev1.ServiceSpec) { s.Ports[0] = port("a", 8080, 0) }, []int32{30001, 30002}},
		{"another protocol", func(s *corev1.ServiceSpec) { s.Ports[0].Protocol, s.Ports[0].NodePort = corev1.ProtocolUDP, 0 }, []int32{30001, 30002}},
		{"another name", func(s *corev1.ServiceSpec) { s.Ports[0].Name, s.Ports[0].NodePort = "c", 0 }, []int32{0, 30002}},
		{"another order", func(s *corev1.ServiceSpec) {
			s.Ports = []corev1.ServicePort{port("b", 81, 0), port("a", 80, 0)}
		}, []int32{30002, 30001}},
		{"given to another", func(s *corev1.ServiceSpec) { s.Ports = []corev1.ServicePort{port("a", 80, 0), port("b", 81, 30001)} }, []int32{0, 30001}},
		{"no allocation any more", func(s *corev1.ServiceSpec) {
			s.Type, s.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, &without
			s.Ports = []corev1.ServicePort{port("a", 80, 0), port("b", 81, 0)}
		}, []int32{-1, -1}},
		{"one of them without allocation", func(s *corev1.ServiceSpec) {
			s.Type, s.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, &without
			s.Ports = []corev1.ServicePort{port("a", 80, 30001), port("b", 81, 0)}
		}, []int32{30001, -1}},
	} {
		f := newFixture(t)
		f.create(t, "services", newService("a", withType(corev1.ServiceTypeNodePort), func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{port("a", 80, 30001), port("b", 81, 30002)}
		}))
		before := f.ports(t)
		result, err := f.of(t, "services").Update(t.Context(), "default", "a", changing(func(s *corev1.Service) { c.change(&s.Spec) }), registry.UpdateOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		released := 0
		for i, got := range result.Object.(*corev1.Service).Spec.Ports {
			another := got.NodePort >= 30000 && got.NodePort != 30001 && got.NodePort != 30002
			if want := c.want[i]; want > 0 && got.NodePort != want || want == 0 && !another || want < 0 && got.NodePort != 0 {
				t.Errorf("%s: port %s has node port %d, want %d", c.name, got.Name, got.NodePort, want)
			}
			if c.want[i] < 0 {
				released++
			}
		}
		if n := before - f.ports(t); n != released {
			t.Errorf("%s: %d claims were released, want %d", c.name, n, released)
		}
	}
}

// TestServiceNetworkIsPublished: the network of the cluster IPs is an object, and a second
// start changes nothing about it.
func TestServiceNetworkIsPublished(t *testing.T) {
	f, _ := builtinFixture(t)
	r, ok := f.Lookup("networking.k8s.io", "v1", "servicecidrs")
	if !ok {
		t.Fatal("servicecidrs are not served")
	}
	obj, err := r.GetFromStore(t.Context(), "", "kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	network := obj.(*networkingv1.ServiceCIDR)
	if !slices.Equal(network.Spec.CIDRs, []string{"10.0.0.0/28"}) || !meta.IsStatusConditionTrue(network.Status.Conditions, networkingv1.ServiceCIDRConditionReady) {
		t.Errorf("%+v", network)
	}
	if err := f.bootstrap(t, f.endpoint("192.0.2.1:6443")); err != nil {
		t.Fatal(err)
	}
	if again, err := r.GetFromStore(t.Context(), "", "kubernetes"); err != nil || again.GetResourceVersion() != network.ResourceVersion {
		t.Errorf("a second start writes it again: %+v (%v)", again, err)
	}
}
