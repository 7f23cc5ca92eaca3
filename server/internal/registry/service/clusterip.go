package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// randomTries is how many random addresses or ports are tried before it is read which are free.
const randomTries = 8

// conflictTries is how many of those that are read to be free are tried: others may take them
// meanwhile.
const conflictTries = 32

var (
	errClaimed   = errors.New("provided IP is already allocated")
	errRangeFull = errors.New("range is full")
)

// allocateIPs claims the cluster IP that the Service names, or a free one.
func (a *allocation) allocateIPs(ctx context.Context) error {
	spec := &a.svc.Spec
	if spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	ip := spec.ClusterIP
	if a.old != nil && takesIP(a.old) && len(a.old.Spec.ClusterIPs) > 0 && a.old.Spec.ClusterIPs[0] != ip {
		return nil // validation refuses the change, whether or not the address could be had
	}
	switch {
	case ip == "":
		var err error
		if ip, err = a.claimFreeIP(ctx); err != nil {
			return err
		}
	case !slices.Contains(a.had.ips, ip):
		if err := a.claimNamedIP(ctx, ip); err != nil {
			return err
		}
	}
	spec.ClusterIP, spec.ClusterIPs = ip, []string{ip}
	return nil
}

func (a *allocation) claimNamedIP(ctx context.Context, ip string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.String() != ip {
		return a.invalid(field.Invalid(clusterIPsAt.Index(0), ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
	}
	if !a.allocator.assignable(addr) {
		return a.invalid(field.Invalid(clusterIPsAt, []string{ip},
			fmt.Sprintf("failed to allocate IP %s: the provided IP (%s) is not in the valid range. The range of valid IPs is %s", ip, ip, a.allocator.opts.CIDR)))
	}
	err = errClaimed
	if addr != a.allocator.FirstIP() || a.owner() == APIService { // which may not be there yet, or again
		err = a.claimIP(ctx, addr)
	}
	if errors.Is(err, errClaimed) {
		return a.invalid(field.Invalid(clusterIPsAt, []string{ip}, fmt.Sprintf("failed to allocate IP %s: %v", ip, err)))
	}
	return err
}

// assignable excludes the network's own address and, for IPv4, the broadcast
// address.
func (s *Allocator) assignable(addr netip.Addr) bool {
	if !s.opts.CIDR.Contains(addr) || addr == s.opts.CIDR.Addr() {
		return false
	}
	return addr.Is6() || s.opts.CIDR.Contains(addr.Next())
}

// claimFreeIP tries random addresses first: in a range that is not nearly full, most are free.
// Then it reads which are: a try that fails costs the store as much as a write. The first address
// is for default/kubernetes.
func (a *allocation) claimFreeIP(ctx context.Context) (string, error) {
	addresses, err := a.allocator.addresses()
	if err != nil {
		return "", err
	}
	for range randomTries {
		if addr := a.allocator.randomIP(); a.allocator.isForAll(addr) {
			if err := a.createIP(ctx, addresses, addr); !errors.Is(err, errClaimed) {
				return addr.String(), err
			}
		}
	}
	claimed, err := a.allocator.claimedIPs(ctx, addresses)
	if err != nil {
		return "", err
	}
	for _, addr := range a.allocator.freeIPs(claimed) {
		if err := a.createIP(ctx, addresses, addr); !errors.Is(err, errClaimed) {
			return addr.String(), err
		}
	}
	return a.claimStaleIP(ctx, addresses, claimed)
}

// claimStaleIP looks for an address whose claim is stale, from a random one on: there is no other.
func (a *allocation) claimStaleIP(ctx context.Context, addresses registry.Registry, claimed []netip.Addr) (string, error) {
	look, at := newStaleLook(a.allocator), 0
	if len(claimed) > 0 {
		at = rand.IntN(len(claimed))
	}
	for _, addr := range slices.Concat(claimed[at:], claimed[:at]) {
		if !look.goesOn() {
			break
		}
		if !a.allocator.isForAll(addr) {
			continue
		}
		since, owner, err := a.allocator.ownerOfIP(ctx, addresses, addr)
		if err != nil {
			return "", err
		}
		if !look.suspects(ctx, since, owner, func(c claims) bool { return slices.Contains(c.ips, addr.String()) }) {
			continue
		}
		if err := a.takeOverIP(ctx, addresses, addr); !errors.Is(err, errClaimed) {
			return addr.String(), err
		}
	}
	return "", apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP: %w", errRangeFull))
}

// ownerOfIP returns whose a claim is, and since when; zero values if it has just gone.
func (s *Allocator) ownerOfIP(ctx context.Context, addresses registry.Registry, addr netip.Addr) (since time.Time, owner types.NamespacedName, err error) {
	obj, err := addresses.GetRecent(ctx, "", addr.String())
	if err != nil {
		return since, owner, notFoundIsNil(err)
	}
	if address, ok := obj.(*networkingv1.IPAddress); ok {
		since = address.CreationTimestamp.Time
		if ref := address.Spec.ParentRef; ref != nil {
			owner = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		}
	}
	return since, owner, nil
}

// isForAll reports whether any Service may be given an address.
func (s *Allocator) isForAll(addr netip.Addr) bool { return s.assignable(addr) && addr != s.FirstIP() }

// claimedIPs returns the addresses that have a claim in the cache, or in the store while there is
// no cache.
func (s *Allocator) claimedIPs(ctx context.Context, addresses registry.Registry) ([]netip.Addr, error) {
	var claimed []netip.Addr
	add := func(name string) {
		if addr, err := netip.ParseAddr(name); err == nil {
			claimed = append(claimed, addr)
		}
	}
	if addresses.Cache() != nil {
		snapshot, err := addresses.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		for object := range snapshot.Range("", "") {
			add(object.Attributes.Name)
		}
		return claimed, nil
	}
	prefix := addresses.Resource().Stored().StorePrefix
	err := s.keys(ctx, prefix, storage.ListOptions{Limit: repairPage, KeysOnly: true}, func(kv *storage.KeyValue) error {
		add(strings.TrimPrefix(kv.Key, prefix))
		return nil
	})
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	return claimed, nil
}

// freeIPs returns addresses that are not claimed, the next ones from a random one on: as many as
// are tried, or all that there are.
func (s *Allocator) freeIPs(claimed []netip.Addr) []netip.Addr {
	const notForAll = 3 // the network's own, the first, and the broadcast address
	taken := sets.New(claimed...)
	steps := uint64(len(claimed) + conflictTries + notForAll) // there are so many free ones among these
	if host := s.opts.CIDR.Addr().BitLen() - s.opts.CIDR.Bits(); host < 63 {
		steps = min(steps, uint64(1)<<host)
	}
	var free []netip.Addr
	addr := s.randomIP()
	for ; steps > 0 && len(free) < conflictTries; steps-- {
		if s.isForAll(addr) && !taken.Has(addr) {
			free = append(free, addr)
		}
		if addr = addr.Next(); !s.opts.CIDR.Contains(addr) {
			addr = s.opts.CIDR.Addr()
		}
	}
	return free
}

// randomIP returns a random address of the range, of its first 2^63 at most.
func (s *Allocator) randomIP() netip.Addr {
	host := min(s.opts.CIDR.Addr().BitLen()-s.opts.CIDR.Bits(), 63)
	offset := rand.Uint64N(1 << host)
	bytes := s.opts.CIDR.Addr().AsSlice()
	for i := len(bytes) - 1; i >= 0 && offset > 0; i-- {
		bytes[i] |= byte(offset)
		offset >>= 8
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

// addresses is the registry of the claims of addresses.
func (s *Allocator) addresses() (registry.Registry, error) {
	addresses, ok := s.set.Lookup("networking.k8s.io", "v1", "ipaddresses")
	if !ok {
		return addresses, apierrors.NewInternalError(errors.New("ipaddresses.networking.k8s.io is no longer served"))
	}
	return addresses, nil
}

// claimIP creates the IPAddress, in the place of one that is stale if need be, or fails with errClaimed.
func (a *allocation) claimIP(ctx context.Context, addr netip.Addr) error {
	addresses, err := a.allocator.addresses()
	if err != nil {
		return err
	}
	for _, claim := range []func(context.Context, registry.Registry, netip.Addr) error{a.createIP, a.takeOverIP} {
		if err := claim(ctx, addresses, addr); !errors.Is(err, errClaimed) {
			return err
		}
		if a.shares(addr) {
			if has, err := a.allocator.claimedBy(ctx, addresses, addr.String(), APIService); has || err != nil {
				return err
			}
		}
	}
	return errClaimed
}

// shares reports whether the claim is that of APIService, which is made for it by each server that starts,
// and by each attempt of one: it belongs to all of them, so it may be there already, and stays if one is refused.
func (a *allocation) shares(addr netip.Addr) bool {
	return addr == a.allocator.FirstIP() && a.owner() == APIService
}

// createIP creates the IPAddress, or fails with errClaimed.
func (a *allocation) createIP(ctx context.Context, addresses registry.Registry, addr netip.Addr) error {
	created, err := addresses.Create(ctx, "", newIPAddress(addr, a.owner()), registry.WriteOptions{DryRun: a.q.DryRun, FieldManager: registry.ServerManager, Admitted: true})
	switch {
	case apierrors.IsAlreadyExists(err):
		return errClaimed
	case err == nil && !a.shares(addr):
		a.releaseIfRefused(releaseIP(addresses, created.Object))
	}
	return err
}

// takeOverIP claims an address in the place of a claim, if that is stale. Otherwise it fails with errClaimed.
func (a *allocation) takeOverIP(ctx context.Context, addresses registry.Registry, addr netip.Addr) error {
	address, stale, err := a.allocator.staleIP(ctx, addresses, addr.String())
	switch {
	case apierrors.IsNotFound(err): // it has just gone
	case err != nil:
		return err
	case !stale:
		return errClaimed
	case a.q.DryRun:
		return nil
	default:
		if err := deleteIP(ctx, addresses, address); err != nil {
			return err
		}
	}
	return a.createIP(ctx, addresses, addr)
}

func newIPAddress(addr netip.Addr, owner types.NamespacedName) *networkingv1.IPAddress {
	family := "IPv4"
	if addr.Is6() {
		family = "IPv6"
	}
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: addr.String(), Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: family,
			networkingv1.LabelManagedBy:       "ipallocator.k8s.io",
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{
			Resource: "services", Namespace: owner.Namespace, Name: owner.Name,
		}},
	}
}

// staleIP returns an IPAddress. It is stale if its Service does not exist or does not have
// the address, and if it is so old that no request can still be about to write that
// Service.
func (s *Allocator) staleIP(ctx context.Context, addresses registry.Registry, ip string) (address resource.Object, stale bool, err error) {
	obj, err := addresses.GetFromStore(ctx, "", ip)
	if err != nil {
		return nil, false, err
	}
	claim, ok := obj.(*networkingv1.IPAddress)
	if !ok || s.set.Now().Sub(claim.CreationTimestamp.Time) < claimGrace {
		return obj, false, nil
	}
	ref := claim.Spec.ParentRef
	if ref == nil {
		return obj, true, nil
	}
	held, err := s.holds(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, func(c claims) bool {
		return slices.Contains(c.ips, ip)
	})
	return obj, !held && err == nil, err
}

// notFoundIsNil returns err unless it says that an object does not exist.
func notFoundIsNil(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// holds asks the store whether a Service exists and holds something.
func (s *Allocator) holds(ctx context.Context, name types.NamespacedName, what func(claims) bool) (bool, error) {
	services, ok := s.set.Lookup("", "v1", "services")
	if !ok {
		return true, nil
	}
	obj, err := services.GetFromStore(ctx, name.Namespace, name.Name)
	if err != nil {
		return !apierrors.IsNotFound(err), notFoundIsNil(err)
	}
	svc, ok := obj.(*corev1.Service)
	return ok && what(claimsOf(svc)), nil
}

// deleteIP removes this IPAddress, not another of its name.
func deleteIP(ctx context.Context, addresses registry.Registry, address resource.Object) error {
	uid := address.GetUID()
	_, err := addresses.DeleteAdmitted(ctx, "", address.GetName(), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// releaseIP removes an IPAddress. One that cannot be removed now is dropped when
// another Service needs it.
func releaseIP(addresses registry.Registry, address resource.Object) release {
	return func(ctx context.Context) { _ = deleteIP(ctx, addresses, address) }
}

// claimOfIP returns the release of the IPAddress, if that is the owner's.
func (s *Allocator) claimOfIP(ctx context.Context, ip string, owner types.NamespacedName) (release, error) {
	addresses, ok := s.set.Lookup("networking.k8s.io", "v1", "ipaddresses")
	if !ok {
		return releaseNothing, nil
	}
	obj, err := addresses.GetFromStore(ctx, "", ip)
	if notFoundIsNil(err) != nil {
		return nil, err
	}
	address, ok := obj.(*networkingv1.IPAddress)
	if !ok {
		return releaseNothing, nil
	}
	if !isClaimOf(address, owner) {
		return releaseNothing, nil
	}
	return releaseIP(addresses, address), nil
}

// claimedBy asks the store whether an address is claimed for an owner.
func (s *Allocator) claimedBy(ctx context.Context, addresses registry.Registry, ip string, owner types.NamespacedName) (bool, error) {
	obj, err := addresses.GetFromStore(ctx, "", ip)
	if err != nil {
		return false, notFoundIsNil(err)
	}
	address, ok := obj.(*networkingv1.IPAddress)
	return ok && isClaimOf(address, owner), nil
}

func isClaimOf(address *networkingv1.IPAddress, owner types.NamespacedName) bool {
	ref := address.Spec.ParentRef
	return ref != nil && ref.Namespace == owner.Namespace && ref.Name == owner.Name
}
