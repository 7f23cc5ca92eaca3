package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// repairPage is how many keys the repair reads at a time.
const repairPage = 500

// Repair claims the addresses and ports of the ranges that Services hold without
// a claim, as after data was restored that another server wrote. No Service gets
// an address or a port before Repair has succeeded once; the bootstrap calls it.
// An address that two Services hold stays as it is, and is logged. Several
// servers may repair at once.
func (s *Allocator) Repair(ctx context.Context) error {
	err := s.claimHeld(ctx)
	for errors.Is(err, storage.ErrCompacted) {
		// The store was compacted between two pages. Claims made so far stay.
		err = s.claimHeld(ctx)
	}
	if err != nil {
		return fmt.Errorf("claim what services hold: %w", err)
	}
	s.once.Do(func() { close(s.repaired) })
	return nil
}

// claimHeld is one attempt at Repair.
func (s *Allocator) claimHeld(ctx context.Context) error {
	held, revision, err := s.owners(ctx)
	if err != nil {
		return err
	}
	return s.scan(ctx, "", "services", revision, func(obj resource.Object) error {
		svc, ok := obj.(*corev1.Service)
		if !ok {
			return nil
		}
		return s.repair(ctx, svc, held)
	})
}

// awaitRepair returns once the claims are complete.
func (s *Allocator) awaitRepair(ctx context.Context) error {
	select {
	case <-s.repaired:
		return nil
	case <-ctx.Done():
		return apierrors.NewServiceUnavailable("the server is starting and does not know all claimed addresses yet: try again")
	}
}

// owners returns the owner of each claim, by address and by port in decimal, all
// at the returned revision.
func (s *Allocator) owners(ctx context.Context) (map[string]types.NamespacedName, storage.Revision, error) {
	revision, err := s.set.Store().Current(ctx)
	if err != nil {
		return nil, 0, err
	}
	held := map[string]types.NamespacedName{}
	err = s.scan(ctx, "networking.k8s.io", "ipaddresses", revision, func(obj resource.Object) error {
		if address, ok := obj.(*networkingv1.IPAddress); ok {
			var owner types.NamespacedName
			if ref := address.Spec.ParentRef; ref != nil {
				owner = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
			}
			held[address.Name] = owner
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read the claimed addresses: %w", err)
	}
	err = s.keys(ctx, nodePortPrefix, storage.ListOptions{At: revision, Limit: repairPage}, func(kv *storage.KeyValue) error {
		var claim portClaim
		if err := json.Unmarshal(kv.Value, &claim); err != nil {
			return nil // it has no owner, and is dropped when a Service needs the port
		}
		held[strings.TrimPrefix(kv.Key, nodePortPrefix)] = claim.owner()
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read the claimed node ports: %w", err)
	}
	return held, revision, nil
}

// scan calls visit with every object of a resource at a revision.
func (s *Allocator) scan(ctx context.Context, group, plural string, at storage.Revision, visit func(resource.Object) error) error {
	r, ok := s.set.Lookup(group, "v1", plural)
	if !ok {
		return nil
	}
	return s.keys(ctx, r.Resource().Stored().StorePrefix, storage.ListOptions{At: at, Limit: repairPage}, func(kv *storage.KeyValue) error {
		obj, err := r.DecodeStored(ctx, kv)
		if err != nil {
			// The caches report it, too. One bad value must not keep the server from
			// starting.
			s.opts.Logger.Error("a stored value cannot be decoded, its claims are not known: repair or delete it in the store", "key", kv.Key, "error", err)
			return nil
		}
		return visit(obj)
	})
}

// keys calls visit with every key under a prefix, of which it reads pages.
func (s *Allocator) keys(ctx context.Context, prefix string, opts storage.ListOptions, visit func(*storage.KeyValue) error) error {
	for {
		page, err := s.set.Store().List(ctx, prefix, opts)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if !page.More || len(page.Items) == 0 {
			return nil
		}
		opts.From = page.Items[len(page.Items)-1].Key + "\x00"
	}
}

// repair makes the claims that one Service lacks. Addresses and ports outside of
// the ranges need no claim, as no Service is given them.
func (s *Allocator) repair(ctx context.Context, svc *corev1.Service, held map[string]types.NamespacedName) error {
	a := &allocation{allocator: s, svc: svc, q: &registry.Request{Namespace: svc.Namespace, Name: svc.Name}}
	claims := claimsOf(svc)
	for _, ip := range claims.ips {
		addr, err := netip.ParseAddr(ip)
		if err != nil || !s.assignable(addr) {
			continue
		}
		if err := a.reclaim(held, addr.String(), func() error { return a.claimIP(ctx, addr) }); err != nil {
			return err
		}
	}
	for _, port := range claims.ports {
		if port < s.opts.FirstNodePort || port > s.opts.LastNodePort {
			continue
		}
		if err := a.reclaim(held, strconv.Itoa(int(port)), func() error { return a.claimPort(ctx, port) }); err != nil {
			return err
		}
	}
	return nil
}

// reclaim claims an address or a port unless the Service has done so.
func (a *allocation) reclaim(held map[string]types.NamespacedName, what string, claim func() error) error {
	other, known := held[what]
	if known && other == a.owner() {
		return nil
	}
	switch err := claim(); {
	case err == nil:
		held[what] = a.owner()
		a.allocator.opts.Logger.Info("claimed what a service holds", "service", a.owner(), "held", what)
	case !errors.Is(err, errClaimed) && !errors.Is(err, errPortClaimed):
		return err
	case known:
		a.allocator.opts.Logger.Warn("two services hold the same address or port: delete one of them and create it again",
			"held", what, "service", a.owner(), "claimedBy", other)
	}
	return nil // unless known, another server has just repaired it
}
