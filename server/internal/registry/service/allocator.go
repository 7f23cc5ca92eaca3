package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// APIService is the Service by which programs in the cluster find the API. It has the first address of
// the range, which no other Service is given.
var APIService = types.NamespacedName{Namespace: "default", Name: "kubernetes"}

// Options say which addresses and ports Services get. The zero value is
// Kubernetes' default.
type Options struct {
	// CIDR is the range of cluster IPs. Default 10.96.0.0/16. Its first
	// address is the Service default/kubernetes'.
	CIDR netip.Prefix
	// FirstNodePort and LastNodePort bound the node ports. Default 30000 to
	// 32767.
	FirstNodePort, LastNodePort int32
	// Logger gets the claims that Repair has made and those it could not make.
	// Default: slog.Default().
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if !o.CIDR.IsValid() {
		o.CIDR = netip.MustParsePrefix("10.96.0.0/16")
	}
	o.CIDR = o.CIDR.Masked()
	if o.FirstNodePort <= 0 {
		o.FirstNodePort = 30000
	}
	if o.LastNodePort < o.FirstNodePort {
		o.LastNodePort = max(32767, o.FirstNodePort)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// claimGrace is how old a claim must be before it can count as one whose Service
// was never written: longer than any request.
const claimGrace = 2 * time.Minute

// Allocator gives each Service its cluster IP and its node ports. They are
// unique over all servers of one store, because each is claimed by creating a
// key: an IPAddress object for an IP, as Kubernetes does since 1.33, a small
// record for a port. A claim comes before the write that needs it, and is given
// back when that is refused, or once the Service no longer has it. A claim that
// a crash has left behind is found and dropped when another Service needs it;
// Repair makes missing claims.
type Allocator struct {
	set      *registry.Set
	opts     Options
	once     sync.Once
	repaired chan struct{} // closed by once
}

// New returns the allocator. Its Admit must be among the Set's hooks, and lets no
// Service be written before Repair has succeeded.
func New(set *registry.Set, opts Options) (*Allocator, error) {
	opts.setDefaults()
	if bits := opts.CIDR.Addr().BitLen() - opts.CIDR.Bits(); bits < 2 {
		return nil, fmt.Errorf("service CIDR %s has no room for services: use a prefix of at most %d bits",
			opts.CIDR, opts.CIDR.Addr().BitLen()-2)
	}
	if _, ok := set.Lookup("networking.k8s.io", "v1", "ipaddresses"); !ok {
		return nil, errors.New("services need the resource ipaddresses.networking.k8s.io: add it to the table")
	}
	return &Allocator{set: set, opts: opts, repaired: make(chan struct{})}, nil
}

// CIDR is the network of the cluster IPs.
func (s *Allocator) CIDR() netip.Prefix { return s.opts.CIDR }

// FirstIP is the cluster IP of the Service default/kubernetes.
func (s *Allocator) FirstIP() netip.Addr { return s.opts.CIDR.Addr().Next() }

// Admit is the registry.Admission that allocates.
func (s *Allocator) Admit(ctx context.Context, q *registry.Request) error {
	if q.Resource.GroupResource() != (schema.GroupResource{Resource: "services"}) || q.Subresource != "" {
		return nil
	}
	old, _ := q.Old.(*corev1.Service)
	if q.Operation == registry.Remove {
		// A removal cannot be refused. Claims that are not found now are dropped
		// when another Service needs them.
		_ = s.releaseFinally(ctx, q, claimsOf(old))
		return nil
	}
	svc, ok := q.Object.(*corev1.Service)
	if !ok {
		return nil
	}
	if err := s.awaitRepair(ctx); err != nil {
		return err
	}
	if old != nil {
		keepAllocated(svc, old)
	}
	matchClusterIPs(svc, old)
	a := &allocation{allocator: s, q: q, svc: svc, old: old, had: claimsOf(old)}
	if err := a.allocate(ctx); err != nil {
		return err
	}
	return s.releaseFinally(ctx, q, a.had.without(claimsOf(svc)))
}

// release gives one claim back, unless it has been replaced: by then the Service
// may have claimed the same again.
type release func(ctx context.Context)

// releaseFinally gives claims of the Service of q back once a write has committed
// that does not need them. It finds the claims now, while no other Service can
// have claimed the same.
func (s *Allocator) releaseFinally(ctx context.Context, q *registry.Request, c claims) error {
	if q.DryRun {
		return nil
	}
	owner := types.NamespacedName{Namespace: q.Namespace, Name: q.Name}
	var found []release
	for _, ip := range c.ips {
		give, err := s.claimOfIP(ctx, ip, owner)
		if err != nil {
			return err
		}
		found = append(found, give)
	}
	for _, port := range c.ports {
		give, err := s.claimOfPort(ctx, port, owner)
		if err != nil {
			return err
		}
		found = append(found, give)
	}
	q.Finally(func(ctx context.Context, outcome registry.Outcome) {
		if outcome != registry.Committed {
			return
		}
		for _, give := range found {
			give(ctx)
		}
	})
	return nil
}

// releaseNothing is the release of a claim that does not exist.
func releaseNothing(context.Context) {}

// claims are the addresses and ports that a Service holds.
type claims struct {
	ips   []string
	ports []int32
}

func (c claims) without(kept claims) claims {
	var out claims
	for _, ip := range c.ips {
		if !slices.Contains(kept.ips, ip) {
			out.ips = append(out.ips, ip)
		}
	}
	for _, port := range c.ports {
		if !slices.Contains(kept.ports, port) {
			out.ports = append(out.ports, port)
		}
	}
	return out
}

func claimsOf(svc *corev1.Service) claims {
	var c claims
	if svc == nil {
		return c
	}
	if takesIP(svc) {
		for _, ip := range clusterIPs(svc) {
			if ip != "" && ip != corev1.ClusterIPNone {
				c.ips = append(c.ips, ip)
			}
		}
	}
	known := sets.New[int32](0) // one node port may serve TCP and UDP
	add := func(port int32) {
		if !known.Has(port) {
			known.Insert(port)
			c.ports = append(c.ports, port)
		}
	}
	if takesPorts(svc) {
		for i := range svc.Spec.Ports {
			add(svc.Spec.Ports[i].NodePort)
		}
	}
	if takesHealthPort(svc) {
		add(svc.Spec.HealthCheckNodePort)
	}
	return c
}

func clusterIPs(svc *corev1.Service) []string {
	if len(svc.Spec.ClusterIPs) > 0 {
		return svc.Spec.ClusterIPs
	}
	if svc.Spec.ClusterIP != "" {
		return []string{svc.Spec.ClusterIP}
	}
	return nil
}

func takesIP(svc *corev1.Service) bool { return svc.Spec.Type != corev1.ServiceTypeExternalName }

// takesPorts says whether the ports may have node ports.
func takesPorts(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort || svc.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// wantsPorts says whether a missing node port is to be allocated.
func wantsPorts(svc *corev1.Service) bool {
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return svc.Spec.AllocateLoadBalancerNodePorts == nil || *svc.Spec.AllocateLoadBalancerNodePorts
	}
	return svc.Spec.Type == corev1.ServiceTypeNodePort
}

func takesHealthPort(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// keepAllocated fills in what a client has left out of an update, and clears what
// it has kept although the new type does not have it: clients that replace a
// manifest do both.
func keepAllocated(svc, old *corev1.Service) {
	switch {
	case !takesIP(svc) && takesIP(old):
		if slices.Equal(clusterIPs(svc), clusterIPs(old)) {
			svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
		}
	case takesIP(svc) && takesIP(old):
		if svc.Spec.ClusterIP == "" {
			svc.Spec.ClusterIP = old.Spec.ClusterIP
		}
		if len(svc.Spec.ClusterIPs) == 0 { // of another clusterIP, matchClusterIPs makes the list
			svc.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
		}
	}
	keepPorts(svc, old)
	if takesHealthPort(svc) && takesHealthPort(old) && svc.Spec.HealthCheckNodePort == 0 {
		svc.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
	if !takesHealthPort(svc) && svc.Spec.HealthCheckNodePort == old.Spec.HealthCheckNodePort {
		svc.Spec.HealthCheckNodePort = 0
	}
}

// keepPorts gives each port the node port that the port of its name had, whatever else of
// it has changed, unless the client has given that node port to another one.
func keepPorts(svc, old *corev1.Service) {
	had := make(map[string]int32, len(old.Spec.Ports))
	for i := range old.Spec.Ports {
		had[old.Spec.Ports[i].Name] = old.Spec.Ports[i].NodePort
	}
	used := nodePortsOf(old)
	var missing []*corev1.ServicePort
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		switch {
		case port.NodePort == 0:
			missing = append(missing, port)
		case !takesPorts(svc) && used.Has(port.NodePort):
			port.NodePort = 0
		}
	}
	if !wantsPorts(svc) || !wantsPorts(old) {
		return
	}
	used = nodePortsOf(svc)
	kept := make([]int32, len(missing))
	for i, port := range missing {
		if nodePort := had[port.Name]; !used.Has(nodePort) {
			kept[i] = nodePort
		}
	}
	for i, port := range missing {
		port.NodePort = kept[i]
	}
}

func nodePortsOf(svc *corev1.Service) sets.Set[int32] {
	all := sets.New[int32]()
	for i := range svc.Spec.Ports {
		all.Insert(svc.Spec.Ports[i].NodePort)
	}
	return all
}

// allocation makes the claims for one write of a Service.
type allocation struct {
	allocator *Allocator
	q         *registry.Request
	svc, old  *corev1.Service // old is nil for a new one
	had       claims          // before the write

	ports    *portSearch // nil before random tries have failed
	dryPorts []int32     // what a dry run would have claimed
}

func (a *allocation) owner() types.NamespacedName {
	return types.NamespacedName{Namespace: a.q.Namespace, Name: a.q.Name}
}

func (a *allocation) allocate(ctx context.Context) error {
	if takesIP(a.svc) {
		if err := a.completeFamilies(); err != nil {
			return err
		}
		if err := a.allocateIPs(ctx); err != nil {
			return err
		}
	}
	if takesPorts(a.svc) {
		if err := a.allocatePorts(ctx); err != nil {
			return err
		}
	}
	if takesHealthPort(a.svc) && !a.hasHealthPort() {
		return a.allocatePort(ctx, &a.svc.Spec.HealthCheckNodePort, field.NewPath("spec", "healthCheckNodePort"))
	}
	return nil
}

// hasHealthPort reports whether the Service had a port for health checks and still names one: if that is
// another one, validation refuses it, whether or not it could be had.
func (a *allocation) hasHealthPort() bool {
	return a.old != nil && takesHealthPort(a.old) && a.svc.Spec.HealthCheckNodePort != 0
}

// releaseIfRefused gives a claim back if the write is refused.
func (a *allocation) releaseIfRefused(give release) {
	if a.q.DryRun {
		return
	}
	a.q.Finally(func(ctx context.Context, outcome registry.Outcome) {
		if outcome == registry.Refused {
			give(ctx)
		}
	})
}
