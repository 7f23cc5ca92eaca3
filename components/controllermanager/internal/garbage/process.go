package garbage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
)

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	o, ok := c.graph.get(types.UID(key.Name))
	if !ok {
		return controller.Result{}, nil
	}
	switch {
	case o.deleting && o.orphan:
		return c.later(o, c.orphan(ctx, o))
	case o.deleting && o.foreground:
		return c.later(o, c.deleteDependents(ctx, o))
	case o.deleting || len(o.owners) == 0:
		return controller.Result{}, nil
	}
	return controller.Result{}, c.judge(ctx, o)
}

// judge deletes an object all of whose owners are gone. If some still exist,
// references to the others are cut; an object whose last owners are being
// deleted in the foreground goes in the foreground too, so that they wait for
// all below it.
func (c *Controller) judge(ctx context.Context, o object) error {
	var solid, waiting, dangling []metav1.OwnerReference
	for _, ref := range o.owners {
		state, err := c.ownerState(ctx, o, ref)
		if err != nil {
			return err
		}
		switch state {
		case ownerExists:
			solid = append(solid, ref)
		case ownerWaits:
			waiting = append(waiting, ref)
		case ownerGone:
			dangling = append(dangling, ref)
		}
	}
	switch {
	case len(solid) > 0 && len(dangling)+len(waiting) > 0:
		return c.cutReferences(ctx, o, append(dangling, waiting...))
	case len(solid) > 0:
		return nil
	case len(waiting) > 0 && c.graph.hasDependents(o.uid):
		return c.delete(ctx, o, metav1.DeletePropagationForeground)
	default:
		return c.delete(ctx, o, metav1.DeletePropagationBackground)
	}
}

type ownerState int

const (
	ownerExists ownerState = iota
	ownerWaits             // it is being deleted and waits for its dependents
	ownerGone
)

// ownerState believes the graph when it shows the owner, for an owner that is
// there is not mourned for long; that it is gone only the server can say.
func (c *Controller) ownerState(ctx context.Context, o object, ref metav1.OwnerReference) (ownerState, error) {
	if owner, ok := c.graph.get(ref.UID); ok && sameScope(owner, o) {
		if owner.deleting && owner.foreground {
			return ownerWaits, nil
		}
		return ownerExists, nil
	}
	k, ok := c.kindOf(ref)
	if !ok {
		// A kind that is not served (any more) says nothing about its objects.
		return ownerExists, nil
	}
	namespace := ""
	if k.namespaced {
		namespace = o.namespace
	}
	sought := owner{k.resource, namespace, ref.Name, ref.UID}
	if c.absent.has(sought) {
		return ownerGone, nil
	}
	live, err := client.Metadata(c.client, k.resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return ownerExists, fmt.Errorf("look for owner %s %s: %w", ref.Kind, ref.Name, err)
	case err != nil || live.UID != ref.UID:
		c.absent.add(sought)
		return ownerGone, nil
	}
	if owner := describe(k.resource, live); owner.deleting && owner.foreground {
		return ownerWaits, nil
	}
	return ownerExists, nil
}

// sameScope: an owner is cluster-scoped or in the dependent's namespace.
func sameScope(owner, dependent object) bool {
	return owner.namespace == "" || owner.namespace == dependent.namespace
}

// deleteDependents carries out a foreground deletion: dependents that block
// their owner are deleted, and when none is left the finalizer goes.
func (c *Controller) deleteDependents(ctx context.Context, o object) error {
	if c.blocked(o) {
		return nil
	}
	if err := c.awaitGraph(ctx, o); err != nil || c.blocked(o) {
		return err
	}
	return c.removeFinalizer(ctx, o, metav1.FinalizerDeleteDependents)
}

// blocked reports whether the graph shows dependents that block an owner, and has those looked at that can go.
func (c *Controller) blocked(o object) bool {
	blocked, tell := c.graph.blocked(o.uid)
	for _, dependent := range tell {
		c.enqueue(dependent) // judge deletes it, unless it has other owners
	}
	return blocked
}

// orphan cuts the references of all dependents and then lets the owner go. A dependent that
// the graph does not show would go with the owner (kubernetes/kubernetes#26120), so it has to
// show all that there were when the owner was marked.
func (c *Controller) orphan(ctx context.Context, o object) error {
	if err := c.awaitGraph(ctx, o); err != nil {
		return err
	}
	for _, d := range c.graph.dependents(o.uid) {
		if err := c.cutReferences(ctx, d, []metav1.OwnerReference{{UID: o.uid}}); err != nil {
			return err
		}
	}
	return c.removeFinalizer(ctx, o, metav1.FinalizerOrphanDependents)
}

func (c *Controller) endpoint(o object) client.Resource[*metav1.PartialObjectMetadata] {
	return client.Metadata(c.client, o.resource).Namespace(o.namespace)
}

// delete deletes an object as the graph shows it, in one request: if it has changed, the
// server refuses that, and it is read first.
func (c *Controller) delete(ctx context.Context, o object, policy metav1.DeletionPropagation) error {
	if o.orphan { // that another client asked for stays in force
		policy = metav1.DeletePropagationOrphan
	}
	err := c.deleteVersion(ctx, o, o.version, policy)
	if apierrors.IsConflict(err) {
		return c.deleteLive(ctx, o, policy)
	}
	return err
}

// deleteLive deletes an object unless it has other owners than the graph shows.
func (c *Controller) deleteLive(ctx context.Context, o object, policy metav1.DeletionPropagation) error {
	live, err := c.endpoint(o).Get(ctx, o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.UID != o.uid {
		return nil // the watch will deliver that
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", o.resource.Resource, o.name, err)
	}
	// The references were judged as the graph showed them. If they are others
	// by now, that state must be judged, when it arrives.
	if !sameOwners(live.OwnerReferences, o.owners) {
		return nil
	}
	// An orphan finalizer that another client asked for stays in force.
	if slices.Contains(live.Finalizers, metav1.FinalizerOrphanDependents) {
		policy = metav1.DeletePropagationOrphan
	}
	return c.deleteVersion(ctx, o, live.ResourceVersion, policy)
}

// deleteVersion deletes an object if its version is still this.
func (c *Controller) deleteVersion(ctx context.Context, o object, version string, policy metav1.DeletionPropagation) error {
	err := c.pace.Do(ctx, func() error {
		return c.endpoint(o).Delete(ctx, o.name, metav1.DeleteOptions{
			PropagationPolicy: &policy,
			Preconditions:     &metav1.Preconditions{UID: &o.uid, ResourceVersion: &version},
		})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", o.resource.Resource, o.name, err)
	}
	c.log.Debug("deleted", "resource", o.resource.Resource, "namespace", o.namespace, "name", o.name, "policy", policy)
	return nil
}

func sameOwners(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.OwnerReference) bool { return x.UID == y.UID })
}

func (c *Controller) cutReferences(ctx context.Context, o object, refs []metav1.OwnerReference) error {
	cut := uidsOf(refs)
	return c.change(ctx, o, func(live *metav1.PartialObjectMetadata) map[string]any {
		kept := []metav1.OwnerReference{}
		for _, ref := range live.OwnerReferences {
			if !cut.Has(ref.UID) {
				kept = append(kept, ref)
			}
		}
		if len(kept) == len(live.OwnerReferences) {
			return nil
		}
		return map[string]any{"ownerReferences": kept}
	})
}

func (c *Controller) removeFinalizer(ctx context.Context, o object, finalizer string) error {
	return c.change(ctx, o, func(live *metav1.PartialObjectMetadata) map[string]any {
		kept := []string{}
		for _, f := range live.Finalizers {
			if f != finalizer {
				kept = append(kept, f)
			}
		}
		if len(kept) == len(live.Finalizers) {
			return nil
		}
		return map[string]any{"finalizers": kept}
	})
}

// change patches the metadata of the live object, guarded by its version.
// decide returns the fields to replace, or nil if there is nothing to do.
func (c *Controller) change(ctx context.Context, o object, decide func(live *metav1.PartialObjectMetadata) map[string]any) error {
	live, err := c.endpoint(o).Get(ctx, o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.UID != o.uid {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", o.resource.Resource, o.name, err)
	}
	fields := decide(live)
	if fields == nil {
		return nil
	}
	fields["uid"], fields["resourceVersion"] = live.UID, live.ResourceVersion
	patch, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return err
	}
	_, err = c.endpoint(o).Patch(ctx, o.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patch %s %s: %w", o.resource.Resource, o.name, err)
	}
	return nil
}
