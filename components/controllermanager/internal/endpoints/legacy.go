package endpoints

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
)

// legacyMost is where an Endpoints object is cut off, as Kubernetes does.
const legacyMost = 1000

// writeLegacy keeps the Endpoints object that kubectl before 1.33 and other
// older clients read. Its end comes with the Service's, by the owner
// reference.
func (c *Controller) writeLegacy(ctx context.Context, service *corev1.Service, wanted []group) error {
	api := c.legacyAPI.Namespace(service.Namespace)
	subsets := legacySubsets(wanted)
	current, err := api.Get(ctx, service.Name, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		if there, err := c.stillThere(ctx, service); !there || err != nil {
			return err
		}
		_, err = api.Create(ctx, &corev1.Endpoints{ //nolint:staticcheck // Written for clients that read it.
			ObjectMeta: metav1.ObjectMeta{
				Namespace: service.Namespace, Name: service.Name, Labels: service.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
			},
			Subsets: subsets,
		}, metav1.CreateOptions{})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
			return nil
		}
	case err == nil && !equality.Semantic.DeepEqual(current.Subsets, subsets):
		update := current.DeepCopy()
		update.Subsets = subsets
		_, err = api.Update(ctx, update, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("write Endpoints: %w", err)
	}
	return nil
}

// deleteLegacy deletes the Endpoints that somebody has written for a Service that is deleted, as Kubernetes does. Those of this
// controller have an owner, and go with it; and those that have never had a Service stay.
func (c *Controller) deleteLegacy(ctx context.Context, key controller.Key) error {
	if _, ok := c.deleted.Load(key); !ok {
		return nil
	}
	api := c.legacyAPI.Namespace(key.Namespace)
	current, err := api.Get(ctx, key.Name, metav1.GetOptions{})
	if err == nil && metav1.GetControllerOf(current) == nil {
		// That there is a Service again has no version that Consistent could wait for.
		_, err = c.serviceAPI.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // the version is of before: who writes them for a Service that comes now keeps them
			err = api.Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion}})
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the Endpoints of a Service that is gone: %w", err)
	}
	c.deleted.Delete(key)
	return nil
}

func legacySubsets(wanted []group) []corev1.EndpointSubset { //nolint:staticcheck // As above.
	var subsets []corev1.EndpointSubset //nolint:staticcheck // As above.
	left := legacyMost
	for _, g := range wanted {
		var subset corev1.EndpointSubset //nolint:staticcheck // As above.
		for _, p := range g.ports {
			subset.Ports = append(subset.Ports, corev1.EndpointPort{ //nolint:staticcheck // As above.
				Name: deref(p.Name), Port: deref(p.Port), Protocol: deref(p.Protocol), AppProtocol: p.AppProtocol,
			})
		}
		for _, e := range g.endpoints {
			if left == 0 {
				break
			}
			left--
			address := corev1.EndpointAddress{ //nolint:staticcheck // As above.
				IP: e.Addresses[0], NodeName: e.NodeName, TargetRef: e.TargetRef, Hostname: deref(e.Hostname),
			}
			switch {
			case deref(e.Conditions.Ready):
				subset.Addresses = append(subset.Addresses, address)
			case !deref(e.Conditions.Terminating):
				subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
			}
		}
		if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
			subsets = append(subsets, subset)
		}
	}
	return subsets
}
