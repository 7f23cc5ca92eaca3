package registry_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// The fixture's range 10.0.0.0/28 has 14 addresses, the first of which is
// default/kubernetes'; its node ports are 30000 to 30007.
const (
	freeAddresses = 13
	freePorts     = 8
)

func newService(name string, change ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
	for _, fn := range change {
		fn(svc)
	}
	return svc
}

func withType(t corev1.ServiceType) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type = t }
}

func withIP(ip string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.ClusterIP = ip }
}

func withNodePort(port int32) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, port }
}

// addresses counts the IPAddress objects.
func (f *fixture) addresses(t *testing.T) int {
	t.Helper()
	page, err := f.store.List(t.Context(), "/registry/ipaddresses/", storage.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Items)
}

func (f *fixture) ports(t *testing.T) int {
	t.Helper()
	page, err := f.store.List(t.Context(), "/registry/ranges/", storage.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Items)
}

func TestServiceAddresses(t *testing.T) {
	f := newFixture(t)
	r := f.of(t, "services")
	got := f.create(t, "services", newService("a")).Object.(*corev1.Service)
	if addr, err := netip.ParseAddr(got.Spec.ClusterIP); err != nil || !netip.MustParsePrefix("10.0.0.0/28").Contains(addr) || len(got.Spec.ClusterIPs) != 1 {
		t.Errorf("cluster IP %q, %v", got.Spec.ClusterIP, got.Spec.ClusterIPs)
	}
	if got.Spec.IPFamilies[0] != corev1.IPv4Protocol {
		t.Errorf("families %v", got.Spec.IPFamilies)
	}
	refusals := []struct {
		ip, message string
	}{
		{got.Spec.ClusterIP, "provided IP is already allocated"},
		{"10.0.0.1", "provided IP is already allocated"}, // default/kubernetes
		{"10.0.0.0", "not in the valid range"}, {"10.0.0.15", "not in the valid range"}, {"192.168.0.1", "not in the valid range"},
		{"010.0.0.2", "must not have leading 0s"}, {"nonsense", "must be a valid IP"},
	}
	for _, test := range refusals {
		_, err := r.Create(t.Context(), "default", newService("b", withIP(test.ip)), registry.WriteOptions{})
		wantStatus(t, test.ip, err, 422, metav1.StatusReasonInvalid, test.message)
	}
	headless := f.create(t, "services", newService("headless", withIP(corev1.ClusterIPNone))).Object.(*corev1.Service)
	external := f.create(t, "services", newService("external", withType(corev1.ServiceTypeExternalName))).Object.(*corev1.Service)
	if headless.Spec.ClusterIP != "None" || external.Spec.ClusterIP != "" || f.addresses(t) != 2 {
		t.Errorf("headless %q, external %q, %d addresses claimed", headless.Spec.ClusterIP, external.Spec.ClusterIP, f.addresses(t))
	}
	if _, err := r.Delete(t.Context(), "default", "a", nil); err != nil {
		t.Fatal(err)
	}
	if n := f.addresses(t); n != 1 {
		t.Errorf("%d addresses claimed after the delete", n)
	}
	f.create(t, "services", newService("b", withIP(got.Spec.ClusterIP)))
}

func TestRefusedServicesClaimNothing(t *testing.T) {
	f := newFixture(t)
	f.create(t, "services", newService("taken", withNodePort(30000)))
	addresses, ports := f.addresses(t), f.ports(t)
	refused := map[string]*corev1.Service{
		"exists":       newService("taken", withNodePort(0)),
		"bad labels":   newService("b", withNodePort(30001), func(s *corev1.Service) { s.Labels = map[string]string{"a b": ""} }),
		"port taken":   newService("b", withNodePort(30000)),
		"port outside": newService("b", withNodePort(80)),
		"second is taken": newService("b", withNodePort(30002), func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "x", Port: 81, NodePort: 30000})
		}),
		"another number has the port": newService("b", withNodePort(30002), func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "x", Port: 81, Protocol: corev1.ProtocolUDP, NodePort: 30002})
		}),
	}
	for what, svc := range refused {
		if _, err := f.of(t, "services").Create(t.Context(), "default", svc, registry.WriteOptions{}); err == nil || apierrors.IsInternalError(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := f.of(t, "services").Create(t.Context(), "default", newService("dry", withNodePort(0)), registry.WriteOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	if f.addresses(t) != addresses || f.ports(t) != ports {
		t.Errorf("claims went from %d and %d to %d and %d", addresses, ports, f.addresses(t), f.ports(t))
	}
}

func TestServiceTypeChangesMoveClaims(t *testing.T) {
	f := newFixture(t)
	created := f.create(t, "services", newService("a", withNodePort(30003))).Object.(*corev1.Service)
	r := f.of(t, "services")
	steps := []struct {
		name             string
		change           func(*corev1.Service)
		ip, port         bool
		addresses, ports int
	}{
		{"left out", func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.Ports[0].NodePort = "", nil, 0 }, true, true, 2, 1},
		{"cluster IP only", withType(corev1.ServiceTypeClusterIP), true, false, 2, 0},
		{"balanced", withType(corev1.ServiceTypeLoadBalancer), true, true, 2, 1},
		{"external", withType(corev1.ServiceTypeExternalName), false, false, 1, 0},
		{"back", withType(corev1.ServiceTypeNodePort), true, true, 2, 1},
	}
	for _, step := range steps {
		result, err := r.Update(t.Context(), "default", "a", changing(step.change), registry.UpdateOptions{})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		svc := result.Object.(*corev1.Service)
		if (svc.Spec.ClusterIP != "") != step.ip || (svc.Spec.Ports[0].NodePort != 0) != step.port {
			t.Errorf("%s: cluster IP %q, node port %d", step.name, svc.Spec.ClusterIP, svc.Spec.Ports[0].NodePort)
		}
		if step.name == "left out" && (svc.Spec.ClusterIP != created.Spec.ClusterIP || svc.Spec.Ports[0].NodePort != 30003) {
			t.Errorf("what a PUT leaves out was allocated anew: %q, %d", svc.Spec.ClusterIP, svc.Spec.Ports[0].NodePort)
		}
		if f.addresses(t) != step.addresses || f.ports(t) != step.ports {
			t.Errorf("%s: %d addresses and %d ports are claimed, want %d and %d", step.name, f.addresses(t), f.ports(t), step.addresses, step.ports)
		}
	}
}

// TestServersOfOneStoreShareTheRange fills the range through two servers at
// once: each address and port is given once, and then there are no more.
func TestServersOfOneStoreShareTheRange(t *testing.T) {
	a := newFixture(t)
	servers := []*fixture{a, newFixtureOver(t, a.store)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	ips, ports := map[string]int{}, map[int32]int{}
	for i := range freeAddresses {
		wg.Go(func() {
			svc := newService("")
			svc.GenerateName = "s-"
			if i < freePorts {
				svc.Spec.Type = corev1.ServiceTypeNodePort
			}
			result, err := servers[i%2].of(t, "services").Create(t.Context(), "default", svc, registry.WriteOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			got := result.Object.(*corev1.Service)
			mu.Lock()
			defer mu.Unlock()
			ips[got.Spec.ClusterIP]++
			if got.Spec.Ports[0].NodePort != 0 {
				ports[got.Spec.Ports[0].NodePort]++
			}
		})
	}
	wg.Wait()
	if len(ips) != freeAddresses || len(ports) != freePorts {
		t.Errorf("%d addresses and %d ports were given: %v %v", len(ips), len(ports), ips, ports)
	}
	_, err := a.of(t, "services").Create(t.Context(), "default", newService("one-more"), registry.WriteOptions{})
	wantStatus(t, "full range", err, 500, metav1.StatusReasonInternalError, "range is full")
}

// TestClaimsOfCrashedServersAreDropped leaves claims without their Service, as
// a crash between the two writes does.
func TestClaimsOfCrashedServersAreDropped(t *testing.T) {
	f := newFixture(t)
	f.create(t, "ipaddresses", &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.5"},
		Spec:       networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "lost"}},
	})
	claim := `{"namespace":"default","name":"lost","claimed":"` + f.clock.Now().Format(time.RFC3339) + `"}`
	if _, err := f.store.Create(t.Context(), "/registry/ranges/levelwire.io/nodeports/30004", []byte(claim), 0); err != nil {
		t.Fatal(err)
	}
	make := func() error {
		_, err := f.of(t, "services").Create(t.Context(), "default", newService("a", withIP("10.0.0.5"), withNodePort(30004)), registry.WriteOptions{})
		return err
	}
	wantStatus(t, "a claim that may still be used", make(), 422, metav1.StatusReasonInvalid, "already allocated")
	f.clock.Advance(time.Hour)
	if err := make(); err != nil {
		t.Errorf("a claim that no write can use any more is in the way: %v", err)
	}
}

func TestBootstrapTwiceChangesNothing(t *testing.T) {
	f := newFixture(t)
	before, err := f.store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	endpoint := f.endpoint("192.0.2.1:6443")
	if err := f.bootstrap(t, endpoint); err != nil {
		t.Fatal(err)
	}
	if after, err := f.store.Current(t.Context()); err != nil || after != before {
		t.Errorf("the second bootstrap moved the store from %d to %d (%v)", before, after, err)
	}
	other := f.endpoint("192.0.2.2:6443")
	published := func(what string, want int) {
		t.Helper()
		slice := f.current(t, "endpointslices", "default", "kubernetes").(*discoveryv1.EndpointSlice)
		endpoints := f.current(t, "endpoints", "default", "kubernetes").(*corev1.Endpoints)
		addresses := 0
		for _, subset := range endpoints.Subsets {
			addresses += len(subset.Addresses)
		}
		if len(slice.Endpoints) != want || addresses != want {
			t.Errorf("%s: %d in the slice, %d in the endpoints, want %d", what, len(slice.Endpoints), addresses, want)
		}
	}
	if err := f.bootstrap(t, other); err != nil {
		t.Fatal(err)
	}
	published("two servers", 2)
	for _, stopped := range []*bootstrap.Endpoint{endpoint, other} {
		if err := stopped.Withdraw(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	published("none", 0)
	if err := f.bootstrap(t, other); err != nil {
		t.Fatal(err)
	}
	published("a server whose start was not done when it stopped", 0)
	if ip := f.current(t, "services", "default", "kubernetes").(*corev1.Service).Spec.ClusterIP; ip != "10.0.0.1" {
		t.Errorf("default/kubernetes is at %s", ip)
	}
}

// current reads an object through an update that changes nothing.
func (f *fixture) current(t *testing.T, plural, namespace, name string) resource.Object {
	t.Helper()
	result, err := f.of(t, plural).Update(t.Context(), namespace, name, changing(func(resource.Object) {}), registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return result.Object
}

func TestNewServicesNeedsRoom(t *testing.T) {
	f := newFixture(t)
	if _, err := service.New(f.Set, service.Options{CIDR: netip.MustParsePrefix("10.0.0.0/31")}); err == nil {
		t.Error("a range of two addresses was accepted")
	}
	services, err := service.New(f.Set, service.Options{})
	if err != nil || services.FirstIP().String() != "10.96.0.1" {
		t.Errorf("default range begins at %v, %v", services.FirstIP(), err)
	}
}
