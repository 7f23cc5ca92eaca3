package garbage

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// listPatience is for how long the server may take to list what may depend on one owner.
const listPatience = 30 * time.Second

// orphan cuts the references of all dependents and then lets the owner go. A dependent of which the collector does not
// know would go with the owner (kubernetes/kubernetes#26120), so the graph has to show all that there were when the
// owner was marked. What cannot be known keeps the owner: to wait undoes nothing, and to delete cannot be undone.
//
// A controller that has read the owner before the mark may give it a dependent after it. So the graph is looked at once
// more, at the version that the server had come to when they were cut.
func (c *Controller) orphan(ctx context.Context, o object) error {
	if version, cut := c.waits.isCut(o.uid); cut {
		o.version = version
	} else {
		if _, _, err := c.letGo(ctx, o); err != nil {
			return err
		}
		if err := c.aim(ctx, &o); err != nil {
			return err
		}
	}
	adopted, unknown, err := c.letGo(ctx, o)
	if err != nil {
		return err
	}
	if adopted > 0 { // and there may be more
		if err := c.aim(ctx, &o); err != nil {
			return err
		}
		return fmt.Errorf("%w: it was given %d more", errGraphBehind, adopted)
	}
	if unknown != nil {
		c.log.Warn("an owner goes, and what it has of kinds that are not known does not stay",
			"resource", o.resource.Resource, "namespace", o.namespace, "name", o.name, "error", unknown)
	}
	if err := c.removeFinalizer(ctx, o, metav1.FinalizerOrphanDependents); err != nil {
		c.waits.startOver(o.uid) // what was seen is old when that succeeds
		return err
	}
	return nil
}

// aim has an owner whose dependents were cut looked at next at the version that the server's storage has come to.
func (c *Controller) aim(ctx context.Context, o *object) error {
	list, err := c.endpoint(*o).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("ask for the version of %s: %w", o.resource.Resource, err)
	}
	o.version = list.ResourceVersion
	c.waits.cutAt(o.uid, o.version)
	return nil
}

// letGo cuts the references of the dependents that an owner has at its version, and returns how many it had, and why
// there may be others that nothing shows.
func (c *Controller) letGo(ctx context.Context, o object) (dependents int, unknown, err error) {
	found, unknown, err := c.dependentsAt(ctx, o)
	if err != nil {
		return 0, nil, err
	}
	for _, d := range found {
		if err := c.cutReferences(ctx, d, []metav1.OwnerReference{{UID: o.uid}}); err != nil {
			return 0, nil, err
		}
	}
	return len(found), unknown, nil
}

// dependentsAt returns all dependents that an owner has at its version: as the graph shows them, and where nothing tells
// what the graph lacks, as the server does. It returns, too, why some kinds are not known.
func (c *Controller) dependentsAt(ctx context.Context, o object) (found []object, unknown, err error) {
	m, err := c.awaitGraph(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	found = slices.DeleteFunc(c.graph.dependents(o.uid), func(d object) bool {
		return slices.ContainsFunc(m.unseen, func(w watched) bool { return w.resource == d.resource })
	})
	if err := c.holds(m); err != nil {
		return nil, nil, err
	}
	for _, w := range m.unseen {
		listed, err := c.listDependents(ctx, w, o)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, listed...)
	}
	return found, m.unknown, nil
}

// listDependents returns the dependents of a resource as the server lists them.
func (c *Controller) listDependents(ctx context.Context, w watched, o object) (found []object, err error) {
	leave, ok := c.enter()
	if !ok {
		return nil, errGraphBehind
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	for obj, err := range client.Metadata(c.client, w.resource).Namespace(o.namespace).All(ctx, metav1.ListOptions{}) {
		if apierrors.IsNotFound(err) && !w.informer.Stats().Reflector.GoneSince.IsZero() {
			return nil, nil // discovery has confirmed that it is not served
		}
		if err != nil {
			return nil, fmt.Errorf("%w: list %s: %w", errGraphBehind, w.resource.Resource, err)
		}
		if d := describe(w.resource, obj); slices.ContainsFunc(d.owners, func(ref metav1.OwnerReference) bool { return ref.UID == o.uid }) {
			found = append(found, d)
		}
	}
	return found, nil
}
