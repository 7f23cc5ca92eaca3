package statefulset

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// retention is what becomes of a set's claims (KEP-1847).
type retention struct {
	withSet bool // they go when the set is deleted
	withPod bool // one goes when its pod is not wanted any more
}

func retentionOf(set *appsv1.StatefulSet) retention {
	p := set.Spec.PersistentVolumeClaimRetentionPolicy
	if p == nil {
		return retention{}
	}
	return retention{
		withSet: p.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		withPod: p.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
}

// ownClaims gives the claims of the set's pods the owners that their policy
// wants, before any pod is deleted: the garbage collector does the rest. Sets
// that keep their claims need no look at them, unless they have just begun to.
func (c *Controller) ownClaims(ctx context.Context, set *appsv1.StatefulSet, owned []*corev1.Pod) error {
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	if retentionOf(set) == (retention{}) && set.Status.ObservedGeneration == set.Generation {
		return nil
	}
	for _, pod := range owned {
		ordinal, ok := ordinalOf(set, pod)
		if !ok {
			continue
		}
		for i := range set.Spec.VolumeClaimTemplates {
			if err := c.ownClaim(ctx, set, pod, claimName(&set.Spec.VolumeClaimTemplates[i], set, ordinal), ordinal); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Controller) ownClaim(ctx context.Context, set *appsv1.StatefulSet, pod *corev1.Pod, name string, ordinal int) error {
	api := c.claimAPI.Namespace(set.Namespace)
	claim, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", name, err)
	}
	refs := ownersWanted(set, pod, claim.OwnerReferences, ordinal)
	if sameOwners(refs, claim.OwnerReferences) {
		return nil
	}
	// A pod that is no surplus any more, and is deleted for another reason, would take its claim along.
	if err := controller.Consistent(ctx, set, pod); err != nil {
		return err
	}
	claim.OwnerReferences = refs
	_, err = api.Update(ctx, claim, metav1.UpdateOptions{}) // the role of this controller has no patch of claims
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("set the owner of claim %s: %w", name, err)
	}
	return nil
}

// ownersWanted returns the owners of a claim: the set while its deletion is to
// take the claim along, the pod once it is itself surplus. A claim with both
// would be kept by the set when the pod goes. Others' references stay.
func ownersWanted(set *appsv1.StatefulSet, pod *corev1.Pod, refs []metav1.OwnerReference, ordinal int) []metav1.OwnerReference {
	policy := retentionOf(set)
	first := firstOrdinal(set)
	surplus := ordinal < first || ordinal >= first+replicas(set)
	wanted := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.UID == set.UID || ref.Kind == podKind.Kind && ref.Name == pod.Name
	})
	switch {
	case policy.withPod && surplus:
		wanted = append(wanted, metav1.OwnerReference{APIVersion: "v1", Kind: podKind.Kind, Name: pod.Name, UID: pod.UID})
	case policy.withSet && (!surplus || !policy.withPod):
		wanted = append(wanted, *metav1.NewControllerRef(set, kind))
	}
	return wanted
}

func sameOwners(a, b []metav1.OwnerReference) bool {
	if len(a) != len(b) {
		return false
	}
	for _, ref := range a {
		if !slices.ContainsFunc(b, func(other metav1.OwnerReference) bool { return other.UID == ref.UID }) {
			return false
		}
	}
	return true
}
