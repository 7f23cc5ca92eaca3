package metrics_test

import (
	"log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/client/metrics"
)

// A program that exports its requests, its informers and its leadership.
func Example() {
	requests := metrics.NewRequests()
	c, err := client.FromKubeconfig("admin.kubeconfig", client.Options{Observer: requests})
	if err != nil {
		log.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{})
	informer.For[*corev1.Pod](factory, informer.ListOptions{})
	elector, err := leader.New(c, leader.Options{Namespace: "default", Name: "greeter"})
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(requests, metrics.Informers(factory), metrics.Leader("greeter", elector.Stats))
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}
