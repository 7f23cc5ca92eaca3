package registry

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// kubernetesService is how programs in the cluster find the API.
const kubernetesService = "kubernetes"

// Content makes more of what every namespace has, and may be called for
// several at the same time.
type Content func(ctx context.Context, namespace string) error

// Bootstrap makes what every cluster has: the system's namespaces with their
// content, the system's priority classes, the claims of the Services that are
// there, and the Service default/kubernetes with endpoint among its endpoints.
// It changes nothing that is there already, and several servers may do it at
// once. It asks the store, not the caches, and so can run while they fill. What
// does not depend on each other is made at the same time, so that a store which
// makes writes durable together has them together.
func Bootstrap(ctx context.Context, set *Set, services *Services, endpoint netip.AddrPort, contents ...Content) error {
	group, ctx := errgroup.WithContext(ctx)
	inDefault := make(chan struct{}) // closed when there is a namespace default
	for _, name := range systemNamespaces {
		group.Go(func() error {
			if err := set.EnsureNamespace(ctx, name); err != nil {
				return err
			}
			if name == metav1.NamespaceDefault {
				close(inDefault)
			}
			for _, content := range contents {
				group.Go(func() error { return content(ctx, name) })
			}
			return nil
		})
	}
	group.Go(func() error { return set.ensurePriorities(ctx) })
	group.Go(func() error {
		if err := services.Repair(ctx); err != nil {
			return err
		}
		select {
		case <-inDefault:
		case <-ctx.Done():
			return nil // another part has failed
		}
		group.Go(func() error { return set.publish(ctx, endpoint, true) })
		if err := set.ensure(ctx, "services", metav1.NamespaceDefault, apiService(services.FirstIP(), endpoint.Port())); err != nil {
			return fmt.Errorf("create service default/kubernetes: %w", err)
		}
		return nil
	})
	return group.Wait()
}

// IsSystemNamespace says whether a namespace is one that every cluster has.
func IsSystemNamespace(name string) bool { return slices.Contains(systemNamespaces, name) }

// EnsureNamespace makes a namespace that does not exist.
func (s *Set) EnsureNamespace(ctx context.Context, name string) error {
	if err := s.ensure(ctx, "namespaces", "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// systemPriorities are the classes of what a cluster cannot do without.
var systemPriorities = []*schedulingv1.PriorityClass{
	{
		ObjectMeta:  metav1.ObjectMeta{Name: "system-node-critical"},
		Value:       2_000_001_000,
		Description: "Used for system critical pods that must not be moved from their current node.",
	},
	{
		ObjectMeta:  metav1.ObjectMeta{Name: "system-cluster-critical"},
		Value:       2_000_000_000,
		Description: "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
	},
}

func (s *Set) ensurePriorities(ctx context.Context) error {
	classes, ok := s.Lookup(schedulingv1.GroupName, "v1", "priorityclasses")
	if !ok {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, class := range systemPriorities {
		group.Go(func() error {
			if err := classes.Ensure(ctx, "", class.DeepCopy()); err != nil {
				return fmt.Errorf("create priority class %s: %w", class.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Withdraw takes endpoint out of the endpoints of default/kubernetes: the
// server there is about to stop.
func Withdraw(ctx context.Context, set *Set, endpoint netip.AddrPort) error {
	return set.publish(ctx, endpoint, false)
}

func (s *Set) ensure(ctx context.Context, plural, namespace string, obj resource.Object) error {
	r, ok := s.Lookup("", "v1", plural)
	if !ok {
		return nil
	}
	return r.Ensure(ctx, namespace, obj)
}

// Ensure makes an object unless there is one of its name, whatever that is
// like.
func (r Registry) Ensure(ctx context.Context, namespace string, obj resource.Object) error {
	cur, err := r.read(ctx, namespace, obj.GetName(), false)
	if err != nil || cur.object != nil {
		return err
	}
	_, err = r.Create(ctx, namespace, obj, ServerWrites)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func apiService(ip netip.Addr, port uint16) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: kubernetesService, Labels: map[string]string{
			"component": "apiserver", "provider": "kubernetes",
		}},
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			ClusterIP:       ip.String(),
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{
				Name: "https", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromInt32(int32(port)),
			}},
		},
	}
}

// publish adds endpoint to the Endpoints and the EndpointSlice of the Service,
// or takes it out.
func (s *Set) publish(ctx context.Context, endpoint netip.AddrPort, present bool) error {
	if r, ok := s.Lookup("", "v1", "endpoints"); ok {
		if err := r.publish(ctx, newEndpoints(endpoint.Port()), present, func(obj resource.Object) {
			publishEndpoints(obj, endpoint, present)
		}); err != nil {
			return fmt.Errorf("publish %s in endpoints default/kubernetes: %w", endpoint, err)
		}
	}
	if r, ok := s.Lookup("discovery.k8s.io", "v1", "endpointslices"); ok {
		if err := r.publish(ctx, newSlice(endpoint), present, func(obj resource.Object) {
			publishSlice(obj, endpoint, present)
		}); err != nil {
			return fmt.Errorf("publish %s in endpointslice default/kubernetes: %w", endpoint, err)
		}
	}
	return nil
}

func (r Registry) publish(ctx context.Context, empty resource.Object, create bool, change func(resource.Object)) error {
	_, err := r.Update(ctx, metav1.NamespaceDefault, kubernetesService, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			current = empty
		}
		obj := current.DeepCopyObject().(resource.Object)
		change(obj)
		return obj, nil
	}, UpdateOptions{WriteOptions: ServerWrites, MayCreate: create, Unconditional: true})
	if apierrors.IsNotFound(err) && !create {
		return nil
	}
	if apierrors.IsAlreadyExists(err) {
		return r.publish(ctx, empty, false, change)
	}
	return err
}

// newEndpoints makes the older form, which clients from before EndpointSlices
// read.
func newEndpoints(port uint16) *corev1.Endpoints {
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: kubernetesService, Namespace: metav1.NamespaceDefault, Labels: map[string]string{
			discoveryv1.LabelSkipMirror: "true",
		}},
		Subsets: []corev1.EndpointSubset{{
			Ports: []corev1.EndpointPort{{Name: "https", Port: int32(port), Protocol: corev1.ProtocolTCP}},
		}},
	}
}

func publishEndpoints(obj resource.Object, endpoint netip.AddrPort, present bool) {
	endpoints, ok := obj.(*corev1.Endpoints)
	if !ok {
		return
	}
	if len(endpoints.Subsets) == 0 {
		endpoints.Subsets = newEndpoints(endpoint.Port()).Subsets
	}
	ip := endpoint.Addr().String()
	subset := &endpoints.Subsets[0]
	subset.Addresses = slices.DeleteFunc(subset.Addresses, func(a corev1.EndpointAddress) bool { return a.IP == ip })
	if present {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: ip})
		slices.SortFunc(subset.Addresses, func(a, b corev1.EndpointAddress) int { return strings.Compare(a.IP, b.IP) })
	}
	if len(subset.Addresses) == 0 {
		endpoints.Subsets = nil
	}
}

func newSlice(endpoint netip.AddrPort) *discoveryv1.EndpointSlice {
	name, protocol, port := "https", corev1.ProtocolTCP, int32(endpoint.Port())
	family := discoveryv1.AddressTypeIPv4
	if endpoint.Addr().Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: kubernetesService, Namespace: metav1.NamespaceDefault, Labels: map[string]string{
			discoveryv1.LabelServiceName: kubernetesService,
		}},
		AddressType: family,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Protocol: &protocol, Port: &port}},
	}
}

func publishSlice(obj resource.Object, endpoint netip.AddrPort, present bool) {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	ip := endpoint.Addr().String()
	slice.Endpoints = slices.DeleteFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
		return len(e.Addresses) > 0 && e.Addresses[0] == ip
	})
	if present {
		ready := true
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
		slices.SortFunc(slice.Endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(a.Addresses[0], b.Addresses[0]) })
	}
}
