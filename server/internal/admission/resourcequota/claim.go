package resourcequota

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/internal/quota"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// claim is one request's share of the quotas of its namespace.
type claim struct {
	// giveBack, if it is not nil, is what a refused write had claimed. The fields up to
	// now are of no meaning then.
	giveBack map[types.UID]corev1.ResourceList

	evaluator   quota.Evaluator
	resource    schema.GroupResource
	name        string
	subresource string
	object, old resource.Object // old is nil for a create
	dryRun      bool
	now         time.Time
	limited     []LimitedResource // of the resource

	// held is what has been claimed, by the quota's uid. It is read when the claim is
	// decided.
	held map[types.UID]corev1.ResourceList
	err  error

	// turn is closed when the claim is decided, or when its request has to decide the
	// next batch: settled says which. It is nil if the claim did not have to wait.
	turn    chan struct{}
	settled bool
}

// hold records what has been claimed of a quota.
func (c *claim) hold(uid types.UID, amounts corev1.ResourceList) {
	if c.held == nil {
		c.held = map[types.UID]corev1.ResourceList{}
	}
	c.held[uid] = amounts
}

// check returns what the claim adds to the used amounts of each quota, by its uid. used
// is what is used of each quota now. An error refuses the write; basis then is the
// quota that says so.
func (c *claim) check(quotas []*corev1.ResourceQuota) (added map[types.UID]corev1.ResourceList, basis *corev1.ResourceQuota, err error) {
	matching, basis, err := c.matching(quotas)
	if err != nil || len(matching) == 0 && len(c.limited) == 0 {
		return nil, basis, err
	}
	usage := c.evaluator.Usage(c.object, c.now)
	if err := c.covered(quotas, matching, usage); err != nil {
		return nil, nil, err
	}
	if names := quota.Negative(usage); len(names) > 0 {
		return nil, nil, c.forbid("quota usage is negative for resource(s): %s", quota.FormatNames(names))
	}
	increase := usage
	if c.old != nil {
		increase = quota.Increase(usage, c.evaluator.Usage(c.old, c.now))
	}
	added = map[types.UID]corev1.ResourceList{}
	for _, q := range matching {
		if _, holds := c.held[q.UID]; holds {
			continue
		}
		more := increase
		if c.old != nil && !c.evaluator.InScopes(q, c.old) {
			more = usage // the update has brought the object into the quota's scope
		}
		if more = withoutZeros(quota.Mask(more, q.Status.Hard)); len(more) == 0 {
			continue
		}
		if err := c.fits(q, more); err != nil {
			return nil, q, err
		}
		added[q.UID] = more
	}
	return added, nil, nil
}

// matching returns the quotas that limit the object. It refuses an object that does not
// state what a quota limits, and a quota of which it is not known how much is used.
func (c *claim) matching(quotas []*corev1.ResourceQuota) (matching []*corev1.ResourceQuota, basis *corev1.ResourceQuota, err error) {
	for _, q := range quotas {
		tracked := c.evaluator.Tracked(q.Status.Hard)
		if len(tracked) == 0 || !c.evaluator.InScopes(q, c.object) {
			continue
		}
		if _, holds := c.held[q.UID]; holds && len(c.limited) == 0 {
			continue
		}
		slices.Sort(tracked)
		if err := c.evaluator.Missing(c.object, tracked); err != nil {
			return nil, q, c.forbid("failed quota: %s: %w", q.Name, err)
		}
		for _, name := range tracked {
			if _, known := q.Status.Used[name]; !known {
				return nil, q, c.forbid("status unknown for quota: %s, resources: %s", q.Name, quota.FormatNames(tracked))
			}
		}
		matching = append(matching, q)
	}
	return matching, nil, nil
}

// fits refuses what would take a quota above its limits. What the status of an object
// reports has been used already, so it is counted and not refused.
func (c *claim) fits(q *corev1.ResourceQuota, more corev1.ResourceList) error {
	if c.subresource == "status" {
		return nil
	}
	sum := quota.Mask(q.Status.Used, more)
	quota.Add(sum, more)
	names := quota.Exceeding(sum, q.Status.Hard)
	if len(names) == 0 {
		return nil
	}
	return c.forbid("exceeded quota: %s, requested: %s, used: %s, limited: %s", q.Name,
		quota.Format(more, names), quota.Format(q.Status.Used, names), quota.Format(q.Status.Hard, names))
}

func (c *claim) forbid(format string, args ...any) error {
	return apierrors.NewForbidden(c.resource, c.name, fmt.Errorf(format, args...))
}

func withoutZeros(list corev1.ResourceList) corev1.ResourceList {
	for name, amount := range list {
		if amount.IsZero() {
			delete(list, name)
		}
	}
	return list
}
