package main

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// How to test a controller: a real API server, in milliseconds, and an informer
// that waits for the effect of the test's writes.
func TestGreeterGreets(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cl := levelwiretest.Start(t).Client(client.Options{})
	factory := informer.NewFactory(cl, informer.Options{})
	c, err := newController(cl, factory)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(chan string, 10)
	if _, err := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{LabelSelector: "greet"}).AddHandler(
		informer.HandlerFuncs[*corev1.ConfigMap]{Update: func(_, cm *corev1.ConfigMap) { texts <- cm.Data["text"] }},
		informer.HandlerOptions{MaxUnmergedEvents: 10}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, controller.RunOptions{Factory: factory}, c) }()

	configMaps := client.For[*corev1.ConfigMap](cl).Namespace("default")
	if _, err := configMaps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", Labels: map[string]string{"greet": "world"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case text := <-texts:
		if text != "Hello, world!" {
			t.Errorf("greeted with %q", text)
		}
	case <-ctx.Done():
		t.Error("the greeting was not written")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
