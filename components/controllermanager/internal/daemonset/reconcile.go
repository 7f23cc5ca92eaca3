package daemonset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

func (c *Controller) reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	set, ok := c.sets.Lister().Get(key.Namespace, key.Name)
	if !ok {
		c.selectors.Forget(key)
		c.control.Expectations.Forget(key)
		return controller.Result{}, nil
	}
	selector, err := c.selectors.Of(set, set.Spec.Selector)
	if err != nil || selector.Empty() {
		return controller.Result{}, nil // validation refuses such sets; one that slipped through owns nothing
	}
	settled, recheck := c.control.Settled(ctx, key)
	owned, err := c.control.Claim(ctx, set, selector, c.pods, ownership.StillThere(c.api, set))
	if err != nil || set.DeletionTimestamp != nil {
		return controller.Result{}, err
	}
	revision, all, err := c.revisions.Ensure(ctx, set, kind, &set.Spec.Template)
	if err != nil {
		return controller.Result{}, err
	}
	hash := revision.Labels[appsv1.ControllerRevisionHashLabelKey]
	sites, now := sitesOf(set, c.nodes.Lister().List("", nil)), c.now()
	groups := byNode(owned)
	var failed error
	if settled {
		failed = c.carryOut(ctx, set, sites, groups, hash, now)
	}
	again, err := c.writeStatus(ctx, set, sites, groups, hash, now)
	if err == nil && failed == nil {
		failed = c.trim(ctx, set, owned, all)
	}
	return controller.After(controller.Sooner(again, recheck)), errors.Join(failed, err)
}

// carryOut places pods, and only when nothing is to be placed goes on with an
// update: the deleted pod's place is filled by the next reconciliation.
func (c *Controller) carryOut(ctx context.Context, set *appsv1.DaemonSet, sites []site, groups map[string][]*corev1.Pod, hash string, now time.Time) error {
	p := place(set, sites, groups, hash)
	if len(p.create)+len(p.delete) == 0 {
		var err error
		if surges(set) {
			p, err = surge(set, sites, groups, hash, now)
		} else {
			p.delete, err = outdated(set, sites, groups, hash, now)
		}
		if err != nil {
			return err
		}
	}
	if len(p.create)+len(p.delete) == 0 {
		return nil
	}
	if err := controller.Consistent(ctx, set); err != nil {
		return err
	}
	if err := c.control.Delete(ctx, set, p.delete[:min(len(p.delete), pods.Burst)]); err != nil {
		return err
	}
	create := p.create[:min(len(p.create), pods.Burst)]
	return c.control.Create(ctx, set, &set.Spec.Template, len(create), func(i int, pod *corev1.Pod) { prepare(pod, create[i], hash) })
}

func (c *Controller) trim(ctx context.Context, set *appsv1.DaemonSet, owned []*corev1.Pod, all []*appsv1.ControllerRevision) error {
	limit := 10
	if set.Spec.RevisionHistoryLimit != nil {
		limit = int(*set.Spec.RevisionHistoryLimit)
	}
	hashes := map[string]bool{}
	for _, pod := range owned {
		hashes[pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]] = true
	}
	inUse := map[string]bool{}
	for _, revision := range all {
		inUse[revision.Name] = hashes[revision.Labels[appsv1.ControllerRevisionHashLabelKey]]
	}
	return c.revisions.Trim(ctx, set, all, limit, inUse)
}

func (c *Controller) writeStatus(ctx context.Context, set *appsv1.DaemonSet, sites []site, groups map[string][]*corev1.Pod, hash string, now time.Time) (time.Duration, error) {
	status, again := count(set, sites, groups, hash, now)
	if equality.Semantic.DeepEqual(status, set.Status) {
		return again, nil
	}
	update := set.DeepCopy()
	update.Status = status
	_, err := c.api.Namespace(set.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("write status: %w", err)
	}
	return again, nil
}

// count makes the status: it counts nodes, by their oldest living pod.
func count(set *appsv1.DaemonSet, sites []site, groups map[string][]*corev1.Pod, hash string, now time.Time) (status appsv1.DaemonSetStatus, again time.Duration) {
	status = appsv1.DaemonSetStatus{
		ObservedGeneration: set.Generation, Conditions: set.Status.Conditions, CollisionCount: set.Status.CollisionCount,
	}
	for _, site := range sites {
		var pod *corev1.Pod
		for _, candidate := range groups[site.node.Name] {
			if pod == nil && pods.Active(candidate) {
				pod = candidate
			}
		}
		switch {
		case !site.run && pod != nil:
			status.NumberMisscheduled++
		case site.run:
			status.DesiredNumberScheduled++
		}
		if !site.run || pod == nil {
			continue
		}
		status.CurrentNumberScheduled++
		if pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == hash {
			status.UpdatedNumberScheduled++
		}
		if pods.Ready(pod) {
			status.NumberReady++
			available, in := pods.Available(pod, set.Spec.MinReadySeconds, now)
			if available {
				status.NumberAvailable++
			}
			again = controller.Sooner(again, in)
		}
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	return status, again
}
