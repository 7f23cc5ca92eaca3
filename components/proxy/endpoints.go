package proxy

import (
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sliceEndpoints are the ready addresses of a slice, and what numbers the ports have there, by their names. They are read once,
// and not again whenever another slice of the service changes.
type sliceEndpoints struct {
	numbers   map[string]int32
	addresses []netip.Addr
}

func endpointsIn(slice *discoveryv1.EndpointSlice) *sliceEndpoints {
	return &sliceEndpoints{numbers: numbersOf(slice), addresses: readyAddresses(slice)}
}

// addressesBehind counts the addresses of all slices of a service.
func (t *Table) addressesBehind(service types.NamespacedName) (n int) {
	for _, slice := range t.slices[service] {
		n += len(slice.addresses)
	}
	return n
}

// backendsOf returns what is behind the port of a service, sorted. It is made when it is first asked for: a service whose
// slices come one after the other is not made anew with each.
func (t *Table) backendsOf(service types.NamespacedName, port string) []string {
	if found, ok := t.backends[service][port]; ok {
		return found
	}
	var found []string
	for _, slice := range t.slices[service] {
		if number, ok := slice.numbers[port]; ok {
			for _, ip := range slice.addresses {
				found = append(found, netip.AddrPortFrom(ip, uint16(number)).String())
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if t.backends[service] == nil {
		t.backends[service] = map[string][]string{}
	}
	t.backends[service][port] = found
	return found
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
