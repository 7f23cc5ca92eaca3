package proxy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Frontend is where a service is reached.
type Frontend struct {
	Address  string
	Port     int32
	Protocol corev1.Protocol
}

// Rule is one line of the table. Backends are "address:port", sorted.
type Rule struct {
	Frontend
	Service  types.NamespacedName
	PortName string
	Backends []string
}

// Table maps frontends to backends. It is safe for concurrent use.
type Table struct {
	mu       sync.Mutex
	services map[types.NamespacedName]*corev1.Service
	slices   map[types.NamespacedName]map[string]*sliceEndpoints // by service, then slice name
	rules    map[Frontend]Rule                                   // without backends
	// backends of services, by the names of their ports. See backendsOf.
	backends map[types.NamespacedName]map[string][]string
	// byService says which frontends to drop when a service changes.
	byService map[types.NamespacedName][]Frontend
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		services:  map[types.NamespacedName]*corev1.Service{},
		slices:    map[types.NamespacedName]map[string]*sliceEndpoints{},
		rules:     map[Frontend]Rule{},
		backends:  map[types.NamespacedName]map[string][]string{},
		byService: map[types.NamespacedName][]Frontend{},
	}
}

// Lookup returns the rule for a frontend.
func (t *Table) Lookup(f Frontend) (Rule, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rule, ok := t.rules[f]
	if ok {
		rule.Backends = slices.Clone(t.backendsOf(rule.Service, rule.PortName))
	}
	return rule, ok
}

// Rules returns all rules, sorted by service, port and address.
func (t *Table) Rules() []Rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	rules := make([]Rule, 0, len(t.rules))
	for _, rule := range t.rules {
		rule.Backends = slices.Clone(t.backendsOf(rule.Service, rule.PortName))
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Service.String(), b.Service.String()), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Address, b.Address))
	})
	return rules
}

// SetService records a service's present state; RemoveService its end. The error is that the service is too large to have rules.
func (t *Table) SetService(service *corev1.Service) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
	t.services[name] = service
	return t.rebuild(name)
}

// RemoveService forgets a service and its rules.
func (t *Table) RemoveService(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.services, name)
	_ = t.rebuild(name) // into nothing
}

// SetSlice records the present state of an EndpointSlice. One whose label
// names no service is ignored. The error is that the service is too large to have rules.
func (t *Table) SetSlice(slice *discoveryv1.EndpointSlice) error {
	service, endpoints := serviceOf(slice), endpointsIn(slice)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slices[service] == nil {
		t.slices[service] = map[string]*sliceEndpoints{}
	}
	t.slices[service][slice.Name] = endpoints
	return t.rebuild(service)
}

// RemoveSlice forgets an EndpointSlice.
func (t *Table) RemoveSlice(slice *discoveryv1.EndpointSlice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	service := serviceOf(slice)
	delete(t.slices[service], slice.Name)
	if len(t.slices[service]) == 0 {
		delete(t.slices, service)
	}
	_ = t.rebuild(service) // what is too large was said when it became so
}

func serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

// The most rules and backends of a service. It has a rule for each of its ports at each of its addresses, and backends for
// each of its ports at each of its endpoints: objects of 1 MB could ask for more than any memory holds.
const (
	maxRules    = 10_000
	maxBackends = 1_000_000
)

// rebuild makes one service's rules anew; its cost is that service's alone. One that is too large has none.
func (t *Table) rebuild(name types.NamespacedName) error {
	for _, frontend := range t.byService[name] {
		if t.rules[frontend].Service == name {
			delete(t.rules, frontend)
		}
	}
	delete(t.byService, name)
	delete(t.backends, name)
	service := t.services[name]
	if service == nil {
		return nil
	}
	ports, addresses := len(service.Spec.Ports), addressesOf(service)
	if n := ports * (len(addresses) + 1); n > maxRules {
		return fmt.Errorf("service %s has no rules: %d ports at %d addresses are more than %d", name, ports, len(addresses), maxRules)
	}
	if behind := t.addressesBehind(name); ports*behind > maxBackends {
		return fmt.Errorf("service %s has no rules: %d ports at %d endpoints are more than %d", name, ports, behind, maxBackends)
	}
	for _, port := range service.Spec.Ports {
		for _, frontend := range frontends(addresses, port) {
			t.rules[frontend] = Rule{Frontend: frontend, Service: name, PortName: port.Name}
			t.byService[name] = append(t.byService[name], frontend)
		}
	}
	return nil
}

// nodePortAddress stands for every address of the node.
const nodePortAddress = "0.0.0.0"

// addressesOf returns the addresses of a service.
func addressesOf(service *corev1.Service) (found []string) {
	addresses := slices.Concat(service.Spec.ClusterIPs, service.Spec.ExternalIPs)
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		addresses = append(addresses, ingress.IP)
	}
	for _, address := range addresses {
		if _, err := netip.ParseAddr(address); err == nil { // not "None" nor ""
			found = append(found, address)
		}
	}
	return found
}

func frontends(addresses []string, port corev1.ServicePort) []Frontend {
	var found []Frontend
	for _, address := range addresses {
		found = append(found, Frontend{address, port.Port, port.Protocol})
	}
	if port.NodePort != 0 {
		found = append(found, Frontend{nodePortAddress, port.NodePort, port.Protocol})
	}
	return found
}

// String formats the rule as one line.
func (r Rule) String() string {
	backends := "no endpoints"
	if len(r.Backends) > 0 {
		backends = strings.Join(r.Backends, ", ")
	}
	return fmt.Sprintf("%s %s:%d/%s -> %s", r.Service, r.Address, r.Port, r.Protocol, backends)
}
