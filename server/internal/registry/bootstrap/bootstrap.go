package bootstrap

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// NamespaceContent creates objects that every namespace has. It may be called for
// several namespaces at the same time.
type NamespaceContent func(ctx context.Context, namespace string) error

// Run creates what every cluster has: the system's namespaces with their contents,
// the system's priority classes, the claims of the existing Services, and the
// Service default/kubernetes with endpoint among its endpoints, if that is not withdrawn. It changes no
// object that exists, and several servers may run it at once. It asks the store
// and not the caches, so that it can run while they fill. Objects that do not
// depend on each other are created at the same time, so that the store can make
// them durable together.
//
// Objects that users have made may stand in the way: a quota that is used up, an object
// of the same name that cannot change. Run creates the others, and fails with a *RefusedError.
func Run(ctx context.Context, set *registry.Set, services *service.Allocator, endpoint *Endpoint, contents ...NamespaceContent) error {
	group, ctx := newSteps(ctx)
	inDefault := make(chan struct{}) // closed when the namespace default exists, or cannot be made
	for _, name := range namespace.System() {
		group.Go(func() error {
			if name == metav1.NamespaceDefault {
				defer close(inDefault)
			}
			if err := namespace.Ensure(ctx, set, name); err != nil {
				return err
			}
			for _, content := range contents {
				group.Go(func() error { return content(ctx, name) })
			}
			return nil
		})
	}
	group.Go(func() error { return ensurePriorities(ctx, set) })
	group.Go(func() error { return ensureServiceCIDR(ctx, set, services.CIDR()) })
	group.Go(func() error {
		if err := services.Repair(ctx); err != nil {
			return err
		}
		select {
		case <-inDefault:
		case <-ctx.Done():
			return nil // another goroutine has failed
		}
		group.Go(func() error { return endpoint.Publish(ctx) })
		if err := ensureService(ctx, set, apiService(services.FirstIP(), endpoint.address.Port())); err != nil {
			return fmt.Errorf("create service default/kubernetes: %w", err)
		}
		return nil
	})
	return group.Wait()
}

// systemPriorities are the priority classes of pods that a cluster cannot do
// without.
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

func ensurePriorities(ctx context.Context, set *registry.Set) error {
	classes, ok := set.Lookup(schedulingv1.GroupName, "v1", "priorityclasses")
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

// defaultServiceCIDR is kube-apiserver's name for the network that its flags give it.
const defaultServiceCIDR = "kubernetes"

// ensureServiceCIDR publishes the network that Services get their addresses from.
func ensureServiceCIDR(ctx context.Context, set *registry.Set, cidr netip.Prefix) error {
	networks, ok := set.Lookup(networkingv1.GroupName, "v1", "servicecidrs")
	if !ok {
		return nil
	}
	wanted := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: defaultServiceCIDR}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{cidr.String()}}}
	if err := networks.Ensure(ctx, "", wanted); err != nil {
		return fmt.Errorf("create ServiceCIDR %s: %w", wanted.Name, err)
	}
	_, err := networks.UpdateStatus(ctx, "", wanted.Name, func(current resource.Object) (resource.Object, error) {
		network := current.DeepCopyObject().(*networkingv1.ServiceCIDR)
		meta.SetStatusCondition(&network.Status.Conditions, metav1.Condition{
			Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Message: "Kubernetes default Service CIDR is ready",
			LastTransitionTime: set.Now(),
		})
		return network, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, Unconditional: true})
	if apierrors.IsNotFound(err) {
		return nil // somebody has deleted it since
	}
	return err
}

func ensureService(ctx context.Context, set *registry.Set, svc *corev1.Service) error {
	services, ok := set.Lookup("", "v1", "services")
	if !ok {
		return nil
	}
	return services.Ensure(ctx, service.APIService.Namespace, svc)
}

func apiService(ip netip.Addr, port uint16) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service.APIService.Name, Labels: map[string]string{
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

// publish adds endpoint to the Endpoints and the EndpointSlice of the Service, or
// takes it out.
func publish(ctx context.Context, set *registry.Set, endpoint netip.AddrPort, present bool) error {
	if r, ok := set.Lookup("", "v1", "endpoints"); ok {
		if err := publishIn(ctx, r, newEndpoints(endpoint.Port()), present, func(obj resource.Object) {
			publishEndpoints(obj, endpoint, present)
		}); err != nil {
			return fmt.Errorf("publish %s in endpoints default/kubernetes: %w", endpoint, err)
		}
	}
	if r, ok := set.Lookup("discovery.k8s.io", "v1", "endpointslices"); ok {
		if err := publishIn(ctx, r, newSlice(endpoint), present, func(obj resource.Object) {
			publishSlice(obj, endpoint, present)
		}); err != nil {
			return fmt.Errorf("publish %s in endpointslice default/kubernetes: %w", endpoint, err)
		}
	}
	return nil
}

func publishIn(ctx context.Context, r registry.Registry, empty resource.Object, create bool, change func(resource.Object)) error {
	_, err := r.Update(ctx, service.APIService.Namespace, service.APIService.Name, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			current = empty
		}
		obj := current.DeepCopyObject().(resource.Object)
		change(obj)
		return obj, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, MayCreate: create, Unconditional: true})
	if apierrors.IsNotFound(err) && !create {
		return nil
	}
	if apierrors.IsAlreadyExists(err) {
		return publishIn(ctx, r, empty, false, change)
	}
	return err
}

// newEndpoints makes Endpoints, which clients older than EndpointSlices read.
func newEndpoints(port uint16) *corev1.Endpoints {
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: service.APIService.Name, Namespace: service.APIService.Namespace, Labels: map[string]string{
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
		ObjectMeta: metav1.ObjectMeta{Name: service.APIService.Name, Namespace: service.APIService.Namespace, Labels: map[string]string{
			discoveryv1.LabelServiceName: service.APIService.Name,
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
