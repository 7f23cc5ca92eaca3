package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/objectmeta"
)

// claimHost claims the host name for the Website, and returns the UID of the Website
// that has it then. A host name is the name of a ConfigMap, and so it has one owner.
func (r *reconciler) claimHost(ctx context.Context, website *Website) (owner string, err error) {
	if host, ok := r.hosts.Get(hostsNamespace, website.Spec.Host); ok {
		return host.Labels[websiteLabel], nil
	}
	hosts := client.For[*corev1.ConfigMap](r.client).Namespace(hostsNamespace)
	host, err := hosts.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: website.Spec.Host, Labels: map[string]string{websiteLabel: string(website.UID)}},
		Data:       map[string]string{"website": website.Namespace + "/" + website.Name},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// The cache does not show it yet. It may be an earlier call's, of which the
		// answer was lost: ask the server.
		host, err = hosts.Get(ctx, website.Spec.Host, metav1.GetOptions{})
	}
	if err != nil {
		return "", err
	}
	return host.Labels[websiteLabel], nil
}

// finalize frees the host name of a deleted Website, and then lets it go.
func (r *reconciler) finalize(ctx context.Context, website *Website) error {
	changed := website.DeepCopy()
	if !objectmeta.RemoveFinalizer(changed, finalizer) {
		return nil // others have finalizers
	}
	// By label, and on the server: the cache may not show yet what was just claimed.
	err := client.For[*corev1.ConfigMap](r.client).Namespace(hostsNamespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: websiteLabel + "=" + string(website.UID)})
	if err != nil {
		return err
	}
	_, err = client.For[*Website](r.client).MergePatch(ctx, website, changed, client.MergePatchOptions{OptimisticLock: true})
	if apierrors.IsNotFound(err) {
		return nil // it is gone: an earlier call's answer was lost
	}
	return err
}
