package controller_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/components/controllermanager/internal/replicaset"
)

// newCandidate returns a candidate for the Lease of a test.
func newCandidate(c *cluster, identity string) *leader.Elector {
	c.t.Helper()
	elector, err := leader.New(c.client, leader.Options{
		Namespace: metav1.NamespaceSystem, Name: "it", Identity: identity, RetryPeriod: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return elector
}

// TestNewLeaderWithAWatchBehind: a candidate whose caches were complete before it led makes no pods that the leader before has made,
// although their events come only later.
func TestNewLeaderWithAWatchBehind(t *testing.T) {
	c := newCluster(t, 0)
	leads, resigns := make(chan struct{}), make(chan struct{})
	c.start(c.ctx, "the leader before", func(ctx context.Context) error {
		return newCandidate(c, "before").Run(ctx, func(ctx context.Context) error {
			close(leads)
			select {
			case <-resigns:
			case <-ctx.Done():
			}
			return nil
		})
	})
	<-leads
	connected, held := c.connectBehind("candidate", "pods")
	quiet := slog.New(slog.DiscardHandler)
	factory := informer.NewFactory(connected, informer.Options{Logger: quiet})
	source, err := pods.NewSource(factory)
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := replicaset.New(connected, factory, source, events.New(connected, "test", events.Options{Logger: quiet}), quiet)
	if err != nil {
		t.Fatal(err)
	}
	c.start(c.ctx, "candidate", func(ctx context.Context) error {
		return controller.Run(ctx, controller.RunOptions{Factory: factory, Leader: newCandidate(c, "candidate"), Logger: quiet}, candidate)
	})
	<-held.opened

	sets := in[*appsv1.ReplicaSet](c)
	set := create(c, sets, newSet("web", 2))
	seen := create(c, in[*corev1.Pod](c), newPod("seen"))
	if err := informer.For[*appsv1.ReplicaSet](factory, informer.ListOptions{}).WaitForResourceVersion(c.ctx, set.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	if err := source.Informer.WaitForResourceVersion(c.ctx, seen.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	done := podsCreated(c)
	held.hold()
	for _, name := range []string{"a", "b"} {
		createPod(c, name, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		})
	}
	close(resigns)
	held.awaitAsked(t)
	held.awaitAsked(t)
	held.release()
	await(c, sets, "web", "two pods", func(s *appsv1.ReplicaSet) bool { return s.Status.Replicas == 2 })
	if names := done(); len(names) != 2 {
		t.Errorf("%q, want those of the leader before", names)
	}
}
