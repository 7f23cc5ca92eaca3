package pods

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Claim returns the pods among candidates that belong to owner. Orphans that
// the selector matches are adopted; own pods that it no longer matches are
// released. alive is asked once, before the first adoption, whether the owner
// still exists and is not being deleted according to the API server itself:
// a cache that is behind must not adopt for the dead.
func (c *Control) Claim(ctx context.Context, owner metav1.Object, selector labels.Selector, candidates []*corev1.Pod, alive func(context.Context) (bool, error)) ([]*corev1.Pod, error) {
	var mine []*corev1.Pod
	asked, mayAdopt := false, false
	for _, pod := range candidates {
		ref := metav1.GetControllerOfNoCopy(pod)
		matches := selector.Matches(labels.Set(pod.Labels))
		switch {
		case ref != nil && ref.UID != owner.GetUID():
			continue
		case ref != nil && matches:
			mine = append(mine, pod)
			continue
		case ref != nil:
			if err := c.release(ctx, owner, pod); err != nil {
				return nil, err
			}
			continue
		case !matches || owner.GetDeletionTimestamp() != nil || !Active(pod):
			continue
		}
		if !asked {
			var err error
			if mayAdopt, err = alive(ctx); err != nil {
				return nil, err
			}
			asked = true
		}
		if !mayAdopt {
			continue
		}
		adopted, err := c.adopt(ctx, owner, pod)
		if err != nil {
			return nil, err
		}
		if adopted {
			mine = append(mine, pod)
		}
	}
	return mine, nil
}

func (c *Control) adopt(ctx context.Context, owner metav1.Object, pod *corev1.Pod) (bool, error) {
	refs := append(append([]metav1.OwnerReference(nil), pod.OwnerReferences...), *metav1.NewControllerRef(owner, c.kind))
	err := c.writeOwners(ctx, pod, refs)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return false, nil // gone, changed, or taken by another controller: the watch tells
	}
	if err != nil {
		return false, fmt.Errorf("adopt pod %s: %w", pod.Name, err)
	}
	return true, nil
}

func (c *Control) release(ctx context.Context, owner metav1.Object, pod *corev1.Pod) error {
	refs := []metav1.OwnerReference{}
	for _, ref := range pod.OwnerReferences {
		if ref.UID != owner.GetUID() {
			refs = append(refs, ref)
		}
	}
	err := c.writeOwners(ctx, pod, refs)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release pod %s: %w", pod.Name, err)
	}
	return nil
}

func (c *Control) writeOwners(ctx context.Context, pod *corev1.Pod, refs []metav1.OwnerReference) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "ownerReferences": refs,
	}})
	if err != nil {
		return err
	}
	return c.patchOwner(ctx, pod, patch)
}
