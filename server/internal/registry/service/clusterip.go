package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// randomTries is how many random addresses or ports are tried before the range is
// searched from a random one on.
const randomTries = 32

// searchLimit bounds that search.
const searchLimit = 1 << 16

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

// claimFreeIP tries random addresses first: in a range that is not nearly full,
// most are free. Then it searches. The first address is for default/kubernetes.
func (a *allocation) claimFreeIP(ctx context.Context) (string, error) {
	for range randomTries {
		if addr := a.allocator.randomIP(); a.allocator.assignable(addr) && addr != a.allocator.FirstIP() {
			err := a.claimIP(ctx, addr)
			if !errors.Is(err, errClaimed) {
				return addr.String(), err
			}
		}
	}
	addr := a.allocator.randomIP()
	for range searchLimit {
		if addr = addr.Next(); !a.allocator.opts.CIDR.Contains(addr) {
			addr = a.allocator.FirstIP()
		}
		if !a.allocator.assignable(addr) || addr == a.allocator.FirstIP() {
			continue
		}
		if err := a.claimIP(ctx, addr); !errors.Is(err, errClaimed) {
			return addr.String(), err
		}
	}
	return "", apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP: %w", errRangeFull))
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

// claimIP creates the IPAddress, or fails with errClaimed. That of APIService is made for it by each
// server that starts, and by each attempt of one: it belongs to all of them, so it may be there already,
// and stays if one is refused.
func (a *allocation) claimIP(ctx context.Context, addr netip.Addr) error {
	addresses, ok := a.allocator.set.Lookup("networking.k8s.io", "v1", "ipaddresses")
	if !ok {
		return apierrors.NewInternalError(errors.New("ipaddresses.networking.k8s.io is no longer served"))
	}
	shared := addr == a.allocator.FirstIP() && a.owner() == APIService
	for attempt := 0; ; attempt++ {
		created, err := addresses.Create(ctx, "", newIPAddress(addr, a.owner()), registry.WriteOptions{DryRun: a.q.DryRun, FieldManager: registry.ServerManager, Admitted: true})
		if err == nil {
			if !shared {
				a.releaseIfRefused(releaseIP(addresses, created.Object))
			}
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if shared {
			if has, err := a.allocator.claimedBy(ctx, addresses, addr.String(), APIService); has || err != nil {
				return err
			}
		}
		if attempt > 0 || a.q.DryRun {
			return errClaimed
		}
		dropped, err := a.allocator.dropStaleIP(ctx, addresses, addr.String())
		if err != nil {
			return err
		}
		if !dropped {
			return errClaimed
		}
	}
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

// dropStaleIP removes an IPAddress whose Service does not exist or does not have
// the address, if it is so old that no request can still be about to write that
// Service.
func (s *Allocator) dropStaleIP(ctx context.Context, addresses registry.Registry, ip string) (bool, error) {
	obj, err := addresses.GetFromStore(ctx, "", ip)
	if err != nil {
		return apierrors.IsNotFound(err), notFoundIsNil(err)
	}
	address, ok := obj.(*networkingv1.IPAddress)
	if !ok || s.set.Now().Sub(address.CreationTimestamp.Time) < claimGrace {
		return false, nil
	}
	if ref := address.Spec.ParentRef; ref != nil {
		held, err := s.holds(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, func(c claims) bool {
			return slices.Contains(c.ips, ip)
		})
		if held || err != nil {
			return false, err
		}
	}
	return true, deleteIP(ctx, addresses, address)
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
