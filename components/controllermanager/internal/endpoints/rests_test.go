package endpoints

import (
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestRestsKeepBackOffs: a Service that rests does not lose its back-off, and one that is gone
// has no rest, even if work on it went on when it was deleted.
func TestRestsKeepBackOffs(t *testing.T) {
	cl := levelwiretest.NewClient(t, client.Options{})
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "large"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "large"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if _, err := client.For[*corev1.Service](cl).Namespace("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	factory := informer.NewFactory(cl, informer.Options{Logger: slog.New(slog.DiscardHandler)})
	c, err := New(cl, cl, factory, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context())
	t.Cleanup(factory.Shutdown)
	if err := factory.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := controller.Key{Namespace: "default", Name: "large"}
	c.rests.Worked(key, time.Minute)
	if result, err := c.reconcile(t.Context(), key); err != nil || result.RequeueAfter <= 0 || !result.Pending {
		t.Errorf("while it rests: %+v, %v", result, err)
	}
	gone := controller.Key{Namespace: "default", Name: "gone"}
	c.rests.Worked(gone, time.Minute)
	if result, err := c.reconcile(t.Context(), gone); err != nil || result != (controller.Result{}) || c.rests.Left(gone) != 0 {
		t.Errorf("a Service that is gone: %+v, %v, and %v are left", result, err, c.rests.Left(gone))
	}
}
