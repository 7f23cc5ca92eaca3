// Command podwatch prints what happens to pods, of all namespaces or of those
// that are named, and serves its metrics and its health.
//
//	podwatch -kubeconfig levelwire-data/admin.kubeconfig -labels app=hello default kube-system
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/metrics"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	labels := flag.String("labels", "", "only pods with these labels")
	cache := flag.String("cache", "", "keep the pods in this directory, and go on from there next time")
	address := flag.String("metrics", "127.0.0.1:8081", "where to serve /metrics and /healthz")
	flag.Parse()
	// A first signal ends what runs, in order; a second one ends the process.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	selected := informer.ListOptions{LabelSelector: *labels, Namespaces: flag.Args()}
	if err := run(ctx, *kubeconfig, *cache, *address, selected); err != nil {
		fmt.Fprintln(os.Stderr, "podwatch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, cache, address string, selected informer.ListOptions) error {
	c, err := client.FromKubeconfig(kubeconfig, client.Options{ContentType: client.Protobuf})
	if err != nil {
		return err
	}
	factory := informer.NewFactory(c, informer.Options{
		Logger: slog.Default(),
		Disk:   informer.DiskOptions{Directory: cache},
	})
	defer factory.Shutdown() // waits for the handler, too
	pods := informer.For[*corev1.Pod](factory, selected)
	if _, err := pods.AddHandler(informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, initial bool) {
			fmt.Printf("+ %s/%s on %s is %s (was there: %t)\n", pod.Namespace, pod.Name, pod.Spec.NodeName, pod.Status.Phase, initial)
		},
		Update: func(old, pod *corev1.Pod) {
			if old.Status.Phase != pod.Status.Phase {
				fmt.Printf("  %s/%s went from %s to %s\n", pod.Namespace, pod.Name, old.Status.Phase, pod.Status.Phase)
			}
		},
		Delete: func(pod *corev1.Pod, finalStateUnknown bool) {
			fmt.Printf("- %s/%s (final state unknown: %t)\n", pod.Namespace, pod.Name, finalStateUnknown)
		},
	}, informer.HandlerOptions{Name: "printer"}); err != nil {
		return err
	}
	factory.Start(ctx)
	return serve(ctx, address, factory)
}

// serve shows how the factory's informers stand, until ctx ends.
func serve(ctx context.Context, address string, factory *informer.Factory) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics.Informers(factory)); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := factory.Healthy(5 * time.Minute); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := context.AfterFunc(ctx, func() { _ = server.Close() }) // scrapes may be cut off
	defer ended()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
