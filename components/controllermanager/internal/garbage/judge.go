package garbage

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
)

const (
	// fewOwners is how many of an object's owners a worker asks the server for beside the others. An object of more
	// that only the server knows needs one of manyOwners slots: it may have tens of thousands, invented ones, and the
	// other workers collect meanwhile.
	fewOwners  = 16
	manyOwners = workers / 4
	// maxAsked is how many are asked for in one go, and askRetry after what time an object that found no slot is looked at again.
	maxAsked = 1000
	askRetry = time.Second
)

// verdict is what is known of the owners of an object.
type verdict struct {
	solid, waiting, dangling []metav1.OwnerReference
	// open are those that only the server can say something about.
	open []sought
}

// sought is an owner that the graph does not show.
type sought struct {
	ref metav1.OwnerReference
	owner
}

func (v *verdict) add(ref metav1.OwnerReference, state ownerState) {
	switch state {
	case ownerExists:
		v.solid = append(v.solid, ref)
	case ownerWaits:
		v.waiting = append(v.waiting, ref)
	case ownerGone:
		v.dangling = append(v.dangling, ref)
	}
}

// judge deletes an object all of whose owners are gone. If some still exist,
// references to the others are cut; an object whose last owners are being
// deleted in the foreground goes in the foreground too, so that they wait for
// all below it.
//
// Of an object of very many owners that only the server knows, references to those that are gone are cut as they are
// found: the rest is judged when that change arrives, so that no request is made twice.
func (c *Controller) judge(ctx context.Context, o object) (controller.Result, error) {
	v := c.known(o)
	if len(v.open) > fewOwners {
		select {
		case c.asking <- struct{}{}:
			defer func() { <-c.asking }()
		default:
			return controller.After(askRetry), nil
		}
	}
	if err := c.ask(ctx, &v); err != nil {
		if len(v.dangling) > fewOwners {
			err = errors.Join(err, c.cutReferences(ctx, o, v.dangling))
		}
		return controller.Result{}, err
	}
	return controller.Result{}, c.execute(ctx, o, &v)
}

// execute does what a verdict says.
func (c *Controller) execute(ctx context.Context, o object, v *verdict) error {
	switch {
	case len(v.open) > 0:
		return c.cutReferences(ctx, o, v.dangling)
	case len(v.solid) > 0 && len(v.dangling)+len(v.waiting) > 0:
		return c.cutReferences(ctx, o, append(v.dangling, v.waiting...))
	case len(v.solid) > 0:
		return nil
	case len(v.waiting) > 0 && c.graph.hasWaitingDependents(o.uid):
		// It may wait, over some dependents, for the owner that waits for it: none of them would go.
		if err := c.unblockOwners(ctx, o); err != nil {
			return err
		}
		return c.deleteLive(ctx, o, metav1.DeletePropagationForeground)
	case len(v.waiting) > 0 && c.graph.hasDependents(o.uid):
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

// known is what can be said of an object's owners without a request. It believes the graph when it shows an owner, for
// an owner that is there is not mourned for long; that it is gone only the server can say.
func (c *Controller) known(o object) (v verdict) {
	for _, ref := range o.owners {
		if owner, ok := c.graph.get(ref.UID); ok && sameScope(owner, o) {
			v.add(ref, stateOf(owner))
			continue
		}
		k, ok := c.kindOf(ref)
		if !ok {
			// A kind that is not served (any more) says nothing about its objects.
			v.add(ref, ownerExists)
			continue
		}
		namespace := ""
		if k.namespaced {
			namespace = o.namespace
		}
		if s := (sought{ref, owner{k.resource, namespace, ref.Name, ref.UID}}); c.absent.has(s.owner) {
			v.add(ref, ownerGone)
		} else {
			v.open = append(v.open, s)
		}
	}
	return v
}

// ask has the server say what is not known. After maxAsked requests it leaves the rest open, if references can be cut.
func (c *Controller) ask(ctx context.Context, v *verdict) error {
	asked := map[owner]ownerState{} // an owner may be named twice
	for len(v.open) > 0 && (len(asked) < maxAsked || len(v.dangling) == 0) {
		next := v.open[0]
		state, ok := asked[next.owner]
		if !ok {
			var err error
			if state, err = c.askFor(ctx, next); err != nil {
				return err
			}
			asked[next.owner] = state
		}
		v.add(next.ref, state)
		v.open = v.open[1:]
	}
	return nil
}

func (c *Controller) askFor(ctx context.Context, s sought) (ownerState, error) {
	if c.absent.has(s.owner) { // another worker has asked meanwhile
		return ownerGone, nil
	}
	live, err := client.Metadata(c.client, s.resource).Namespace(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return ownerExists, fmt.Errorf("look for owner %s %s: %w", s.ref.Kind, s.name, err)
	case err == nil && (live.Name != s.name || live.UID == ""): // it says nothing of the owner
		return ownerExists, fmt.Errorf("look for owner %s %s: the answer is an object %q with uid %q", s.ref.Kind, s.name, live.Name, live.UID)
	case err != nil || live.UID != s.uid:
		c.absent.add(s.owner)
		return ownerGone, nil
	}
	return stateOf(describe(s.resource, live)), nil
}

// stateOf is the state of an owner that is there.
func stateOf(owner object) ownerState {
	if owner.deleting && owner.foreground {
		return ownerWaits
	}
	return ownerExists
}

// sameScope: an owner is cluster-scoped or in the dependent's namespace.
func sameScope(owner, dependent object) bool {
	return owner.namespace == "" || owner.namespace == dependent.namespace
}
