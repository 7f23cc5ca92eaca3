package endpointslicemirroring

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// portsOf makes ports of words such as web/80 or, without a name, 80.
func portsOf(words ...string) (ports []legacyPort) {
	for _, word := range words {
		p := legacyPort{Protocol: corev1.ProtocolTCP}
		name, number, named := strings.Cut(word, "/")
		if !named {
			name, number = "", word
		}
		p.Name = name
		if _, err := fmt.Sscan(number, &p.Port); err != nil {
			panic(err)
		}
		ports = append(ports, p)
	}
	return ports
}

func addressesOf(ips ...string) (addresses []legacyAddress) {
	for _, ip := range ips {
		addresses = append(addresses, legacyAddress{IP: ip})
	}
	return addresses
}

func podAddress(ip, pod string) legacyAddress {
	return legacyAddress{IP: ip, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: pod, UID: types.UID("uid-" + pod)}}
}

// describe writes groups as lines such as "IPv4 web/80: 10.0.0.1 10.0.0.2(not ready)".
func describe(groups []group) (lines []string) {
	for _, g := range groups {
		var ports, endpoints []string
		for _, p := range g.ports {
			ports = append(ports, strings.TrimPrefix(fmt.Sprintf("%s/%d", *p.Name, *p.Port), "/"))
		}
		for _, e := range g.endpoints {
			text := strings.Join(e.Addresses, ",")
			if e.TargetRef != nil {
				text += "=" + e.TargetRef.Name
			}
			if !*e.Conditions.Ready {
				text += "(not ready)"
			}
			endpoints = append(endpoints, text)
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", g.family, strings.Join(ports, ","), strings.Join(endpoints, " ")))
	}
	return lines
}

// TestGroups: an address is in one slice for each list of ports and each family, however the subsets say it.
func TestGroups(t *testing.T) {
	for _, test := range []struct {
		name             string
		subsets          []legacySubset
		want             []string
		invalid, skipped int
	}{
		{name: "nothing"},
		{name: "a subset without addresses", subsets: []legacySubset{{Ports: portsOf("80")}}},
		{
			name: "ready and not",
			subsets: []legacySubset{{
				Ports: portsOf("web/80", "admin/81"), Addresses: addressesOf("10.0.0.2", "10.0.0.1"), NotReadyAddresses: addressesOf("10.0.0.3"),
			}},
			want: []string{"IPv4 admin/81,web/80: 10.0.0.1 10.0.0.2 10.0.0.3(not ready)"},
		},
		{
			name:    "both families",
			subsets: []legacySubset{{Ports: portsOf("80"), Addresses: addressesOf("10.0.0.1", "fd00::1")}},
			want:    []string{"IPv4 80: 10.0.0.1", "IPv6 80: fd00::1"},
		},
		{
			name:    "no ports",
			subsets: []legacySubset{{Addresses: addressesOf("10.0.0.1")}},
			want:    []string{"IPv4 : 10.0.0.1"},
		},
		{
			name: "subsets of the same addresses",
			subsets: []legacySubset{
				{Ports: portsOf("web/80"), Addresses: addressesOf("10.0.0.1", "10.0.0.2")}, {Ports: portsOf("admin/81"), Addresses: addressesOf("10.0.0.2", "10.0.0.1")},
			},
			want: []string{"IPv4 admin/81,web/80: 10.0.0.1 10.0.0.2"},
		},
		{
			name: "subsets of the same ports",
			subsets: []legacySubset{
				{Ports: portsOf("web/80"), Addresses: addressesOf("10.0.0.1")}, {Ports: portsOf("web/80"), Addresses: addressesOf("10.0.0.2")},
			},
			want: []string{"IPv4 web/80: 10.0.0.1 10.0.0.2"},
		},
		{
			name: "subsets that share some of both",
			subsets: []legacySubset{
				{Ports: portsOf("web/80", "metrics/90"), Addresses: addressesOf("10.0.0.1")}, {Ports: portsOf("metrics/90"), Addresses: addressesOf("10.0.0.2")},
			},
			want: []string{"IPv4 metrics/90: 10.0.0.1 10.0.0.2", "IPv4 web/80: 10.0.0.1"},
		},
		{
			name: "subsets of one address, of which one is not ready",
			subsets: []legacySubset{
				{Ports: portsOf("web/80"), Addresses: addressesOf("10.0.0.1")}, {Ports: portsOf("admin/81"), NotReadyAddresses: addressesOf("10.0.0.1")},
			},
			want: []string{"IPv4 admin/81: 10.0.0.1(not ready)", "IPv4 web/80: 10.0.0.1"},
		},
		{
			name: "a port of an address that is ready and not",
			subsets: []legacySubset{
				{Ports: portsOf("web/80"), Addresses: addressesOf("10.0.0.1")}, {Ports: portsOf("web/80"), NotReadyAddresses: addressesOf("10.0.0.1")},
			},
			want: []string{"IPv4 web/80: 10.0.0.1(not ready)"},
		},
		{
			name: "two ports of one name, which no slice may have",
			subsets: []legacySubset{
				{Ports: portsOf("80"), Addresses: addressesOf("10.0.0.1")}, {Ports: portsOf("81"), Addresses: addressesOf("10.0.0.1")},
			},
			want: []string{"IPv4 80: 10.0.0.1", "IPv4 81: 10.0.0.1"},
		},
		{
			name:    "pods of one host",
			subsets: []legacySubset{{Ports: portsOf("80"), Addresses: []legacyAddress{podAddress("10.0.0.1", "b"), podAddress("10.0.0.1", "a"), podAddress("10.0.0.1", "b")}}},
			want:    []string{"IPv4 80: 10.0.0.1=a 10.0.0.1=b"},
		},
		{
			name:    "addresses in forms of old, and none",
			subsets: []legacySubset{{Ports: portsOf("80"), Addresses: addressesOf("010.000.0.1", "::ffff:10.0.0.2", "FD00:0::1", "example")}},
			want:    []string{"IPv4 80: 10.0.0.1 10.0.0.2", "IPv6 80: fd00::1"}, invalid: 1, skipped: 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 2 { // in either order of the subsets
				d := desiredOf(test.subsets)
				if got := describe(d.groups); !slices.Equal(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
				if d.invalid != test.invalid || d.skipped != test.skipped {
					t.Errorf("%d invalid, %d skipped", d.invalid, d.skipped)
				}
				slices.Reverse(test.subsets)
			}
		})
	}
}

// TestWhatAnEndpointHas: what an address says is in its endpoint, and what it does not say is left out.
func TestWhatAnEndpointHas(t *testing.T) {
	node, app := "node-1", "http"
	address := podAddress("10.0.0.1", "p")
	address.NodeName, address.Hostname = &node, "host"
	ports := portsOf("web/80")
	ports[0].AppProtocol = &app
	d := desiredOf([]legacySubset{{Ports: ports, Addresses: []legacyAddress{address}}})
	if len(d.groups) != 1 || len(d.groups[0].endpoints) != 1 {
		t.Fatalf("%q", describe(d.groups))
	}
	e := d.groups[0].endpoints[0]
	if *e.NodeName != node || *e.Hostname != "host" || *e.TargetRef != *address.TargetRef || e.Conditions.Serving != nil || e.Conditions.Terminating != nil || e.Zone != nil {
		t.Errorf("%+v", e)
	}
	if p := d.groups[0].ports[0]; *p.AppProtocol != app || *p.Protocol != corev1.ProtocolTCP {
		t.Errorf("%+v", p)
	}
}

func manyAddresses(n int) (addresses []legacyAddress) {
	for i := range n {
		addresses = append(addresses, legacyAddress{IP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)})
	}
	return addresses
}

// TestAddressesBeyondTheMost: of a subset, 1,000 addresses are mirrored, those that are ready first.
func TestAddressesBeyondTheMost(t *testing.T) {
	all := manyAddresses(1500)
	d := desiredOf([]legacySubset{{Ports: portsOf("80"), NotReadyAddresses: all[:900], Addresses: all[900:]}})
	if len(d.groups) != 1 || len(d.groups[0].endpoints) != 1000 || d.skipped != 500 || d.invalid != 0 {
		t.Fatalf("%d groups, %d skipped, %d invalid", len(d.groups), d.skipped, d.invalid)
	}
	ready := 0
	for _, e := range d.groups[0].endpoints {
		if *e.Conditions.Ready {
			ready++
		}
	}
	if ready != 600 {
		t.Errorf("%d of 600 that are ready", ready)
	}
}

// TestSubsetsThatShareInManyWays: an object whose ports are each in other subsets is worked through within bounds. Without
// them, these 34 subsets would be 5,984 slices of 1,000 endpoints.
func TestSubsetsThatShareInManyWays(t *testing.T) {
	const many = 34
	subsets, all, number := make([]legacySubset, many), manyAddresses(many*1000), 0
	for i := range subsets {
		subsets[i].Addresses = all[i*1000 : (i+1)*1000]
		for j := range i {
			for k := range j {
				number++
				ports := portsOf(fmt.Sprintf("p%d/%d", number, number))
				subsets[i].Ports, subsets[j].Ports, subsets[k].Ports = append(subsets[i].Ports, ports...), append(subsets[j].Ports, ports...), append(subsets[k].Ports, ports...)
			}
		}
	}
	d := desiredOf(subsets)
	if most := visitsMost / 3000; len(d.groups) == 0 || len(d.groups) > most {
		t.Errorf("%d groups, and there may be %d", len(d.groups), most)
	}
	if want := number*3000 - len(d.groups)*1000; d.skipped != want {
		t.Errorf("%d skipped, want %d", d.skipped, want)
	}
}

// TestGroupsAreRepeatable: the same object leads to the same groups, so that nothing is written again.
func TestGroupsAreRepeatable(t *testing.T) {
	subsets := []legacySubset{
		{Ports: portsOf("a/1", "b/2", "c/3"), Addresses: addressesOf("10.0.0.1", "fd00::1", "10.0.0.2")},
		{Ports: portsOf("d/4", "c/3"), Addresses: addressesOf("10.0.0.1"), NotReadyAddresses: addressesOf("10.0.0.3")},
	}
	want := describe(desiredOf(subsets).groups)
	for range 20 {
		if got := describe(desiredOf(subsets).groups); !slices.Equal(got, want) {
			t.Fatalf("%q, and then %q", want, got)
		}
	}
	if id := groupID(discoveryv1.AddressTypeIPv4, nil); id == groupID(discoveryv1.AddressTypeIPv6, nil) {
		t.Errorf("both families have the id %q", id)
	}
}
