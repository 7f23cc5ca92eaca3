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
	slices   map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice // by service, then slice name
	rules    map[Frontend]Rule
	// byService says which frontends to drop when a service changes.
	byService map[types.NamespacedName][]Frontend
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		services:  map[types.NamespacedName]*corev1.Service{},
		slices:    map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice{},
		rules:     map[Frontend]Rule{},
		byService: map[types.NamespacedName][]Frontend{},
	}
}

// Lookup returns the rule for a frontend.
func (t *Table) Lookup(f Frontend) (Rule, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rule, ok := t.rules[f]
	rule.Backends = slices.Clone(rule.Backends)
	return rule, ok
}

// Rules returns all rules, sorted by service, port and address.
func (t *Table) Rules() []Rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	rules := make([]Rule, 0, len(t.rules))
	for _, rule := range t.rules {
		rule.Backends = slices.Clone(rule.Backends)
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Service.String(), b.Service.String()), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Address, b.Address))
	})
	return rules
}

// SetService records a service's present state; RemoveService its end.
func (t *Table) SetService(service *corev1.Service) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
	t.services[name] = service
	t.rebuild(name)
}

// RemoveService forgets a service and its rules.
func (t *Table) RemoveService(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.services, name)
	t.rebuild(name)
}

// SetSlice records the present state of an EndpointSlice. One whose label
// names no service is ignored.
func (t *Table) SetSlice(slice *discoveryv1.EndpointSlice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	service := serviceOf(slice)
	if t.slices[service] == nil {
		t.slices[service] = map[string]*discoveryv1.EndpointSlice{}
	}
	t.slices[service][slice.Name] = slice
	t.rebuild(service)
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
	t.rebuild(service)
}

func serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

// rebuild makes one service's rules anew; its cost is that service's alone.
func (t *Table) rebuild(name types.NamespacedName) {
	for _, frontend := range t.byService[name] {
		if t.rules[frontend].Service == name {
			delete(t.rules, frontend)
		}
	}
	delete(t.byService, name)
	service := t.services[name]
	if service == nil {
		return
	}
	for _, port := range service.Spec.Ports {
		backends := t.backends(name, port)
		for _, frontend := range frontends(service, port) {
			t.rules[frontend] = Rule{Frontend: frontend, Service: name, PortName: port.Name, Backends: backends}
			t.byService[name] = append(t.byService[name], frontend)
		}
	}
}

// nodePortAddress stands for every address of the node.
const nodePortAddress = "0.0.0.0"

func frontends(service *corev1.Service, port corev1.ServicePort) []Frontend {
	var found []Frontend
	addresses := slices.Concat(service.Spec.ClusterIPs, service.Spec.ExternalIPs)
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		addresses = append(addresses, ingress.IP)
	}
	for _, address := range addresses {
		if _, err := netip.ParseAddr(address); err == nil { // not "None" nor ""
			found = append(found, Frontend{address, port.Port, port.Protocol})
		}
	}
	if port.NodePort != 0 {
		found = append(found, Frontend{nodePortAddress, port.NodePort, port.Protocol})
	}
	return found
}

func (t *Table) backends(service types.NamespacedName, port corev1.ServicePort) []string {
	var found []string
	for _, slice := range t.slices[service] {
		number, ok := portNumber(slice, port)
		if !ok {
			continue
		}
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			for _, address := range endpoint.Addresses {
				// Slices of type FQDN hold names: nothing to forward to.
				if ip, err := netip.ParseAddr(address); err == nil {
					found = append(found, netip.AddrPortFrom(ip, uint16(number)).String())
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func portNumber(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) (int32, bool) {
	for _, p := range slice.Ports {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		if name == port.Name && p.Port != nil {
			return *p.Port, true
		}
	}
	return 0, false
}

// String formats the rule as one line.
func (r Rule) String() string {
	backends := "no endpoints"
	if len(r.Backends) > 0 {
		backends = strings.Join(r.Backends, ", ")
	}
	return fmt.Sprintf("%s %s:%d/%s -> %s", r.Service, r.Address, r.Port, r.Protocol, backends)
}
