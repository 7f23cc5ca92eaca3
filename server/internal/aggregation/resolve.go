package aggregation

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// resolver finds the endpoints of Services in the watch caches. This server does it
// itself, and connects to endpoints and not to cluster IPs, because a cluster may have no
// proxy (in terms of kube-apiserver: --enable-aggregator-routing).
type resolver struct{ services, slices registry.Registry }

// unresolved is why a Service has no endpoint: the reason and the message of the
// condition Available.
type unresolved struct{ reason, message string }

func (u *unresolved) Error() string { return u.message }

// resolve returns the addresses of a Service's ready endpoints, at least one, in the
// order of the caches. Its error is *unresolved.
func (r resolver) resolve(_ context.Context, ref *apiregistrationv1.ServiceReference) ([]string, error) {
	const notFound = "ServiceNotFound"
	service, ok := readService(r.services, ref)
	if !ok {
		return nil, &unresolved{notFound, fmt.Sprintf("service/%s in %q is not present", ref.Name, ref.Namespace)}
	}
	port := *ref.Port
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(port)))}, nil
	}
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			return r.endpoints(ref, p.Name)
		}
	}
	return nil, &unresolved{"ServicePortError", fmt.Sprintf("service/%s in %q is not listening on port %d", ref.Name, ref.Namespace, port)}
}

func readService(services registry.Registry, ref *apiregistrationv1.ServiceReference) (*corev1.Service, bool) {
	object, ok := services.Cache().Current().Get(ref.Namespace + "/" + ref.Name)
	if !ok {
		return nil, false
	}
	var service corev1.Service
	return &service, json.Unmarshal(object.JSON(), &service) == nil
}

// endpoints returns the addresses in the EndpointSlices of a Service that the server may call.
func (r resolver) endpoints(ref *apiregistrationv1.ServiceReference, portName string) ([]string, error) {
	var addresses []string
	slices := 0
	for object := range r.slices.Cache().Current().Range(ref.Namespace+"/", "") {
		if of, _ := object.Attributes.Labels.Lookup(discoveryv1.LabelServiceName); of != ref.Name {
			continue
		}
		var slice discoveryv1.EndpointSlice
		if json.Unmarshal(object.JSON(), &slice) == nil {
			slices++
			addresses = append(addresses, readyAddresses(&slice, portName)...)
		}
	}
	switch {
	case slices == 0:
		return nil, &unresolved{"EndpointsNotFound", fmt.Sprintf("cannot find endpointslices for service/%s in %q", ref.Name, ref.Namespace)}
	case len(addresses) == 0:
		return nil, &unresolved{"MissingEndpoints", fmt.Sprintf("endpointslices for service/%s in %q have no addresses with port name %q", ref.Name, ref.Namespace, portName)}
	}
	return addresses, nil
}

func readyAddresses(slice *discoveryv1.EndpointSlice, portName string) []string {
	var addresses []string
	for _, p := range slice.Ports {
		if p.Port == nil || p.Name != nil && *p.Name != portName || p.Name == nil && portName != "" {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, address := range e.Addresses {
				if validate.MayCall(slice, address) {
					addresses = append(addresses, net.JoinHostPort(address, strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	return addresses
}
