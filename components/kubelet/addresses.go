package kubelet

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// subnetFor picks one of the 16,384 /24 networks below 10.64.0.0/10 by the
// node's name. Two nodes may draw the same one: nothing is routed there.
func subnetFor(node string) netip.Prefix {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node))
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], 10<<24|64<<16|hash.Sum32()%(1<<14)<<8)
	return netip.PrefixFrom(netip.AddrFrom4(ip), 24)
}

// addresses hands out the addresses of a network, one per pod. It is safe for
// concurrent use.
type addresses struct {
	mu      sync.Mutex
	network netip.Prefix
	next    netip.Addr
	byPod   map[types.UID]netip.Addr
	taken   map[netip.Addr]types.UID
}

func newAddresses(network netip.Prefix) *addresses {
	a := &addresses{network: network.Masked(), byPod: map[types.UID]netip.Addr{}, taken: map[netip.Addr]types.UID{}}
	a.next = a.first()
	return a
}

// first leaves out the network's own address and the node's.
func (a *addresses) first() netip.Addr { return a.network.Addr().Next().Next() }

// assign returns the pod's address, a new one the first time. ok is false if
// none is free.
func (a *addresses) assign(pod types.UID) (ip netip.Addr, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := a.byPod[pod]; ok {
		return ip, true
	}
	for start := a.next; ; {
		ip := a.next
		a.next = ip.Next()
		if !a.network.Contains(a.next) {
			a.next = a.first()
		}
		if _, used := a.taken[ip]; !used {
			a.byPod[pod], a.taken[ip] = ip, pod
			return ip, true
		}
		if a.next == start {
			return netip.Addr{}, false
		}
	}
}

// claim notes an address that a pod has from before a restart.
func (a *addresses) claim(pod types.UID, text string) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return // not one of ours; the pod keeps showing it
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, used := a.taken[ip]; !used {
		a.byPod[pod], a.taken[ip] = ip, pod
	}
}

// release frees a pod's address.
func (a *addresses) release(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := a.byPod[pod]; ok {
		delete(a.byPod, pod)
		delete(a.taken, ip)
	}
}
