package proxy

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func service(name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}, Ports: ports},
	}
}

func endpoints(name, service, portName string, port int32, ready bool, addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Ports:      []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	return slice
}

func tcp(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP}
}

func backends(t *testing.T, table *Table, ip string, port int32) []string {
	t.Helper()
	rule, ok := table.Lookup(Frontend{ip, port, corev1.ProtocolTCP})
	if !ok {
		t.Fatalf("no rule for %s:%d in %v", ip, port, table.Rules())
	}
	return rule.Backends
}

func TestTableJoinsSlicesInAnyOrder(t *testing.T) {
	table := NewTable()
	_ = table.SetSlice(endpoints("web-b", "web", "http", 8080, true, "10.0.0.3"))
	_ = table.SetService(service("web", "10.96.0.7", tcp("http", 80)))
	_ = table.SetSlice(endpoints("web-a", "web", "http", 8080, true, "10.0.0.2", "10.0.0.1"))
	_ = table.SetSlice(endpoints("web-c", "web", "http", 8080, false, "10.0.0.9"))
	_ = table.SetSlice(endpoints("other", "db", "http", 8080, true, "10.0.0.8"))

	want := []string{"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"}
	if got := backends(t, table, "10.96.0.7", 80); !slices.Equal(got, want) {
		t.Errorf("backends %v, want %v", got, want)
	}
	table.RemoveSlice(endpoints("web-a", "web", "http", 8080, true))
	if got := backends(t, table, "10.96.0.7", 80); !slices.Equal(got, []string{"10.0.0.3:8080"}) {
		t.Errorf("after a slice went: %v", got)
	}
}

func TestTableFollowsServices(t *testing.T) {
	table := NewTable()
	web := service("web", "10.96.0.7", tcp("http", 80), tcp("admin", 81))
	web.Spec.Ports[0].NodePort = 30080
	_ = table.SetService(web)
	if got := len(table.Rules()); got != 3 {
		t.Fatalf("%d rules, want two ports and a node port: %v", got, table.Rules())
	}
	// A headless service has no frontend.
	_ = table.SetService(service("web", "None", tcp("http", 80)))
	if got := table.Rules(); len(got) != 0 {
		t.Fatalf("rules of a headless service: %v", got)
	}
	_ = table.SetService(service("web", "10.96.0.8", tcp("http", 80)))
	table.RemoveService(types.NamespacedName{Namespace: "shop", Name: "web"})
	if got := table.Rules(); len(got) != 0 {
		t.Fatalf("rules of a deleted service: %v", got)
	}
}

func TestAddressTakenOverByAnotherService(t *testing.T) {
	table := NewTable()
	_ = table.SetService(service("old", "10.96.0.7", tcp("", 80)))
	_ = table.SetService(service("new", "10.96.0.7", tcp("", 80)))
	// The events of two services have no order: the old one's end comes last.
	table.RemoveService(types.NamespacedName{Namespace: "shop", Name: "old"})
	rule, ok := table.Lookup(Frontend{"10.96.0.7", 80, corev1.ProtocolTCP})
	if !ok || rule.Service.Name != "new" {
		t.Fatalf("rule %v, %v; want that of the new service", rule, ok)
	}
}

// TestServicesAreBounded: what takes the product of ports and addresses, or endpoints, has a limit, and says so.
func TestServicesAreBounded(t *testing.T) {
	var ports []corev1.ServicePort
	for i := range 2_000 {
		ports = append(ports, tcp(fmt.Sprint("p", i), int32(i+1)))
	}
	large := service("web", "10.96.0.7", ports...)
	if err := NewTable().SetService(large); err != nil {
		t.Error(err)
	}
	addresses := make([]string, 2_000)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	wide := large.DeepCopy()
	wide.Spec.ExternalIPs = addresses
	table := NewTable()
	err := table.SetService(wide)
	if rules := table.Rules(); err == nil || err.Error() != "service shop/web has no rules: 2000 ports at 2001 addresses are more than 10000" || len(rules) > 0 {
		t.Errorf("%v; %d rules", err, len(rules))
	}
	if err := table.SetService(large); err != nil || len(table.Rules()) != 2_000 {
		t.Errorf("smaller again: %v; %d rules", err, len(table.Rules()))
	}
	err = table.SetSlice(endpoints("web-a", "web", "p7", 8080, true, addresses...))
	if rules := table.Rules(); err == nil || err.Error() != "service shop/web has no rules: 2000 ports at 2000 endpoints are more than 1000000" || len(rules) > 0 {
		t.Errorf("%v; %d rules", err, len(rules))
	}
	table.RemoveSlice(endpoints("web-a", "web", "p7", 8080, true))
	if rules := table.Rules(); len(rules) != 2_000 {
		t.Errorf("without its endpoints: %d rules", len(rules))
	}
}

// TestSlicesAreReadOnce: a change of one slice of a service reads no other, and makes no backends that are not asked for.
func TestSlicesAreReadOnce(t *testing.T) {
	addresses := make([]string, 2_000)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	table := NewTable()
	_ = table.SetService(service("web", "10.96.0.7", tcp("http", 80)))
	for i := range 100 {
		_ = table.SetSlice(endpoints(fmt.Sprint("web-", i), "web", "http", 8080, true, addresses...))
	}
	small := endpoints("web-z", "web", "http", 8080, true, "10.1.0.1")
	if n := testing.AllocsPerRun(10, func() { _ = table.SetSlice(small) }); n > 1000 { // of the whole process; one for each backend were 2,000
		t.Errorf("%v allocations for a slice with one endpoint", n)
	}
	for range 2 {
		if got := backends(t, table, "10.96.0.7", 80); len(got) != len(addresses)+1 {
			t.Errorf("%d backends", len(got))
		}
	}
	table.RemoveSlice(small)
	if got := backends(t, table, "10.96.0.7", 80); len(got) != len(addresses) {
		t.Errorf("%d backends without the last slice", len(got))
	}
}
