package registry

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/resource"
)

// kubernetesService is how programs in the cluster find the API.
const kubernetesService = "kubernetes"

// Bootstrap makes what every cluster has: the system's namespaces, the claims of
// the Services that are there, and the Service default/kubernetes with endpoint
// among its endpoints. It changes nothing that is there already, and several servers may do it at once. It
// asks the store, not the caches, and so can run while they fill.
func Bootstrap(ctx context.Context, set *Set, services *Services, endpoint netip.AddrPort) error {
	for _, name := range systemNamespaces {
		if err := set.ensure(ctx, "namespaces", "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	if err := services.Repair(ctx); err != nil {
		return err
	}
	if err := set.ensure(ctx, "services", metav1.NamespaceDefault, apiService(services.FirstIP(), endpoint.Port())); err != nil {
		return fmt.Errorf("create service default/kubernetes: %w", err)
	}
	return set.publish(ctx, endpoint, true)
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
	cur, err := r.read(ctx, namespace, obj.GetName(), false)
	if err != nil || cur.object != nil {
		return err
	}
	_, err = r.Create(ctx, namespace, obj, serverWrites)
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
	}, UpdateOptions{WriteOptions: serverWrites, MayCreate: create, Unconditional: true})
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
