package kubelet_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/kubelet"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// TestKubeletAsNode: a kubelet that is its node, and nothing else, registers, runs pods and
// ends them where the Node authorizer and NodeRestriction are on.
func TestKubeletAsNode(t *testing.T) {
	srv := levelwiretest.Start(t, func(c *server.Config) { c.AuthorizationModes = []string{"Node", "RBAC"} })
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	s := &station{t: t, ctx: ctx, server: srv}
	admin := s.connect()
	s.pods, s.nodes = client.For[*corev1.Pod](admin).Namespace("default"), client.For[*corev1.Node](admin)

	config := srv.Config()
	config.Impersonate.UserName, config.Impersonate.Groups = "system:node:n", []string{"system:nodes"}
	refusals := make(chan string, 100)
	node, err := client.New(config, client.Options{ContentType: client.Protobuf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.CloseIdleConnections)
	k, err := kubelet.New(node, kubelet.Options{
		NodeName: "n", LeaseDuration: time.Second, Logger: slog.New(slog.NewTextHandler(lines(refusals), &slog.HandlerOptions{Level: slog.LevelWarn})),
		StartAfter: time.Millisecond, StopAfter: time.Millisecond, RunFor: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- k.Run(running) }()
	s.create("p", nil)
	s.awaitPod("p", "ready", ready)
	await(s, s.nodes, "n", "ready", func(n *corev1.Node) bool { return len(n.Status.Conditions) > 0 }, false)
	if err := s.pods.Delete(ctx, "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitGone("p")
	stop()
	<-ended
	select {
	case line := <-refusals:
		t.Errorf("the kubelet complains: %s", line)
	default:
	}
}

// lines receives what is written.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}
