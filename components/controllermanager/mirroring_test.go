package controller_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const mirroring = "endpointslicemirroring-controller.k8s.io"

type (
	legacyEndpoints = corev1.Endpoints       //nolint:staticcheck // They are what is mirrored.
	legacySubset    = corev1.EndpointSubset  //nolint:staticcheck // As above.
	legacyAddress   = corev1.EndpointAddress //nolint:staticcheck // As above.
	legacyPort      = corev1.EndpointPort    //nolint:staticcheck // As above.
)

func newEndpoints(name string, ips ...string) *legacyEndpoints {
	subset := legacySubset{Ports: []legacyPort{{Port: 80}}}
	for _, ip := range ips {
		subset.Addresses = append(subset.Addresses, legacyAddress{IP: ip})
	}
	return &legacyEndpoints{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": name}}, Subsets: []legacySubset{subset}}
}

// awaitMirrored waits until the slices that mirror the Endpoints of a name have these addresses, and returns them.
func awaitMirrored(c *cluster, name, what string, want ...string) (slicesOf []*discoveryv1.EndpointSlice) {
	c.t.Helper()
	awaitEach(c, in[*discoveryv1.EndpointSlice](c), metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + name + "," + discoveryv1.LabelManagedBy + "=" + mirroring,
	}, what, func(all map[string]*discoveryv1.EndpointSlice) bool {
		var got []string
		slicesOf = nil
		for _, slice := range all {
			slicesOf = append(slicesOf, slice)
			for _, e := range slice.Endpoints {
				got = append(got, e.Addresses...)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	return slicesOf
}

// TestEndpointsAreMirrored: who reads EndpointSlices only finds what somebody has written as Endpoints, in each of its
// states, and no longer than the Service is without a selector.
func TestEndpointsAreMirrored(t *testing.T) {
	c := newCluster(t, 0)
	c.startManager()
	services, endpoints := in[*corev1.Service](c), in[*legacyEndpoints](c)
	create(c, services, newService("web", ""))
	written := create(c, endpoints, newEndpoints("web", "10.1.2.3"))
	slice := awaitMirrored(c, "web", "the address", "10.1.2.3")[0]
	if slice.AddressType != discoveryv1.AddressTypeIPv4 || len(slice.Ports) != 1 || *slice.Ports[0].Port != 80 || !metav1.IsControlledBy(slice, written) || slice.Labels["of"] != "web" {
		t.Errorf("%+v", slice)
	}
	setAddresses := func(ips ...string) {
		change(c, endpoints, "web", func(e *legacyEndpoints) { e.Subsets = newEndpoints("web", ips...).Subsets })
	}
	setAddresses("10.2.3.4")
	if again := awaitMirrored(c, "web", "another address", "10.2.3.4"); again[0].Name != slice.Name {
		t.Errorf("%s is there instead of %s, which could have been updated", again[0].Name, slice.Name)
	}
	setAddresses("10.2.3.4", "fd00::1")
	if families := awaitMirrored(c, "web", "two families", "10.2.3.4", "fd00::1"); len(families) != 2 {
		t.Errorf("%d slices for two families", len(families))
	}
	remove(c, in[*discoveryv1.EndpointSlice](c), slice.Name, metav1.DeleteOptions{})
	awaitMirrored(c, "web", "both families after one was deleted", "10.2.3.4", "fd00::1")

	change(c, endpoints, "web", func(e *legacyEndpoints) { e.Labels[discoveryv1.LabelSkipMirror] = "true" })
	awaitMirrored(c, "web", "no slice of what is to be skipped")
	change(c, endpoints, "web", func(e *legacyEndpoints) { delete(e.Labels, discoveryv1.LabelSkipMirror) })
	awaitMirrored(c, "web", "both families again", "10.2.3.4", "fd00::1")
	remove(c, endpoints, "web", metav1.DeleteOptions{})
	awaitMirrored(c, "web", "no slice of Endpoints that are gone")

	create(c, services, newService("selects", ""))
	create(c, endpoints, newEndpoints("selects", "10.3.4.5"))
	awaitMirrored(c, "selects", "the address, before there is a selector", "10.3.4.5")
	change(c, services, "selects", func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "web"} })
	awaitMirrored(c, "selects", "no slice of a Service with a selector")
}

// TestEndpointsThatAreNotMirrored: Endpoints without a Service, or by which a leader is elected, lead to no slices.
func TestEndpointsThatAreNotMirrored(t *testing.T) {
	c := newCluster(t, 0)
	c.startManager()
	services, endpoints := in[*corev1.Service](c), in[*legacyEndpoints](c)
	created := happened(c, in[*discoveryv1.EndpointSlice](c), newSlice("last", nil), added)
	create(c, services, newService("elects", ""))
	elects := newEndpoints("elects", "10.0.0.1")
	elects.Annotations = map[string]string{"control-plane.alpha.kubernetes.io/leader": "{}"}
	create(c, endpoints, elects)
	create(c, endpoints, newEndpoints("alone", "10.0.0.2"))
	service := create(c, services, newService("web", ""))
	create(c, endpoints, newEndpoints("web", "10.0.0.3"))
	awaitMirrored(c, "web", "the address", "10.0.0.3")
	remove(c, services, service.Name, metav1.DeleteOptions{})
	awaitMirrored(c, "web", "no slice of a Service that is gone")
	awaitEach(c, endpoints, metav1.ListOptions{}, "the Endpoints of a Service that is gone are deleted, and no others", func(all map[string]*legacyEndpoints) bool {
		return all["web"] == nil && all["elects"] != nil && all["alone"] != nil
	})
	create(c, services, newService("alone", ""))
	awaitMirrored(c, "alone", "the address of a Service that came later", "10.0.0.2")
	if got := created(); len(got) != 2 {
		t.Errorf("slices were created: %q", got)
	}
}

// TestAddressesThatAreNotMirrored: that some addresses are in no slice is reported on the Endpoints.
func TestAddressesThatAreNotMirrored(t *testing.T) {
	c := newCluster(t, 0)
	c.startManager()
	create(c, in[*corev1.Service](c), newService("large", ""))
	large := newEndpoints("large")
	for i := range 1001 {
		large.Subsets[0].Addresses = append(large.Subsets[0].Addresses, legacyAddress{IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250)})
	}
	create(c, in[*legacyEndpoints](c), large)
	awaitEach(c, in[*corev1.Event](c), metav1.ListOptions{FieldSelector: "reason=TooManyAddressesToMirror"}, "the event", func(all map[string]*corev1.Event) bool {
		for _, e := range all {
			return e.InvolvedObject.Kind == "Endpoints" && e.InvolvedObject.Name == "large"
		}
		return false
	})
}
