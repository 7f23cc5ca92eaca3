package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/storage"
)

// nodePortPrefix is the prefix of the keys that claim node ports, one for each
// port. They are not API objects.
const nodePortPrefix = "/registry/ranges/levelwire.io/nodeports/"

var errPortClaimed = errors.New("provided port is already allocated")

// portClaim is the value that claims one node port.
type portClaim struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Claimed   time.Time `json:"claimed"`
}

func (c portClaim) owner() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

func portKey(port int32) string { return nodePortPrefix + strconv.Itoa(int(port)) }

// allocatePorts claims the node ports that the Service names, and then free
// ones for the rest. In a new Service, ports of the same number get the same node port:
// they are one port over several protocols.
func (a *allocation) allocatePorts(ctx context.Context) error {
	ports := a.svc.Spec.Ports
	done, of, free := sets.New[int32](), nodePortsByNumber(ports), int32(0)
	for _, named := range []bool{true, false} {
		if !named && !wantsPorts(a.svc) {
			return nil
		}
		for i := range ports {
			if (ports[i].NodePort != 0) != named || done.Has(ports[i].NodePort) {
				continue
			}
			if a.old == nil && !named {
				if ports[i].NodePort = of[ports[i].Port]; ports[i].NodePort != 0 {
					continue
				}
			}
			if !named {
				if free++; free > a.allocator.nodePorts() { // a dry run would look for each
					return noNodePort()
				}
			}
			at := field.NewPath("spec", "ports").Index(i).Child("nodePort")
			if err := a.allocatePort(ctx, &ports[i].NodePort, at); err != nil {
				return err
			}
			done.Insert(ports[i].NodePort)
			if number := ports[i].Port; of[number] == 0 {
				of[number] = ports[i].NodePort
			}
		}
	}
	return nil
}

// nodePortsByNumber returns the node port of the first port of each number that has one.
func nodePortsByNumber(ports []corev1.ServicePort) map[int32]int32 {
	of := make(map[int32]int32, len(ports))
	for i := range ports {
		if number := ports[i].Port; of[number] == 0 {
			of[number] = ports[i].NodePort
		}
	}
	return of
}

// nodePorts is how many node ports there are.
func (s *Allocator) nodePorts() int32 { return s.opts.LastNodePort - s.opts.FirstNodePort + 1 }

func noNodePort() error {
	return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", errRangeFull))
}

// allocatePort claims *port, or if that is 0 sets it to a free port and claims
// that.
func (a *allocation) allocatePort(ctx context.Context, port *int32, at *field.Path) error {
	switch {
	case *port == 0:
		free, err := a.claimFreePort(ctx)
		*port = free
		return err
	case slices.Contains(a.had.ports, *port):
		return nil
	case *port < a.allocator.opts.FirstNodePort || *port > a.allocator.opts.LastNodePort:
		return a.invalid(field.Invalid(at, *port, fmt.Sprintf(
			"provided port is not in the valid range. The range of valid ports is %d-%d", a.allocator.opts.FirstNodePort, a.allocator.opts.LastNodePort)))
	}
	err := a.claimPort(ctx, *port)
	if errors.Is(err, errPortClaimed) {
		return a.invalid(field.Invalid(at, *port, err.Error()))
	}
	return err
}

func (a *allocation) claimFreePort(ctx context.Context) (int32, error) {
	size := a.allocator.nodePorts()
	for range randomTries {
		port := a.allocator.opts.FirstNodePort + rand.Int32N(size)
		if err := a.claimPort(ctx, port); !errors.Is(err, errPortClaimed) {
			return port, err
		}
	}
	start := rand.Int32N(size)
	for i := range size {
		port := a.allocator.opts.FirstNodePort + (start+i)%size
		if err := a.claimPort(ctx, port); !errors.Is(err, errPortClaimed) {
			return port, err
		}
	}
	return 0, noNodePort()
}

// claimPort creates the claim, or fails with errPortClaimed.
func (a *allocation) claimPort(ctx context.Context, port int32) error {
	store := a.allocator.set.Store()
	if a.q.DryRun {
		_, err := store.Get(ctx, portKey(port), 0)
		switch {
		case err == nil:
			return errPortClaimed
		case errors.Is(err, storage.ErrNotFound):
			return nil
		}
		return apierrors.NewServiceUnavailable(err.Error())
	}
	owner := a.owner()
	value, err := json.Marshal(portClaim{Namespace: owner.Namespace, Name: owner.Name, Claimed: a.allocator.set.Now().Time})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	for attempt := 0; ; attempt++ {
		rev, err := store.Create(ctx, portKey(port), value, 0)
		if err == nil {
			a.releaseIfRefused(a.allocator.releasePort(port, rev))
			return nil
		}
		var conflict *storage.ConflictError
		if !errors.As(err, &conflict) {
			return apierrors.NewServiceUnavailable(err.Error())
		}
		if attempt > 0 || conflict.Current == nil {
			return errPortClaimed
		}
		dropped, err := a.allocator.dropStalePort(ctx, port, conflict.Current)
		if err != nil {
			return err
		}
		if !dropped {
			return errPortClaimed
		}
	}
}

// dropStalePort is dropStaleIP for a port.
func (s *Allocator) dropStalePort(ctx context.Context, port int32, kv *storage.KeyValue) (bool, error) {
	var claim portClaim
	if err := json.Unmarshal(kv.Value, &claim); err == nil {
		if s.set.Now().Sub(claim.Claimed) < claimGrace {
			return false, nil
		}
		held, err := s.holds(ctx, claim.owner(), func(c claims) bool { return slices.Contains(c.ports, port) })
		if held || err != nil {
			return false, err
		}
	}
	_, err := s.set.Store().Delete(ctx, kv.Key, kv.Modified)
	return err == nil, nil
}

// releasePort removes the claim of a port that was written at a revision. One
// that cannot be removed now is dropped when another Service needs it.
func (s *Allocator) releasePort(port int32, rev storage.Revision) release {
	return func(ctx context.Context) { _, _ = s.set.Store().Delete(ctx, portKey(port), rev) }
}

// claimOfPort returns the release of the claim of a port, if that is the owner's.
func (s *Allocator) claimOfPort(ctx context.Context, port int32, owner types.NamespacedName) (release, error) {
	kv, err := s.set.Store().Get(ctx, portKey(port), 0)
	if errors.Is(err, storage.ErrNotFound) {
		return releaseNothing, nil
	}
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	var claim portClaim
	if err := json.Unmarshal(kv.Value, &claim); err != nil || claim.owner() != owner {
		return releaseNothing, nil
	}
	return s.releasePort(port, kv.Modified), nil
}
