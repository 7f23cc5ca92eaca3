package nodelifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// markPodsNotReady keeps services from sending traffic to a node that does
// not answer.
func (c *Controller) markPodsNotReady(ctx context.Context, node *corev1.Node, now time.Time) error {
	bound, err := c.pods.OnNode(node.Name)
	if err != nil {
		return err
	}
	ready := slices.DeleteFunc(bound, func(pod *corev1.Pod) bool { return !pods.Ready(pod) })
	if len(ready) == 0 {
		return nil
	}
	if err := consistent(ctx, node, ready); err != nil {
		return err // the node may be ready by now
	}
	var failed []error
	for _, pod := range ready {
		failed = append(failed, c.markNotReady(ctx, pod, now))
	}
	return errors.Join(failed...)
}

func (c *Controller) markNotReady(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady",
			Message: "Node is not ready", LastTransitionTime: metav1.NewTime(now),
		}}},
	})
	if err != nil {
		return err
	}
	_, err = c.podAPI.Namespace(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("mark pod %s/%s not ready: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// evict deletes the node's pods whose time is over and returns when the next
// one's will be.
func (c *Controller) evict(ctx context.Context, node *corev1.Node, now time.Time) (again time.Duration, err error) {
	if !noExecute(node.Spec.Taints) {
		c.remember(node.Name, nil)
		return 0, nil
	}
	bound, err := c.pods.OnNode(node.Name)
	if err != nil {
		return 0, err
	}
	var due []*corev1.Pod
	before, after := c.sightings(node.Name), map[sighting]time.Time{}
	for _, pod := range bound {
		if pod.DeletionTimestamp != nil {
			continue // only its kubelet, or the end of the node, finishes that
		}
		at, leaves := evictionTime(pod, node.Spec.Taints, func(taint *corev1.Taint) time.Time {
			seen := sighting{pod.UID, taint.Key}
			since, known := before[seen]
			if !known {
				since = now
			}
			after[seen] = since
			return since
		})
		switch left := at.Sub(now); {
		case !leaves:
		case left > 0:
			again = controller.Sooner(again, left)
		default:
			due = append(due, pod)
		}
	}
	c.remember(node.Name, after)
	if len(due) == 0 {
		return again, nil
	}
	if err := consistent(ctx, node, due); err != nil {
		return 0, err // the taint may be gone by now, or tolerated
	}
	var failed []error
	for _, pod := range due {
		c.events.Normal(pod, "TaintManagerEviction", "Deleting pod %s/%s", pod.Namespace, pod.Name)
		failed = append(failed, c.remove(ctx, pod, metav1.DeleteOptions{}))
	}
	return again, errors.Join(failed...)
}

// sighting is a pod with a taint of its node that it does not tolerate for ever.
type sighting struct {
	pod   types.UID
	taint string
}

// sightings returns since when the pods of a node have been seen with its taints. It is not
// changed any more.
func (c *Controller) sightings(node string) map[sighting]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[node]
}

// remember replaces the sightings of a node.
func (c *Controller) remember(node string, sightings map[sighting]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(sightings) == 0 {
		delete(c.seen, node)
		return
	}
	c.seen[node] = sightings
}

// consistent is controller.Consistent for a node and pods of it.
func consistent(ctx context.Context, node *corev1.Node, bound []*corev1.Pod) error {
	decided := []metav1.Object{node}
	for _, pod := range bound {
		decided = append(decided, pod)
	}
	return controller.Consistent(ctx, decided...)
}

// buryPods removes, for good, the pods of a node that does not exist: no
// kubelet is left to report their end. It waits a while, because a node may be
// registered anew.
func (c *Controller) buryPods(ctx context.Context, node string) (time.Duration, error) {
	bound, err := c.pods.OnNode(node)
	if err != nil {
		return 0, err
	}
	if len(bound) == 0 {
		c.found(node)
		return 0, nil
	}
	if left := c.lost(node).Add(c.opts.Quarantine).Sub(c.opts.Now()); left > 0 {
		return left, nil
	}
	// The cache may be late; the server itself must say that it is gone.
	if _, err := c.nodeAPI.Get(ctx, node, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		if err != nil {
			return 0, fmt.Errorf("look for node %s: %w", node, err)
		}
		return c.opts.CheckInterval, nil
	}
	var failed []error
	var immediately int64
	for _, pod := range bound {
		failed = append(failed, c.remove(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &immediately}))
	}
	return 0, errors.Join(failed...)
}

func (c *Controller) remove(ctx context.Context, pod *corev1.Pod, opts metav1.DeleteOptions) error {
	opts.Preconditions = &metav1.Preconditions{UID: &pod.UID}
	err := c.podAPI.Namespace(pod.Namespace).Delete(ctx, pod.Name, opts)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// lost returns since when a node has been missing.
func (c *Controller) lost(node string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.missing[node]
	if !ok {
		since = c.opts.Now()
		c.missing[node] = since
	}
	return since
}

func (c *Controller) found(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missing, node)
}
