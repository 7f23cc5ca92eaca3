package endpointslicemirroring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	netutils "k8s.io/utils/net"
)

// addressesMost is the most addresses of an offer that are mirrored: as many as one EndpointSlice holds.
const addressesMost = 1000

// group is the endpoints that a slice should have: those of one offer and one family of addresses.
type group struct {
	family    discoveryv1.AddressType
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint // sorted by address
}

// id is the same for groups of the same family and ports.
func (g *group) id() string { return groupID(g.family, g.ports) }

// desired is what the slices of an Endpoints object should hold together.
type desired struct {
	groups  []group // sorted, none is empty
	invalid int     // addresses that are no IP addresses
	skipped int     // addresses beyond the bounds, and those that are invalid
}

// desiredOf works out what the slices of an object with these subsets should hold.
func desiredOf(subsets []legacySubset) (d desired) {
	t, offers, skipped := offersOf(subsets)
	d.skipped = skipped
	for _, o := range offers {
		d.add(&t, o)
	}
	slices.SortFunc(d.groups, func(a, b group) int { return cmp.Compare(a.id(), b.id()) })
	return d
}

// target is by what the endpoints of a slice are told apart.
type target struct{ address, hostname, namespace, name string }

func targetOf(e *discoveryv1.Endpoint) target {
	of := target{address: e.Addresses[0]}
	if e.Hostname != nil {
		of.hostname = *e.Hostname
	}
	if e.TargetRef != nil {
		of.namespace, of.name = e.TargetRef.Namespace, e.TargetRef.Name
	}
	return of
}

// add adds the groups of an offer. Of more addresses than are mirrored, those that are ready come first. Of endpoints
// with the same target, the last one stays.
func (d *desired) add(t *addressTable, o *offer) {
	endpoints, added := map[discoveryv1.AddressType]map[target]discoveryv1.Endpoint{}, 0
	for _, ready := range []bool{true, false} {
		for _, m := range o.members {
			if m.ready != ready {
				continue
			}
			if added == addressesMost {
				d.skipped++
				continue
			}
			e, family, ok := endpointOf(t.addresses[m.place], ready)
			if !ok {
				d.invalid++
				d.skipped++
				continue
			}
			added++
			if endpoints[family] == nil {
				endpoints[family] = map[target]discoveryv1.Endpoint{}
			}
			of := targetOf(&e)
			endpoints[family][of] = e
		}
	}
	for family, byTarget := range endpoints {
		g := group{family: family, ports: slicePorts(o.ports)}
		for _, e := range byTarget {
			g.endpoints = append(g.endpoints, e)
		}
		slices.SortFunc(g.endpoints, compareEndpoints)
		d.groups = append(d.groups, g)
	}
}

func compareEndpoints(a, b discoveryv1.Endpoint) int {
	x, y := targetOf(&a), targetOf(&b)
	return cmp.Or(cmp.Compare(x.address, y.address), cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name), cmp.Compare(x.hostname, y.hostname))
}

// endpointOf returns the endpoint of an address and its family. Forms of an IP address that Endpoints may have for the
// sake of old clients, as 010.0.0.1, become the one that EndpointSlices have.
func endpointOf(address *legacyAddress, ready bool) (e discoveryv1.Endpoint, family discoveryv1.AddressType, ok bool) {
	ip := netutils.ParseIPSloppy(address.IP)
	if ip == nil {
		return e, "", false
	}
	family = discoveryv1.AddressTypeIPv4
	if ip.To4() == nil {
		family = discoveryv1.AddressTypeIPv6
	}
	e = discoveryv1.Endpoint{
		Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef: address.TargetRef, NodeName: address.NodeName,
	}
	if address.Hostname != "" {
		e.Hostname = &address.Hostname
	}
	return e, family, true
}

func slicePorts(ports []port) []discoveryv1.EndpointPort {
	list := make([]discoveryv1.EndpointPort, 0, len(ports)) // not nil: null is all ports in EndpointSlices of old
	for _, p := range ports {
		port := discoveryv1.EndpointPort{Name: &p.name, Port: &p.number, Protocol: &p.protocol}
		if p.appProtocol != "" {
			port.AppProtocol = &p.appProtocol
		}
		list = append(list, port)
	}
	return list
}

// groupID is the same for slices of one family and the same ports, in any order.
func groupID(family discoveryv1.AddressType, ports []discoveryv1.EndpointPort) string {
	all := make([]string, 0, len(ports))
	for _, p := range ports {
		all = append(all, fmt.Sprintf("%s/%s/%d/%s;", deref(p.Name), deref(p.Protocol), deref(p.Port), deref(p.AppProtocol)))
	}
	slices.Sort(all)
	return string(family) + ";" + strings.Join(all, "")
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
