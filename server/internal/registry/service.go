package registry

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ServiceOptions say what Services are given. The zero value is Kubernetes'
// default.
type ServiceOptions struct {
	// CIDR is where cluster IPs come from. Default 10.96.0.0/16. Its first
	// address is the Service default/kubernetes'.
	CIDR netip.Prefix
	// FirstNodePort and LastNodePort bound the node ports. Default 30000 to
	// 32767.
	FirstNodePort, LastNodePort int32
	// Logger hears what Repair has done and could not do. Default: nobody does.
	Logger *slog.Logger
}

func (o *ServiceOptions) setDefaults() {
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
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// claimGrace is how old a claim must be before it can be taken for one whose
// Service was never written: longer than any request.
const claimGrace = 2 * time.Minute

// Services gives each Service its cluster IP and its node ports. They are
// unique over all servers of one store, because each is claimed by creating a
// key: an IPAddress object for an IP, as Kubernetes does since 1.33, a small
// record for a port. A claim comes before the write that needs it and is given
// back when that is refused, or once the Service no longer has it. A claim that
// a crash left behind is found and dropped when somebody needs it; one that is
// missing is made by Repair.
type Services struct {
	set      *Set
	opts     ServiceOptions
	once     sync.Once
	repaired chan struct{} // closed by once
}

// NewServices returns the allocator. Its Admit is to be among the Set's hooks,
// and lets no Service be written before Repair has succeeded.
func NewServices(set *Set, opts ServiceOptions) (*Services, error) {
	opts.setDefaults()
	if bits := opts.CIDR.Addr().BitLen() - opts.CIDR.Bits(); bits < 2 {
		return nil, fmt.Errorf("service CIDR %s has no room for services: use a prefix of at most %d bits",
			opts.CIDR, opts.CIDR.Addr().BitLen()-2)
	}
	if _, ok := set.Lookup("networking.k8s.io", "v1", "ipaddresses"); !ok {
		return nil, errors.New("services need the resource ipaddresses.networking.k8s.io: add it to the table")
	}
	return &Services{set: set, opts: opts, repaired: make(chan struct{})}, nil
}

// FirstIP is the cluster IP of the Service default/kubernetes.
func (s *Services) FirstIP() netip.Addr { return s.opts.CIDR.Addr().Next() }

// Admit is the Admission that allocates.
func (s *Services) Admit(ctx context.Context, q *Request) error {
	if q.Resource.GroupResource() != (schema.GroupResource{Resource: "services"}) || q.Subresource != "" {
		return nil
	}
	old, _ := q.Old.(*corev1.Service)
	if q.Operation == Remove {
		// A removal is not refused. Claims that cannot be found now are dropped
		// when somebody needs them.
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
	a := &allocation{Services: s, q: q, svc: svc, had: claimsOf(old)}
	if err := a.allocate(ctx); err != nil {
		return err
	}
	return s.releaseFinally(ctx, q, a.had.without(claimsOf(svc)))
}

// release gives one claim back, as long as it is the one that was meant: by then
// the Service may have claimed the same again.
type release func(ctx context.Context)

// releaseFinally gives what the Service of q has claimed back once it is written
// that it no longer needs it. Which claims those are is found now, while nobody
// else can have made others in their place.
func (s *Services) releaseFinally(ctx context.Context, q *Request, c claims) error {
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
	q.Finally(func(ctx context.Context, outcome Outcome) {
		if outcome != Committed {
			return
		}
		for _, give := range found {
			give(ctx)
		}
	})
	return nil
}

// nothing is the release of a claim that is not there.
func nothing(context.Context) {}

// claims is what a Service holds.
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
	if takesPorts(svc) {
		for i := range svc.Spec.Ports {
			c.addPort(svc.Spec.Ports[i].NodePort)
		}
	}
	if takesHealthPort(svc) {
		c.addPort(svc.Spec.HealthCheckNodePort)
	}
	return c
}

// addPort adds a port once: one node port may serve TCP and UDP.
func (c *claims) addPort(port int32) {
	if port != 0 && !slices.Contains(c.ports, port) {
		c.ports = append(c.ports, port)
	}
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

// keepAllocated fills what a client left out of an update, or kept although the
// type no longer has it, as those who replace a manifest do.
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
		if len(svc.Spec.ClusterIPs) == 0 && svc.Spec.ClusterIP == old.Spec.ClusterIP {
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

func keepPorts(svc, old *corev1.Service) {
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		for j := range old.Spec.Ports {
			had := &old.Spec.Ports[j]
			switch {
			case !takesPorts(svc) && port.NodePort != 0 && port.NodePort == had.NodePort:
				port.NodePort = 0
			case wantsPorts(svc) && takesPorts(old) && port.NodePort == 0 && port.Port == had.Port && port.Protocol == had.Protocol && !usesPort(svc, had.NodePort):
				port.NodePort = had.NodePort
			}
		}
	}
}

func usesPort(svc *corev1.Service, nodePort int32) bool {
	return slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == nodePort })
}

// allocation is what one write of a Service claims.
type allocation struct {
	*Services
	q   *Request
	svc *corev1.Service
	had claims
}

func (a *allocation) owner() types.NamespacedName {
	return types.NamespacedName{Namespace: a.q.Namespace, Name: a.q.Name}
}

func (a *allocation) allocate(ctx context.Context) error {
	if takesIP(a.svc) {
		if err := a.allocateIPs(ctx); err != nil {
			return err
		}
	}
	if takesPorts(a.svc) {
		if err := a.allocatePorts(ctx); err != nil {
			return err
		}
	}
	if takesHealthPort(a.svc) {
		return a.allocatePort(ctx, &a.svc.Spec.HealthCheckNodePort, field.NewPath("spec", "healthCheckNodePort"))
	}
	return nil
}

// claimed makes a claim be given back if the write is refused.
func (a *allocation) claimed(give release) {
	if a.q.DryRun {
		return
	}
	a.q.Finally(func(ctx context.Context, outcome Outcome) {
		if outcome == Refused {
			give(ctx)
		}
	})
}

func (a *allocation) invalid(err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, a.q.Name, field.ErrorList{err})
}
