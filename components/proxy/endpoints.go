package proxy

import (
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// serviceEndpoints are the addresses behind a service. They are read once for all of its ports.
type serviceEndpoints struct {
	byPort    map[string][]portEndpoints // by the port's name
	addresses int                        // of all slices
}

// portEndpoints are the addresses of a slice, and what number a port has there.
type portEndpoints struct {
	number    uint16
	addresses []netip.Addr
}

func (t *Table) endpointsOf(service types.NamespacedName) serviceEndpoints {
	e := serviceEndpoints{byPort: map[string][]portEndpoints{}}
	for _, slice := range t.slices[service] {
		addresses := readyAddresses(slice)
		e.addresses += len(addresses)
		for name, number := range numbersOf(slice) {
			e.byPort[name] = append(e.byPort[name], portEndpoints{uint16(number), addresses})
		}
	}
	return e
}

// of returns the backends of a port, sorted.
func (e *serviceEndpoints) of(port string) []string {
	var found []string
	for _, p := range e.byPort[port] {
		for _, ip := range p.addresses {
			found = append(found, netip.AddrPortFrom(ip, p.number).String())
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func readyAddresses(slice *discoveryv1.EndpointSlice) (found []netip.Addr) {
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
			continue
		}
		for _, address := range endpoint.Addresses {
			// Slices of type FQDN hold names: nothing to forward to.
			if ip, err := netip.ParseAddr(address); err == nil {
				found = append(found, ip)
			}
		}
	}
	return found
}

// numbersOf returns the ports of a slice by their names. The first one of a name counts.
func numbersOf(slice *discoveryv1.EndpointSlice) map[string]int32 {
	numbers := map[string]int32{}
	for _, p := range slice.Ports {
		name := ""
		if p.Name != nil {
			name = *p.Name
		}
		if _, ok := numbers[name]; !ok && p.Port != nil {
			numbers[name] = *p.Port
		}
	}
	return numbers
}
