// Command incluster is a controller as it runs in a cluster, in as many processes as one
// likes: one leads, and another takes over when it ends. It finds its server as kubectl
// does, so it runs outside of a cluster, too. deploy.yaml has its service account, the
// least rights that it needs, and its Deployment with probes.
//
// The controller itself is small (controller.go): every ConfigMap with the label "greet"
// gets a greeting for the name in the label.
//
//	go run ./examples/incluster
//	kubectl create configmap hello && kubectl label configmap hello greet=world
//	kubectl get configmap hello -o jsonpath={.data.text}
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/health"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/client/metrics"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server; default: as kubectl finds it, in a pod by its service account")
	namespace := flag.String("namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "default"), "where the ConfigMaps and the Lease are")
	address := flag.String("address", ":8080", "where to serve /metrics, /livez and /readyz")
	flag.Parse()
	// Kubernetes sends SIGTERM to a pod that is to end. What runs then ends in order, and
	// the Lease is released, so that another process leads at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	requests := metrics.NewRequests()
	c, err := client.FromKubeconfig(*kubeconfig, client.Options{Observer: requests})
	if err == nil {
		err = run(ctx, c, *namespace, &health.Server{Address: *address}, requests)
	}
	if err != nil {
		// leader.ErrLost, too: a process that has lost the lead is started again.
		fmt.Fprintln(os.Stderr, "incluster:", err)
		os.Exit(1)
	}
}

// run runs the controller, when this process leads, until ctx ends. server serves how it
// is doing all the time.
func run(ctx context.Context, c *client.Client, namespace string, server *health.Server, requests *metrics.Requests) error {
	factory := informer.NewFactory(c, informer.Options{Namespace: namespace})
	greeter, err := newController(c, factory)
	if err != nil {
		return err
	}
	elector, err := leader.New(c, leader.Options{Namespace: namespace, Name: "greeter"})
	if err != nil {
		return err
	}

	registry := prometheus.NewRegistry()
	for _, collector := range []prometheus.Collector{
		requests, metrics.Informers(factory), metrics.Controller(greeter), metrics.Leader("greeter", elector.Stats),
	} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", health.NewHandler(health.Options{
		// Of these a failure restarts the process: it works on though another one leads.
		Live: health.Checks{"leader": health.Func(elector.Healthy)},
		// Of these it does not: a restart would only empty the caches.
		Ready: health.Checks{
			"informers":  health.Func(func() error { return factory.Healthy(5 * time.Minute) }),
			"controller": health.Func(greeter.Healthy),
			"shutdown":   health.Running(ctx),
		},
	}))
	server.Handler = mux
	return controller.Run(ctx, controller.RunOptions{Factory: factory, Leader: elector}, greeter, server)
}
