package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// Resolver resolves Services to endpoints, for webhooks that refer to one.
// The server does it itself because a cluster may have no proxy.
type Resolver struct{ set *registry.Set }

// NewResolver returns a Resolver. It does no I/O.
func NewResolver(set *registry.Set) Resolver { return Resolver{set} }

// Resolve returns the address of one ready endpoint of a Service's port, or
// the name that an ExternalName stands for. It sees every Service and EndpointSlice
// that this server has acknowledged: the next request after the one that has made a
// webhook's endpoint ready finds it.
func (r Resolver) Resolve(ctx context.Context, namespace, name string, port int32) (string, error) {
	services, all, err := r.snapshot(ctx, "", "services")
	if err != nil {
		return "", err
	}
	object, ok := all.Get(namespace + "/" + name)
	if !ok {
		return "", fmt.Errorf("service %s/%s not found", namespace, name)
	}
	service, err := registry.DecodeAs[*corev1.Service](ctx, services, object)
	if err != nil {
		return "", err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(port))), nil
	}
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			return r.endpoint(ctx, namespace, name, p.Name)
		}
	}
	return "", fmt.Errorf("service %s/%s has no port %d", namespace, name, port)
}

// endpoint returns the first ready address in the EndpointSlices of a Service.
func (r Resolver) endpoint(ctx context.Context, namespace, name, portName string) (string, error) {
	slices, all, err := r.snapshot(ctx, discoveryv1.GroupName, "endpointslices")
	if err != nil {
		return "", err
	}
	for object := range all.Range(namespace+"/", "") {
		if of, _ := object.Attributes.Labels.Lookup(discoveryv1.LabelServiceName); of != name {
			continue
		}
		slice, err := registry.DecodeAs[*discoveryv1.EndpointSlice](ctx, slices, object)
		if err != nil {
			return "", fmt.Errorf("endpointslice %s: %w", object.Key, err)
		}
		if address, ok := ready(slice, portName); ok {
			return address, nil
		}
	}
	return "", fmt.Errorf("service %s/%s has no endpoint that is ready", namespace, name)
}

// ready returns a ready address of the slice that serves the port, and that the server may call.
func ready(slice *discoveryv1.EndpointSlice, portName string) (string, bool) {
	for _, p := range slice.Ports {
		if p.Port == nil || p.Name != nil && *p.Name != portName || p.Name == nil && portName != "" {
			continue
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) && validate.MayCall(slice, e.Addresses[0]) {
				return net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))), true
			}
		}
	}
	return "", false
}

// snapshot returns the objects of a kind. While the server starts, there are none yet.
func (r Resolver) snapshot(ctx context.Context, group, plural string) (registry.Registry, watchcache.Snapshot, error) {
	kind, ok := r.set.Lookup(group, "v1", plural)
	if !ok {
		return kind, watchcache.Snapshot{}, fmt.Errorf("%s are not served", plural)
	}
	if cache := kind.Cache(); cache == nil || !cache.IsReady() {
		return kind, watchcache.Snapshot{}, errors.New("the server has not read " + plural + " yet")
	}
	objects, err := kind.Snapshot(ctx)
	return kind, objects, err
}
