package resourcequota

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/internal/quota"
)

// whileNotServed is how soon a quota is looked at again while a kind that it counts is not
// served.
const whileNotServed = 5 * time.Second

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	q, ok := c.quotas.Lister().Get(key.Namespace, key.Name)
	if !ok {
		c.ledger.drop(key.Namespace, key.Name)
		c.kinds.name(key, nil)
		return controller.Result{}, nil
	}
	c.kinds.name(key, countedKinds(evaluators(q.Spec.Hard)))
	counted, listing, wait, err := c.countable(ctx, q)
	if err != nil {
		return controller.Result{}, err
	}
	c.ledger.open(q, c.now())
	changed, next := c.ledger.expire(key.Namespace, c.now())
	for _, name := range changed {
		if name != key.Name {
			c.Add(controller.Key{Namespace: key.Namespace, Name: name})
		}
	}
	if !next.IsZero() {
		wait = controller.Sooner(wait, next.Sub(c.now())+time.Millisecond)
	}
	again, err := c.write(ctx, q, counted, listing)
	return controller.After(controller.Sooner(wait, again)), err
}

// countable returns the amounts that the quota limits and the ledger can count, and those
// whose objects are still being listed: the quota is looked at again when they are. wait is how
// soon there may be more.
func (c *Controller) countable(ctx context.Context, q *corev1.ResourceQuota) (counted, listing corev1.ResourceList, wait time.Duration, err error) {
	counted, listing = corev1.ResourceList{}, corev1.ResourceList{}
	for name := range q.Spec.Hard {
		resources := quota.Resources(name)
		complete, listed := len(resources) > 0, true
		for _, of := range resources {
			if _, limited := quota.For(of); !limited {
				complete = false
				continue
			}
			follows, err := c.follows(ctx, of)
			switch {
			case meta.IsNoMatchError(err):
				complete, wait = false, controller.Sooner(wait, whileNotServed)
			case err != nil:
				return nil, nil, 0, fmt.Errorf("%s: %w", of, err)
			case !follows:
				listed = false
			}
		}
		switch {
		case !listed:
			listing[name] = q.Spec.Hard[name]
		case complete:
			counted[name] = q.Spec.Hard[name]
		}
	}
	return counted, listing, wait, nil
}

// write brings the status up to date. What is said of amounts that are listing stays. again is how soon to look again whether a claim
// has been left behind.
func (c *Controller) write(ctx context.Context, q *corev1.ResourceQuota, countable, listing corev1.ResourceList) (again time.Duration, err error) {
	ledger, ok := c.ledger.balance(q.Namespace, q.Name)
	if !ok {
		return 0, nil
	}
	counted, anew, amounts := ledger.counted, false, begun(q, countable)
	if isLeft(q, countable, ledger) {
		again = max(c.recountAfter-c.now().Sub(ledger.claimed), 0)
		if anew = again == 0; anew {
			amounts = q.Spec.Hard
		}
	}
	if len(amounts) > 0 {
		recounted, err := c.recount(ctx, q, amounts)
		if err != nil {
			return c.recountAfter, err
		}
		for name := range amounts {
			delete(counted, name)
		}
		quota.Add(counted, recounted)
	}
	update := q.DeepCopy()
	update.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: corev1.ResourceList{}}
	for name := range countable {
		update.Status.Used[name] = usedNow(q.Status.Used, ledger.freed, counted, name, anew)
	}
	quota.Add(update.Status.Used, quota.Mask(q.Status.Used, listing))
	if equality.Semantic.DeepEqual(q.Status, update.Status) {
		return again, nil
	}
	_, err = c.api.Namespace(q.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	switch {
	case err == nil:
		c.ledger.takeOff(q.Namespace, q.Name, ledger.freed)
		return again, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return again, nil // a newer state is on its way and brings us back
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		// The write may have happened: to take the amounts off twice would be wrong, so
		// they are left to a recount.
		c.ledger.takeOff(q.Namespace, q.Name, ledger.freed)
		c.ledger.sawClaim(q.Namespace, q.Name, c.now())
	}
	return again, fmt.Errorf("write status: %w", err)
}

// isLeft reports whether more is used than there is: objects that are being written, or
// claims that were left behind.
func isLeft(q *corev1.ResourceQuota, countable corev1.ResourceList, l balance) bool {
	for name := range countable {
		if used, known := q.Status.Used[name]; known {
			used = used.DeepCopy()
			used.Sub(l.freed[name])
			if used.Cmp(l.counted[name]) > 0 {
				return true
			}
		}
	}
	return false
}

// begun returns the amounts of which the status is to say for the first time how much is used. The server lets
// nothing be made before it does, so that must be what there is, and not what an informer has shown of it.
func begun(q *corev1.ResourceQuota, countable corev1.ResourceList) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for name, hard := range countable {
		if _, known := q.Status.Used[name]; !known {
			amounts[name] = hard
		}
	}
	return amounts
}

// usedNow computes one amount of the status. Unless it was counted anew, what the server
// has claimed stays, and what has been set free goes. What there is besides, without
// a claim, was made while the quota had no status yet.
func usedNow(used, freed, counted corev1.ResourceList, name corev1.ResourceName, recounted bool) resource.Quantity {
	now, known := used[name]
	count, ok := counted[name]
	if !ok {
		count = resource.Quantity{Format: resource.DecimalSI}
	}
	if !known || recounted {
		return count
	}
	now = now.DeepCopy()
	now.Sub(freed[name])
	if now.Cmp(count) < 0 {
		return count
	}
	return now
}

// evaluators returns how to count amounts.
func evaluators(amounts corev1.ResourceList) map[schema.GroupResource]quota.Evaluator {
	found := map[schema.GroupResource]quota.Evaluator{}
	for name := range amounts {
		for _, resource := range quota.Resources(name) {
			if evaluator, limited := quota.For(resource); limited {
				found[resource] = evaluator
			}
		}
	}
	return found
}
