package controller_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/controllermanager/internal/nodelifecycle"
	"github.com/levelwire/levelwire/internal/testwait"
)

// TestAllNodesLost: when no node is ready and heard of, no pod leaves its node because of that. When one is heard of again,
// the others have the grace period to follow, and then lose their pods.
func TestAllNodesLost(t *testing.T) {
	for _, test := range []struct {
		name  string
		ready corev1.ConditionStatus // of both nodes, when the controller starts
		taint string                 // of node b, before it starts
		last  bool                   // node a goes silent, too
		apart bool                   // a third node stays ready, and is not counted
		shown string                 // the taint that says what became of node b
	}{
		{name: "silent", ready: corev1.ConditionTrue, last: true, shown: corev1.TaintNodeUnreachable},
		{name: "silent but for one that is not counted", ready: corev1.ConditionTrue, last: true, apart: true, shown: corev1.TaintNodeUnreachable},
		{name: "not ready", ready: corev1.ConditionFalse, shown: corev1.TaintNodeNotReady},
		{name: "lost before", ready: corev1.ConditionUnknown, taint: corev1.TaintNodeUnreachable, shown: corev1.TaintNodeUnreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, 0)
			nodes, podAPI := client.For[*corev1.Node](c.client), in[*corev1.Pod](c)
			for _, name := range []string{"a", "b"} {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
				if name == "b" && test.taint != "" {
					node.Spec.Taints = []corev1.Taint{{Key: test.taint, Effect: corev1.TaintEffectNoExecute}}
				}
				create(c, nodes, node)
				say(c, name, test.ready)
				pod := newPod("on-" + name)
				pod.Spec.NodeName = name
				for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
					pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
						Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64),
					})
				}
				create(c, podAPI, pod)
			}
			if test.apart {
				create(c, nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "apart", Labels: map[string]string{"node.kubernetes.io/exclude-disruption": "true"}}})
				say(c, "apart", corev1.ConditionTrue)
			}
			now := &movedClock{now: time.Now()}
			startLifecycle(c, c.connect(), nodelifecycle.Options{GracePeriod: time.Minute, CheckInterval: 10 * time.Millisecond, Now: now.Now, Logger: slog.New(slog.DiscardHandler)})
			if test.last {
				// The controller has seen both alive at this time.
				for _, name := range []string{"a", "b"} {
					await(c, nodes, name, "trusted", func(n *corev1.Node) bool { return len(n.Spec.Taints) == 0 })
				}
				now.move(time.Minute + time.Second)
			}
			await(c, nodes, "b", "not ready, and keeping its pods", func(n *corev1.Node) bool {
				return hasTaint(n, test.shown, corev1.TaintEffectNoSchedule) && !hasTaint(n, test.shown, corev1.TaintEffectNoExecute)
			})
			// A taint of others that nothing tolerates: what comes after it in the cluster has been judged.
			marker := newPod("marker")
			marker.Spec.NodeName = "b"
			create(c, podAPI, marker)
			change(c, nodes, "b", func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "drained", Effect: corev1.TaintEffectNoExecute})
			})
			awaitEach(c, podAPI, metav1.ListOptions{}, "the pods leave because of others' taints", func(all map[string]*corev1.Pod) bool {
				return all["on-b"].DeletionTimestamp != nil && all["marker"].DeletionTimestamp != nil
			})
			if pod, err := podAPI.Get(c.ctx, "on-a", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp != nil {
				t.Errorf("a node lost its pod when no node was heard of: %+v (%v)", pod, err)
			}
			change(c, nodes, "b", func(n *corev1.Node) {
				n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "drained" })
			})

			testwait.Stable(t, "the other node is lost", func() (any, bool) {
				say(c, "b", corev1.ConditionTrue)
				now.move(time.Second)
				pod, err := podAPI.Get(c.ctx, "on-a", metav1.GetOptions{})
				return []any{pod, err}, err == nil && pod.DeletionTimestamp != nil
			})
		})
	}
}

// say posts a node's readiness as its kubelet does.
func say(c *cluster, name string, ready corev1.ConditionStatus) {
	c.t.Helper()
	nodes := client.For[*corev1.Node](c.client)
	for {
		node, err := nodes.Get(c.ctx, name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		beat := metav1.NewTime(time.Now())
		for _, condition := range node.Status.Conditions {
			beat = metav1.NewTime(condition.LastHeartbeatTime.Add(time.Second)) // never the one before
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "KubeletSays", LastHeartbeatTime: beat}}
		if _, err = nodes.UpdateStatus(c.ctx, node, metav1.UpdateOptions{}); err == nil {
			return
		}
		if !isConflict(err) {
			c.t.Fatal(err)
		}
	}
}

func hasTaint(node *corev1.Node, key string, effect corev1.TaintEffect) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key && taint.Effect == effect })
}
