package endpointslicemirroring

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The types of the API that this controller reads, which is deprecated.
type (
	legacyEndpoints = corev1.Endpoints       //nolint:staticcheck // They are what is mirrored.
	legacySubset    = corev1.EndpointSubset  //nolint:staticcheck // As above.
	legacyAddress   = corev1.EndpointAddress //nolint:staticcheck // As above.
	legacyPort      = corev1.EndpointPort    //nolint:staticcheck // As above.
)

// visitsMost bounds the addresses that are looked at for one object. An object of 1.5 MiB lists fewer than 100,000, but
// subsets that share their ports in many ways would have each of them looked at thousands of times.
const visitsMost = 200_000

// offer is addresses and the ports that all of them have. Of one object, no two offers share a port unless their
// addresses, or the readiness of one, differ.
type offer struct {
	ports   []port // sorted
	members []member
}

// port is a legacyPort that can be compared. The zero port stands for a subset without ports.
type port struct {
	name        string
	number      int32
	protocol    corev1.Protocol
	appProtocol string
}

func portOf(p *legacyPort) port {
	of := port{name: p.Name, number: p.Port, protocol: p.Protocol}
	if p.AppProtocol != nil {
		of.appProtocol = *p.AppProtocol
	}
	return of
}

func comparePorts(a, b port) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.number, b.number), cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.appProtocol, b.appProtocol))
}

// member is an address of a subset, by its place in an addressTable.
type member struct {
	place int
	ready bool
}

// addressTable has the addresses of an object, each one time and sorted, and the members of each of its subsets.
type addressTable struct {
	addresses []*legacyAddress
	members   [][]member
}

// identity is by what addresses are told apart: pods of the host network share its IP.
type identity struct {
	ip  string
	uid types.UID
}

func identityOf(a *legacyAddress) identity {
	id := identity{ip: a.IP}
	if a.TargetRef != nil {
		id.uid = a.TargetRef.UID
	}
	return id
}

func tableOf(subsets []legacySubset) (t addressTable) {
	first := map[identity]*legacyAddress{}
	for i := range subsets {
		for _, list := range [][]legacyAddress{subsets[i].Addresses, subsets[i].NotReadyAddresses} {
			for j := range list {
				if id := identityOf(&list[j]); first[id] == nil {
					first[id] = &list[j]
				}
			}
		}
	}
	places := make(map[identity]int, len(first))
	for place, id := range slices.SortedFunc(maps.Keys(first), func(a, b identity) int { return cmp.Or(cmp.Compare(a.ip, b.ip), cmp.Compare(a.uid, b.uid)) }) {
		places[id] = place
		t.addresses = append(t.addresses, first[id])
	}
	for i := range subsets {
		var members []member
		for j := range subsets[i].Addresses {
			members = append(members, member{places[identityOf(&subsets[i].Addresses[j])], true})
		}
		for j := range subsets[i].NotReadyAddresses {
			members = append(members, member{places[identityOf(&subsets[i].NotReadyAddresses[j])], false})
		}
		t.members = append(t.members, union(members))
	}
	return t
}

// union sorts members and keeps each address one time. One that is ready in one place and not in another is not.
func union(members []member) []member {
	slices.SortFunc(members, func(a, b member) int {
		if a.place == b.place && a.ready != b.ready {
			if b.ready {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.place, b.place)
	})
	return slices.CompactFunc(members, func(a, b member) bool { return a.place == b.place })
}

// of returns the members of several subsets together.
func (t *addressTable) of(subsets []int) []member {
	if len(subsets) == 1 {
		return t.members[subsets[0]]
	}
	var all []member
	for _, i := range subsets {
		all = append(all, t.members[i]...)
	}
	return union(all)
}

// visits is how many members of looks at.
func (t *addressTable) visits(subsets []int) (n int) {
	for _, i := range subsets {
		n += len(t.members[i])
	}
	return n
}

// portSet is ports that the same subsets have.
type portSet struct {
	subsets []int
	ports   []port // sorted
}

func portSetsOf(subsets []legacySubset) []*portSet {
	having := map[port][]int{}
	add := func(p port, i int) {
		if of := having[p]; len(of) == 0 || of[len(of)-1] != i {
			having[p] = append(of, i)
		}
	}
	for i := range subsets {
		if len(subsets[i].Ports) == 0 {
			add(port{}, i)
		}
		for j := range subsets[i].Ports {
			add(portOf(&subsets[i].Ports[j]), i)
		}
	}
	sets := map[string]*portSet{}
	for _, p := range slices.SortedFunc(maps.Keys(having), comparePorts) {
		key := fmt.Sprint(having[p])
		if sets[key] == nil {
			sets[key] = &portSet{subsets: having[p]}
		}
		sets[key].ports = append(sets[key].ports, p)
	}
	return slices.SortedFunc(maps.Values(sets), func(a, b *portSet) int { return comparePorts(a.ports[0], b.ports[0]) })
}

// offersOf brings the subsets of an object into the one form that all ways to write the same have in common: ports
// that the same addresses have come together. skipped counts addresses that were not looked at: see visitsMost.
//
// Ports of one name stay apart, since no EndpointSlice may have two. Kubernetes' controller puts them together, and
// then tries in vain to write them.
func offersOf(subsets []legacySubset) (t addressTable, offers []*offer, skipped int) {
	t = tableOf(subsets)
	type key struct {
		addresses [sha256.Size]byte
		nth       int // of the ports of a name
	}
	type named struct {
		addresses [sha256.Size]byte
		name      string
	}
	byKey, times, visited := map[key]*offer{}, map[named]int{}, 0
	for _, set := range portSetsOf(subsets) {
		visits := t.visits(set.subsets)
		if visited += visits; visited > visitsMost {
			skipped += visits
			continue
		}
		members := t.of(set.subsets)
		addresses := sumOf(members)
		for _, p := range set.ports {
			k := key{addresses: addresses}
			if p != (port{}) {
				k.nth = times[named{addresses, p.name}]
				times[named{addresses, p.name}]++
			}
			o := byKey[k]
			if o == nil {
				o = &offer{members: members}
				byKey[k] = o
				offers = append(offers, o)
			}
			if p != (port{}) {
				o.ports = append(o.ports, p)
			}
		}
	}
	for _, o := range offers {
		slices.SortFunc(o.ports, comparePorts)
	}
	return t, offers, skipped
}

// sumOf is the same for the same members.
func sumOf(members []member) [sha256.Size]byte {
	var b []byte
	for _, m := range members {
		n := uint64(m.place) << 1
		if m.ready {
			n |= 1
		}
		b = binary.AppendUvarint(b, n)
	}
	return sha256.Sum256(b)
}
