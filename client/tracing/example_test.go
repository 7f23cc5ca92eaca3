package tracing_test

import (
	"context"
	"log"

	corev1 "k8s.io/api/core/v1"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/tracing"
)

// A controller whose changes, calls and requests are spans.
func Example() {
	provider := noop.NewTracerProvider() // a program has the SDK's, with an exporter
	tracer := tracing.New(provider, tracing.Options{})
	cl, err := client.FromKubeconfig("admin.kubeconfig", client.Options{WrapTransport: tracer.WrapTransport})
	if err != nil {
		log.Fatal(err)
	}
	factory := informer.NewFactory(cl, informer.Options{})
	reconcile := func(ctx context.Context, key controller.Key) (controller.Result, error) {
		controller.Logger(ctx).Info("requests with this ctx are in the trace of the call")
		return controller.Result{}, nil
	}
	c, err := controller.New(reconcile, controller.Options{Name: "pods", Tracer: tracer})
	if err != nil {
		log.Fatal(err)
	}
	controller.For(c, informer.For[*corev1.Pod](factory, informer.ListOptions{}))
	if err := controller.Run(context.Background(), controller.RunOptions{Factory: factory}, c); err != nil {
		log.Println(err)
	}
}
