package nodelifecycle

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/cache"
)

// notCounted is the label of nodes that say nothing about whether the cluster is disrupted.
const notCounted = "node.kubernetes.io/exclude-disruption"

// disruption remembers whether all nodes are lost at once. Then it is more likely that this process, or
// the network, is at fault than every node, and no pod leaves a node because of the node's state.
type disruption struct {
	// until is when evictions go on: a while after some node was heard of again, so that
	// the others have the time to be heard of, too.
	until time.Time
	// lasts is whether no node was heard of when a node was last judged.
	lasts bool
	// heard is a node that was heard of: the first to be asked for the next time.
	heard string
}

// spares reports whether the node keeps its pods, although it is not ready, because no node is.
func (c *Controller) spares(ctx context.Context, node *corev1.Node, now time.Time) (bool, error) {
	all := false
	if readyStatus(node) != corev1.ConditionTrue {
		var err error
		if all, err = c.allLost(now); err != nil {
			return false, err
		}
		if all && lostTaint(node.Spec.Taints) {
			// Its taint is to go. The others are not lost because the watch of their Leases is late.
			if err := c.seesAll(ctx, node); err != nil {
				return false, err
			}
			if all, err = c.allLost(now); err != nil {
				return false, err
			}
		}
	} else if readiness(node) != ready {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.disrupted.lasts
	c.disrupted.lasts = all
	switch {
	case all:
		c.disrupted.until = now.Add(c.opts.GracePeriod)
		if !was {
			c.opts.Logger.Warn("no node is ready: evict no pods until one is")
		}
	case was:
		c.opts.Logger.Info("nodes are ready again: evict pods of the others after the grace period", "period", c.opts.GracePeriod)
	}
	return now.Before(c.disrupted.until), nil
}

// allLost reports whether there are nodes, and none of them is ready and heard of.
func (c *Controller) allLost(now time.Time) (bool, error) {
	c.mu.Lock()
	heard := c.disrupted.heard
	c.mu.Unlock()
	if node, ok := c.nodes.Lister().Get("", heard); ok && readiness(node) == ready && !c.silent(node, now) {
		return false, nil
	}
	candidates, err := c.nodes.Lister().ByIndex(byReadiness, ready)
	if err != nil {
		return false, err
	}
	for _, node := range candidates {
		if !c.silent(node, now) {
			c.mu.Lock()
			c.disrupted.heard = node.Name
			c.mu.Unlock()
			return false, nil
		}
	}
	others, err := c.nodes.Lister().CountByIndex(byReadiness, notReady)
	return len(candidates)+others > 0, err
}

// byReadiness is the index of the nodes that are counted, by readiness: in a large cluster of which every node is
// lost, each of them asks for all the others.
const byReadiness, ready, notReady = "readiness", "ready", "not ready"

var readinessIndex = cache.Indexers[*corev1.Node]{byReadiness: func(node *corev1.Node) ([]string, error) {
	if value := readiness(node); value != "" {
		return []string{value}, nil
	}
	return nil, nil
}}

func readiness(node *corev1.Node) string {
	_, skip := node.Labels[notCounted]
	switch {
	case skip:
		return ""
	case readyStatus(node) == corev1.ConditionTrue:
		return ready
	default:
		return notReady
	}
}

// silent reports whether a node has shown no sign of life for the grace period.
func (c *Controller) silent(node *corev1.Node, now time.Time) bool {
	return now.Sub(c.beats.observe(node.Name, c.sign(node), now)) >= c.opts.GracePeriod
}

// lostTaint reports whether pods leave because the node is not ready or unreachable.
func lostTaint(taints []corev1.Taint) bool {
	for i := range taints {
		if isLostTaint(&taints[i]) {
			return true
		}
	}
	return false
}

func isLostTaint(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoExecute && (taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable)
}
