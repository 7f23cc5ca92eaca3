package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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
// they are one port over several protocols. What is wrong with it is told of the first of them,
// and ports of other numbers cannot have it.
func (a *allocation) allocatePorts(ctx context.Context) error {
	ports := a.svc.Spec.Ports
	done, of := sets.New[claimedPort](), nodePortsByNumber(ports)
	if a.old == nil && wantsPorts(a.svc) {
		shareNodePorts(ports, of)
	}
	for _, named := range []bool{true, false} {
		if !named && !wantsPorts(a.svc) {
			return nil
		}
		if !named && a.missingPorts(of) > a.allocator.nodePorts() {
			return noNodePort() // before any is claimed in vain
		}
		for i := range ports {
			if (ports[i].NodePort != 0) != named || done.Has(a.claimedPort(&ports[i])) {
				continue
			}
			if a.old == nil && !named {
				if ports[i].NodePort = of[ports[i].Port]; ports[i].NodePort != 0 {
					continue
				}
			}
			at := field.NewPath("spec", "ports").Index(i).Child("nodePort")
			if err := a.allocatePort(ctx, &ports[i].NodePort, at); err != nil {
				return err
			}
			done.Insert(a.claimedPort(&ports[i]))
			if number := ports[i].Port; of[number] == 0 {
				of[number] = ports[i].NodePort
			}
		}
	}
	return nil
}

// shareNodePorts gives ports without a node port that of their number, if there is one.
func shareNodePorts(ports []corev1.ServicePort, of map[int32]int32) {
	for i := range ports {
		if port := &ports[i]; port.NodePort == 0 {
			port.NodePort = of[port.Port]
		}
	}
}

// claimedPort is a node port with the number of the ports that may have it, 0 if all may.
type claimedPort struct{ nodePort, number int32 }

func (a *allocation) claimedPort(port *corev1.ServicePort) claimedPort {
	if a.old != nil {
		return claimedPort{nodePort: port.NodePort}
	}
	return claimedPort{port.NodePort, port.Port}
}

// missingPorts is how many free node ports allocatePorts will look for. of are the node ports
// of the ports that have one, by their numbers.
func (a *allocation) missingPorts(of map[int32]int32) int32 {
	missing, numbers := int32(0), sets.New[int32]()
	for i := range a.svc.Spec.Ports {
		port := &a.svc.Spec.Ports[i]
		if port.NodePort != 0 || a.old == nil && (of[port.Port] != 0 || numbers.Has(port.Port)) {
			continue
		}
		numbers.Insert(port.Port)
		missing++
	}
	return missing
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

// claimFreePort tries random ports first: in a range that is not nearly full, most are free.
// Then it reads which are: a try that fails costs the store as much as a write.
func (a *allocation) claimFreePort(ctx context.Context) (int32, error) {
	if a.ports == nil {
		for range randomTries {
			port := a.allocator.opts.FirstNodePort + rand.Int32N(a.allocator.nodePorts())
			if _, err := a.createPort(ctx, port); !errors.Is(err, errPortClaimed) {
				return port, err
			}
		}
		var err error
		if a.ports, err = a.allocator.readPorts(ctx); err != nil {
			return 0, err
		}
	}
	for range conflictTries {
		port, ok := a.ports.nextFree()
		if !ok {
			break
		}
		if _, err := a.createPort(ctx, port); !errors.Is(err, errPortClaimed) {
			return port, err
		}
	}
	return a.claimStalePort(ctx)
}

// claimStalePort looks for a port whose claim is stale: there is no other.
func (a *allocation) claimStalePort(ctx context.Context) (int32, error) {
	look := newStaleLook(a.allocator)
	for look.goesOn() && len(a.ports.claimed) > 0 {
		kv := &a.ports.claimed[0]
		a.ports.claimed = a.ports.claimed[1:]
		port, _ := portOfKey(kv.Key)
		claim, _ := readClaim(kv)
		if !look.suspects(ctx, claim.Claimed, claim.owner(), func(c claims) bool { return slices.Contains(c.ports, port) }) {
			continue
		}
		if err := a.takeOverPort(ctx, port, kv); !errors.Is(err, errPortClaimed) {
			return port, err
		}
	}
	return 0, noNodePort()
}

// portSearch is what is left to try of the range.
type portSearch struct {
	free    []int32            // without a claim when it was read, in random order
	claimed []storage.KeyValue // the claims of the others, in random order
}

func (p *portSearch) nextFree() (port int32, ok bool) {
	if len(p.free) == 0 {
		return 0, false
	}
	port, p.free = p.free[0], p.free[1:]
	return port, true
}

// readPorts reads the claims of all node ports from the store.
func (s *Allocator) readPorts(ctx context.Context) (*portSearch, error) {
	found, taken := &portSearch{}, sets.New[int32]()
	err := s.keys(ctx, nodePortPrefix, storage.ListOptions{Limit: repairPage}, func(kv *storage.KeyValue) error {
		port, ok := portOfKey(kv.Key)
		if ok && port >= s.opts.FirstNodePort && port <= s.opts.LastNodePort {
			taken.Insert(port)
			found.claimed = append(found.claimed, *kv)
		}
		return nil
	})
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	for port := s.opts.FirstNodePort; port <= s.opts.LastNodePort; port++ {
		if !taken.Has(port) {
			found.free = append(found.free, port)
		}
	}
	rand.Shuffle(len(found.free), func(i, j int) { found.free[i], found.free[j] = found.free[j], found.free[i] })
	rand.Shuffle(len(found.claimed), func(i, j int) { found.claimed[i], found.claimed[j] = found.claimed[j], found.claimed[i] })
	return found, nil
}

func portOfKey(key string) (port int32, ok bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(key, nodePortPrefix), 10, 32)
	return int32(n), err == nil
}

// claimPort creates the claim, in the place of one that is stale if need be, or fails with
// errPortClaimed.
func (a *allocation) claimPort(ctx context.Context, port int32) error {
	current, err := a.createPort(ctx, port)
	if !errors.Is(err, errPortClaimed) || current == nil {
		return err
	}
	return a.takeOverPort(ctx, port, current)
}

// createPort creates the claim, or fails with errPortClaimed and the claim that is there, nil if
// that has just gone or is of this dry run.
func (a *allocation) createPort(ctx context.Context, port int32) (current *storage.KeyValue, err error) {
	store := a.allocator.set.Store()
	if a.q.DryRun {
		if slices.Contains(a.dryPorts, port) {
			return nil, errPortClaimed
		}
		kv, err := store.Get(ctx, portKey(port), 0)
		switch {
		case err == nil:
			return &kv, errPortClaimed
		case errors.Is(err, storage.ErrNotFound):
			a.dryPorts = append(a.dryPorts, port)
			return nil, nil //nolint:nilnil // Nothing is in the way.
		}
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	owner := a.owner()
	value, err := json.Marshal(portClaim{Namespace: owner.Namespace, Name: owner.Name, Claimed: a.allocator.set.Now().Time})
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	rev, err := store.Create(ctx, portKey(port), value, 0)
	if err == nil {
		a.releaseIfRefused(a.allocator.releasePort(port, rev))
		return nil, nil //nolint:nilnil // Nothing was in the way.
	}
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) {
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	return conflict.Current, errPortClaimed
}

// takeOverPort claims a port in the place of a claim, if that is stale. Otherwise it fails with
// errPortClaimed.
func (a *allocation) takeOverPort(ctx context.Context, port int32, kv *storage.KeyValue) error {
	stale, err := a.allocator.isStalePort(ctx, port, kv)
	switch {
	case err != nil:
		return err
	case !stale:
		return errPortClaimed
	case a.q.DryRun:
		a.dryPorts = append(a.dryPorts, port)
		return nil
	}
	if _, err := a.allocator.set.Store().Delete(ctx, kv.Key, kv.Modified); err != nil {
		return errPortClaimed // it is no longer that claim, or cannot be removed now
	}
	_, err = a.createPort(ctx, port)
	return err
}

// isStalePort reports whether a claim is stale, as staleIP does. One that cannot be decoded is.
func (s *Allocator) isStalePort(ctx context.Context, port int32, kv *storage.KeyValue) (bool, error) {
	claim, known := readClaim(kv)
	switch {
	case !known:
		return true, nil
	case s.set.Now().Sub(claim.Claimed) < claimGrace:
		return false, nil
	}
	held, err := s.holds(ctx, claim.owner(), func(c claims) bool { return slices.Contains(c.ports, port) })
	return !held && err == nil, err
}

// readClaim decodes a claim. One that cannot be decoded is nobody's.
func readClaim(kv *storage.KeyValue) (claim portClaim, ok bool) {
	if err := json.Unmarshal(kv.Value, &claim); err != nil {
		return portClaim{}, false
	}
	return claim, true
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
