package main

import (
	"net/netip"
	"testing"
)

// TestNodeAddresses: no two nodes share an address or a pod network, and none has one of
// Services'.
func TestNodeAddresses(t *testing.T) {
	services := netip.MustParsePrefix("10.96.0.0/16")
	taken := map[any]int{}
	for i := range maxNodes {
		network, address := podNetwork(i), nodeAddress(i)
		if network.Overlaps(services) || network.Contains(address) {
			t.Errorf("node %d has the network %s and the address %s", i, network, address)
		}
		for _, of := range []any{network, address} {
			if other, twice := taken[of]; twice {
				t.Fatalf("nodes %d and %d have %v", other, i, of)
			}
			taken[of] = i
		}
	}
	if first := podNetwork(0).String() + " " + nodeAddress(0).String(); first != "10.244.1.0/24 10.0.0.1" {
		t.Errorf("the first node has %s", first)
	}
}
