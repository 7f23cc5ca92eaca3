package nodelifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/controller"
)

// lookAt judges one node and does what follows for its taints and pods.
func (c *Controller) lookAt(ctx context.Context, node *corev1.Node) (time.Duration, error) {
	now := c.opts.Now()
	silent := c.silent(node, now)
	if silent && readyStatus(node) != corev1.ConditionUnknown || silent && len(node.Status.Conditions) == 0 {
		if err := c.seesAll(ctx, node); err != nil {
			return 0, err
		}
		written, err := c.markUnknown(ctx, node, now)
		if err != nil || written == nil {
			return 0, err
		}
		node = written
	}
	spared, err := c.spares(ctx, node, now)
	if err != nil {
		return 0, err
	}
	node, err = c.taint(ctx, node, spared, now)
	if err != nil || node == nil {
		return 0, err
	}
	failed := []error{}
	if readyStatus(node) != corev1.ConditionTrue {
		failed = append(failed, c.markPodsNotReady(ctx, node, now))
	}
	again, err := c.evict(ctx, node, now)
	next := controller.Sooner(c.opts.CheckInterval, again)
	return next, errors.Join(append(failed, err)...)
}

// seesAll returns nil if the informers show everything that the server has now. A node is not silent
// because the watch of Leases is. In a cluster in which only Leases change, no other informer is ahead of
// theirs, so the server is asked for its version.
func (c *Controller) seesAll(ctx context.Context, node *corev1.Node) error {
	list, err := c.nodeAPI.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("ask for the version of the cluster: %w", err)
	}
	now := node.ObjectMeta.DeepCopy()
	now.ResourceVersion = list.ResourceVersion
	return controller.Consistent(ctx, now)
}

// markUnknown sets the conditions of a silent node to Unknown. nil without an
// error means that the node has gone.
func (c *Controller) markUnknown(ctx context.Context, node *corev1.Node, now time.Time) (*corev1.Node, error) {
	update := node.DeepCopy()
	update.Status.Conditions = unknown(node.Status.Conditions, now)
	written, err := c.nodeAPI.UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mark node %s unknown: %w", node.Name, err)
	}
	controller.Wrote(ctx, written)
	c.opts.Logger.Info("node is silent", "node", node.Name, "for", c.opts.GracePeriod)
	c.events.Normal(node, "NodeNotReady", "Node %s status is now: NodeNotReady", node.Name)
	return written, nil
}

// taint brings our taints up to date. The write is guarded by the version, as
// a list of taints can only be replaced as a whole.
func (c *Controller) taint(ctx context.Context, node *corev1.Node, spared bool, now time.Time) (*corev1.Node, error) {
	wanted := taintsOf(node, spared, now)
	if sameTaints(wanted, node.Spec.Taints) {
		return node, nil
	}
	if wanted == nil {
		wanted = []corev1.Taint{}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": wanted},
	})
	if err != nil {
		return nil, err
	}
	written, err := c.nodeAPI.Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("taint node %s: %w", node.Name, err)
	}
	controller.Wrote(ctx, written)
	return written, nil
}
