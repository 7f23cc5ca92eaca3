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
		c.waits.end(types.UID(key.Name))
		return controller.Result{}, nil
	}
	switch {
	case o.deleting && o.orphan:
		return c.later(o, c.orphan(ctx, o))
	case o.deleting && o.foreground:
		return c.later(o, c.deleteDependents(ctx, o))
	case o.deleting || len(o.owners) == 0:
		c.waits.end(o.uid)
		return controller.Result{}, nil
	}
	return c.judge(ctx, o)
}

// deleteDependents carries out a foreground deletion: dependents that block
// their owner are deleted, and when none is left the finalizer goes.
func (c *Controller) deleteDependents(ctx context.Context, o object) error {
	if c.blocked(o) {
		return nil
	}
	m, err := c.awaitGraph(ctx, o)
	if err != nil || c.blocked(o) {
		return err
	}
	if err := c.holds(m); err != nil {
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

// unblockOwners has none of an object's owners wait for it. They stay its owners.
func (c *Controller) unblockOwners(ctx context.Context, o object) error {
	return c.change(ctx, o, func(live *metav1.PartialObjectMetadata) map[string]any {
		refs, blocks, changed := slices.Clone(live.OwnerReferences), false, false
		for i := range refs {
			if b := refs[i].BlockOwnerDeletion; b != nil && *b {
				refs[i].BlockOwnerDeletion, changed = &blocks, true
			}
		}
		if !changed {
			return nil
		}
		return map[string]any{"ownerReferences": refs}
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
