package endpoints

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/controller"
)

const (
	// managedBy marks the slices that this controller may change.
	managedBy = "endpointslice-controller.k8s.io"
	// perSlice is the most endpoints of one slice.
	perSlice = 100
)

// fit makes the service's slices show the wanted groups. An endpoint stays in
// the slice it is in; new ones fill slices with room before others are made.
func (c *Controller) fit(ctx context.Context, service *corev1.Service, wanted []group) error {
	existing := c.slices.Lister().List(service.Namespace, labels.SelectorFromSet(labels.Set{
		discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: managedBy,
	}))
	if len(wanted) == 0 {
		// A service without pods still has one slice: consumers can distinguish
		// "nothing behind it" from "not looked at yet".
		wanted = []group{{ports: []discoveryv1.EndpointPort{}}}
	}
	byPorts := map[string][]*discoveryv1.EndpointSlice{}
	for _, slice := range existing {
		if metav1.IsControlledBy(slice, service) && slice.DeletionTimestamp == nil {
			id := portsID(slice.Ports)
			byPorts[id] = append(byPorts[id], slice)
		}
	}
	var failed []error
	for _, g := range wanted {
		failed = append(failed, c.fitGroup(ctx, service, g, byPorts[g.id]))
		delete(byPorts, g.id)
	}
	for _, pending := range byPorts {
		for _, slice := range pending {
			failed = append(failed, c.remove(ctx, service, slice))
		}
	}
	return errors.Join(failed...)
}

func (c *Controller) fitGroup(ctx context.Context, service *corev1.Service, g group, existing []*discoveryv1.EndpointSlice) error {
	contents := arrange(existing, g.endpoints)
	var failed []error
	kept := 0
	for i, endpoints := range contents {
		empty := len(endpoints) == 0
		switch {
		case i >= len(existing):
			failed = append(failed, c.create(ctx, service, g.ports, endpoints))
		case empty && (kept > 0 || len(contents) > i+1):
			failed = append(failed, c.remove(ctx, service, existing[i]))
			continue
		default:
			failed = append(failed, c.update(ctx, service, existing[i], endpoints))
		}
		kept++
	}
	return errors.Join(failed...)
}

// arrange says what each slice should hold: first the existing ones, in their
// order, then new ones. An endpoint stays where it is.
func arrange(existing []*discoveryv1.EndpointSlice, wanted []discoveryv1.Endpoint) [][]discoveryv1.Endpoint {
	missing := map[string]discoveryv1.Endpoint{}
	for _, endpoint := range wanted {
		missing[endpoint.Addresses[0]] = endpoint
	}
	contents := make([][]discoveryv1.Endpoint, 0, len(existing))
	for i, slice := range existing {
		contents = append(contents, nil)
		for _, old := range slice.Endpoints {
			if endpoint, ok := missing[old.Addresses[0]]; ok {
				contents[i] = append(contents[i], endpoint)
				delete(missing, old.Addresses[0])
			}
		}
	}
	room := 0                         // all slices before it are full
	for _, endpoint := range wanted { // in order, so that the result can be repeated
		if _, ok := missing[endpoint.Addresses[0]]; ok {
			for room < len(contents) && len(contents[room]) >= perSlice {
				room++
			}
			if room == len(contents) {
				contents = append(contents, nil)
			}
			contents[room] = append(contents[room], endpoint)
			delete(missing, endpoint.Addresses[0])
		}
	}
	if len(contents) == 0 {
		contents = append(contents, nil)
	}
	return contents
}

func sliceLabels(service *corev1.Service) map[string]string {
	copied := map[string]string{}
	for key, value := range service.Labels {
		copied[key] = value
	}
	copied[discoveryv1.LabelServiceName] = service.Name
	copied[discoveryv1.LabelManagedBy] = managedBy
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		copied[corev1.IsHeadlessService] = ""
	}
	return copied
}

// stillThere reports whether a service may get a slice: it exists, and the informers have come to its version. That it has none
// may be because it is gone, and a deletion has no version, so the server is asked.
func (c *Controller) stillThere(ctx context.Context, service *corev1.Service) (bool, error) {
	if err := controller.Consistent(ctx, service); err != nil {
		return false, err
	}
	live, err := c.serviceAPI.Namespace(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read service %s before it gets a slice: %w", service.Name, err)
	case live.UID != service.UID:
		return false, nil // the watch brings that
	}
	return true, controller.Consistent(ctx, live)
}

// create makes a slice that none of those that there are can be instead of. Another leader may have
// made one.
func (c *Controller) create(ctx context.Context, service *corev1.Service, ports []discoveryv1.EndpointPort, endpoints []discoveryv1.Endpoint) error {
	if there, err := c.stillThere(ctx, service); !there || err != nil {
		return err
	}
	if endpoints == nil {
		endpoints = []discoveryv1.Endpoint{}
	}
	created, err := c.sliceAPI.Namespace(service.Namespace).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, GenerateName: service.Name + "-", Labels: sliceLabels(service),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: ports, Endpoints: endpoints,
	}, metav1.CreateOptions{})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create slice: %w", err)
	}
	c.expectation.ExpectCreated(controller.KeyOf(service), created.Name, created.UID)
	return nil
}

func (c *Controller) update(ctx context.Context, service *corev1.Service, slice *discoveryv1.EndpointSlice, endpoints []discoveryv1.Endpoint) error {
	wanted := sliceLabels(service)
	if equality.Semantic.DeepEqual(slice.Endpoints, endpoints) && labels.Equals(slice.Labels, wanted) {
		return nil
	}
	update := slice.DeepCopy()
	update.Labels = wanted
	update.Endpoints = endpoints
	if update.Endpoints == nil {
		update.Endpoints = []discoveryv1.Endpoint{}
	}
	_, err := c.sliceAPI.Namespace(slice.Namespace).Update(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the newer state is on its way and brings us back
	}
	if err != nil {
		return fmt.Errorf("update slice %s: %w", slice.Name, err)
	}
	return nil
}

// remove deletes a slice for which there are no endpoints.
func (c *Controller) remove(ctx context.Context, service *corev1.Service, slice *discoveryv1.EndpointSlice) error {
	if err := controller.Consistent(ctx, service); err != nil {
		return err
	}
	c.expectation.ExpectDeleted(controller.KeyOf(service), slice.UID)
	err := c.sliceAPI.Namespace(slice.Namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &slice.UID}})
	if err != nil {
		c.expectation.Observed(slice.UID)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete slice %s: %w", slice.Name, err)
	}
	return nil
}
