package disruption

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/components/controllermanager/internal/scaling"
)

// mostAsked bounds the requests of one reconciliation, each of which comes after the one before it, on one of few
// workers: each pod may name another controller, which does not exist.
const mostAsked = 100

// survey is one look at the controllers of the pods of a budget.
type survey struct {
	*Controller
	asked int // controllers that only the server knows
	// refreshed says that kinds were discovered anew, because one was not found.
	refreshed bool
}

// expected adds up what the controllers of the pods want. Pods without a
// controller count for nothing: no controller would replace them.
func (c *Controller) expected(ctx context.Context, covered []*corev1.Pod) (int32, error) {
	scales := map[types.UID]int32{}
	seen := map[types.UID]bool{}
	s := &survey{Controller: c}
	for _, pod := range covered {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil || seen[ref.UID] {
			continue
		}
		seen[ref.UID] = true
		uid, replicas, err := s.scaleOf(ctx, pod.Namespace, ref)
		if err != nil {
			return 0, err
		}
		scales[uid] = replicas
	}
	return sum(maps.Values(scales)), nil
}

// sum is at most the most that a status can say: each owner may want as many.
func sum(scales iter.Seq[int32]) int32 {
	var total int64
	for n := range scales {
		total = min(total+int64(n), math.MaxInt32)
	}
	return int32(total)
}

// scaleOf returns how many pods a pod's controller wants in the end, and the UID
// of the object that says so: a ReplicaSet in a rollout holds a part of what its
// Deployment wants.
func (c *survey) scaleOf(ctx context.Context, namespace string, ref *metav1.OwnerReference) (types.UID, int32, error) {
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
func (c *survey) askScale(ctx context.Context, namespace string, gv schema.GroupVersion, ref *metav1.OwnerReference) (types.UID, int32, error) {
	if c.asked++; c.asked > mostAsked {
		return "", 0, fmt.Errorf("its pods have more than %d controllers whose scales have to be asked for", mostAsked)
	}
	kind := gv.WithKind(ref.Kind)
	served, err := c.servedAs(ctx, kind)
	if err != nil {
		return "", 0, err
	}
	replicas, err := c.scaleAt(ctx, served.GroupVersionResource(), namespace, ref)
	if !apierrors.IsNotFound(err) {
		return ref.UID, replicas, err
	}
	// The kind may be served in another version by now, or have no scale.
	if !c.refreshed {
		c.refreshed = true
		c.mapper.Invalidate()
	}
	now, err := c.servedAs(ctx, kind)
	if err != nil {
		return "", 0, err
	}
	if !scaling.Has(now) {
		return "", 0, fmt.Errorf("%s does not implement the scale subresource", now.GroupVersionResource().GroupResource())
	}
	if now.GroupVersionResource() != served.GroupVersionResource() {
		replicas, err = c.scaleAt(ctx, now.GroupVersionResource(), namespace, ref)
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return ref.UID, replicas, err
}

// scaleAt is askScale at one place. An owner that is not there, or is another
// one by that name, is an error that says it was not found. It reads the scale alone,
// because the controller may read no other part of owners of any kind.
func (c *Controller) scaleAt(ctx context.Context, resource schema.GroupVersionResource, namespace string, ref *metav1.OwnerReference) (int32, error) {
	scale := &autoscalingv1.Scale{}
	err := client.Metadata(c.client, resource).Namespace(namespace).SubResource(scaling.Subresource).Get(ctx, ref.Name, scale, metav1.GetOptions{})
	if err == nil && scale.UID != ref.UID {
		err = apierrors.NewNotFound(resource.GroupResource(), ref.Name)
	}
	if err != nil {
		return 0, fmt.Errorf("scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	return scale.Spec.Replicas, nil
}

// servedAs finds where a kind is served.
func (c *Controller) servedAs(ctx context.Context, kind schema.GroupVersionKind) (discovery.Resource, error) {
	served, err := scaling.Served(ctx, c.mapper, kind)
	if err != nil {
		return served, fmt.Errorf("find the kind of the controller of pods: %w", err)
	}
	return served, nil
}
