package disruption

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// expected adds up what the controllers of the pods want. Pods without a
// controller count for nothing: no controller would replace them.
func (c *Controller) expected(ctx context.Context, covered []*corev1.Pod) (int32, error) {
	scales := map[types.UID]int32{}
	seen := map[types.UID]bool{}
	for _, pod := range covered {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil || seen[ref.UID] {
			continue
		}
		seen[ref.UID] = true
		uid, replicas, err := c.scaleOf(ctx, pod.Namespace, ref)
		if err != nil {
			return 0, err
		}
		scales[uid] = replicas
	}
	var total int32
	for _, n := range scales {
		total += n
	}
	return total, nil
}

// scaleOf returns how many pods a pod's controller wants in the end, and the UID
// of the object that says so: a ReplicaSet in a rollout holds a part of what its
// Deployment wants.
func (c *Controller) scaleOf(ctx context.Context, namespace string, ref *metav1.OwnerReference) (types.UID, int32, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", 0, fmt.Errorf("controller of pods: %w", err)
	}
	switch (schema.GroupKind{Group: gv.Group, Kind: ref.Kind}) {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}:
		set, ok := c.sets.Lister().Get(namespace, ref.Name)
		if !ok || set.UID != ref.UID {
			break
		}
		owner := metav1.GetControllerOfNoCopy(set)
		if owner == nil || owner.Kind != "Deployment" {
			return set.UID, replicas(set.Spec.Replicas), nil
		}
		return c.scaleOf(ctx, namespace, owner)
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		if d, ok := c.deployments.Lister().Get(namespace, ref.Name); ok && d.UID == ref.UID {
			return d.UID, replicas(d.Spec.Replicas), nil
		}
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		if set, ok := c.statefulSets.Lister().Get(namespace, ref.Name); ok && set.UID == ref.UID {
			return set.UID, replicas(set.Spec.Replicas), nil
		}
	}
	return c.askScale(ctx, namespace, gv, ref)
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// askScale reads the scale subresource of an owner of any kind. A controller
// that is gone wants nothing.
func (c *Controller) askScale(ctx context.Context, namespace string, gv schema.GroupVersion, ref *metav1.OwnerReference) (types.UID, int32, error) {
	kind := gv.WithKind(ref.Kind)
	resource, remembered, err := c.resourceOf(ctx, kind)
	if err != nil {
		return "", 0, err
	}
	replicas, err := c.scaleAt(ctx, resource, namespace, ref)
	if remembered && apierrors.IsNotFound(err) {
		// The kind may be served in another version by now.
		c.resources.Delete(kind.GroupKind())
		if resource, _, err = c.resourceOf(ctx, kind); err == nil {
			replicas, err = c.scaleAt(ctx, resource, namespace, ref)
		}
	}
	if apierrors.IsNotFound(err) {
		return ref.UID, 0, nil
	}
	return ref.UID, replicas, err
}

// scaleAt is askScale at one place. An owner that is not there, or is another
// one by that name, is an error that says it was not found.
func (c *Controller) scaleAt(ctx context.Context, resource schema.GroupVersionResource, namespace string, ref *metav1.OwnerReference) (int32, error) {
	endpoint := client.Metadata(c.client, resource).Namespace(namespace)
	scale := &autoscalingv1.Scale{}
	err := endpoint.SubResource("scale").Get(ctx, ref.Name, scale, metav1.GetOptions{})
	switch {
	case err == nil && scale.UID == ref.UID:
		return scale.Spec.Replicas, nil
	case err != nil && !apierrors.IsNotFound(err):
		return 0, fmt.Errorf("scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	// That something was not found may mean the object or its scale.
	owner, err := endpoint.Get(ctx, ref.Name, metav1.GetOptions{})
	if err == nil && owner.UID != ref.UID {
		err = apierrors.NewNotFound(resource.GroupResource(), ref.Name)
	}
	if err != nil {
		return 0, fmt.Errorf("controller %s %s of pods: %w", ref.Kind, ref.Name, err)
	}
	return 0, fmt.Errorf("%s does not implement the scale subresource", resource.GroupResource())
}

// resourceOf finds where a kind is served, and asks the server only for kinds
// that it was not asked for before; remembered says that it was.
func (c *Controller) resourceOf(ctx context.Context, gvk schema.GroupVersionKind) (resource schema.GroupVersionResource, remembered bool, err error) {
	if known, ok := c.resources.Load(gvk.GroupKind()); ok {
		return known.(schema.GroupVersionResource), true, nil
	}
	served, err := c.client.Discover(ctx)
	for _, r := range served {
		c.resources.Store(schema.GroupKind{Group: r.GroupVersionResource.Group, Kind: r.Kind}, r.GroupVersionResource)
	}
	if known, ok := c.resources.Load(gvk.GroupKind()); ok {
		return known.(schema.GroupVersionResource), false, nil
	}
	if err != nil {
		return schema.GroupVersionResource{}, false, fmt.Errorf("find the kind of the controller of pods: %w", err)
	}
	return schema.GroupVersionResource{}, false, fmt.Errorf("the server does not serve %s, which controls pods", gvk)
}
