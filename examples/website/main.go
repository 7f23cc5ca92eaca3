// Command website is a controller for a resource of its own: each Website is served at
// its host name by a Deployment and a ConfigMap that it owns. It is the model of a
// controller: a finalizer, a status with conditions, events, and nothing that a lost
// answer or a server that is down for an hour would break (faults_test.go).
//
//	kubectl apply -f examples/website/crd.yaml
//	go run ./examples/website
//	kubectl apply -f examples/website/website.yaml
//	kubectl get websites
//
// Reading order: website.go, controller.go, children.go, host.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server; default: as kubectl finds it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "website:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, kubeconfig string) error {
	c, err := client.FromKubeconfig(kubeconfig, client.Options{})
	if err != nil {
		return err
	}
	return run(ctx, c)
}

// run runs the controller until ctx ends.
func run(ctx context.Context, c *client.Client) error {
	if err := register(c.Scheme()); err != nil {
		return err
	}
	factory := informer.NewFactory(c, informer.Options{})
	recorder := events.New(c, name, events.Options{})
	ctl, err := newController(c, factory, recorder)
	if err != nil {
		return err
	}
	return controller.Run(ctx, controller.RunOptions{Factory: factory}, ctl, recorder)
}
