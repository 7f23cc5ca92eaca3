package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// serviceAddresses resolves Services to endpoints, for webhooks that refer to one.
// The server does it itself because a cluster may have no proxy.
type serviceAddresses struct {
	table  *resource.Table
	caches *caches
}

// Resolve returns the address of one ready endpoint of a Service's port, or
// the name that an ExternalName stands for.
func (a serviceAddresses) Resolve(_ context.Context, namespace, name string, port int32) (string, error) {
	var service corev1.Service
	if err := a.read("", "services", namespace+"/"+name, &service); err != nil {
		return "", err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(port))), nil
	}
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			return a.endpoint(namespace, name, p.Name)
		}
	}
	return "", fmt.Errorf("service %s/%s has no port %d", namespace, name, port)
}

// endpoint returns the first ready address in the EndpointSlices of a Service.
func (a serviceAddresses) endpoint(namespace, name, portName string) (string, error) {
	cache := a.caches.Of(a.table.Lookup(discoveryv1.GroupName, "v1", "endpointslices"))
	for object := range cache.Current().Range(namespace+"/", "") {
		if of, _ := object.Attributes.Labels.Lookup(discoveryv1.LabelServiceName); of != name {
			continue
		}
		var slice discoveryv1.EndpointSlice
		if err := json.Unmarshal(object.JSON, &slice); err != nil {
			return "", fmt.Errorf("endpointslice %s: %w", object.Key, err)
		}
		if address, ok := ready(&slice, portName); ok {
			return address, nil
		}
	}
	return "", fmt.Errorf("service %s/%s has no endpoint that is ready", namespace, name)
}

// ready returns a ready address of the slice that serves the port.
func ready(slice *discoveryv1.EndpointSlice, portName string) (string, bool) {
	for _, p := range slice.Ports {
		if p.Port == nil || p.Name != nil && *p.Name != portName || p.Name == nil && portName != "" {
			continue
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				return net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))), true
			}
		}
	}
	return "", false
}

// read decodes one object from its cache.
func (a serviceAddresses) read(group, plural, key string, into any) error {
	object, ok := a.caches.Of(a.table.Lookup(group, "v1", plural)).Current().Get(key)
	if !ok {
		return fmt.Errorf("there is no %s %s", plural, key)
	}
	return json.Unmarshal(object.JSON, into)
}
