// Command namespaces prints what happens to the pods of several namespaces, as a program
// does that may not, or need not, look at all of them. A namespace may have a label
// selector of its own.
//
//	go run ./examples/namespaces default team-a kube-system:tier=control-plane
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/kubeconfig"
)

func main() {
	var from kubeconfig.Options
	from.AddFlags(flag.CommandLine) // -kubeconfig, -context, -namespace, -as
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: namespaces [flags] [NAMESPACE[:SELECTOR]]...; default: the namespace of the flag or the context")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, namespace, err := client.Load(from, client.Options{ContentType: client.Protobuf})
	if err == nil {
		args := flag.Args()
		if len(args) == 0 {
			args = []string{namespace}
		}
		err = run(ctx, c, args, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "namespaces:", err)
		os.Exit(1)
	}
}

// run prints until ctx ends.
func run(ctx context.Context, c *client.Client, args []string, out io.Writer) error {
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown() // waits for the handlers, too
	printed := log.New(out, "", 0)

	// Namespaces with the same selector are one informer: one cache and one set of
	// handlers over a list and a watch for each namespace. One with another selector is an
	// informer of its own. Its handler may be the same one; it then is called by two
	// goroutines, one for each informer.
	var informers []*informer.SharedInformer[*corev1.Pod]
	var registrations []*informer.Registration
	for selector, namespaces := range bySelector(args) {
		pods := informer.For[*corev1.Pod](factory, informer.ListOptions{Namespaces: namespaces, LabelSelector: selector})
		registration, err := pods.AddHandler(printer(printed), informer.HandlerOptions{Name: "printer"})
		if err != nil {
			return err // an invalid selector, for instance
		}
		informers, registrations = append(informers, pods), append(registrations, registration)
	}
	factory.Start(ctx)

	// The error names the informers that have no complete list when ctx ends, and why: a
	// namespace that this identity may not look at, for instance. The others go on
	// meanwhile: a namespace that does not answer holds up no handler.
	if err := factory.WaitForSync(ctx); err != nil {
		return err
	}
	for _, registration := range registrations {
		<-registration.Synced() // the handler has been called for all that there was
	}
	for _, pods := range informers {
		for _, namespace := range pods.ListOptions().Namespaces {
			printed.Printf("%s has %d pods", namespace, len(pods.Lister().List(namespace, nil)))
		}
	}
	<-ctx.Done()
	return nil
}

// bySelector returns the namespaces of arguments NAMESPACE[:SELECTOR] by selector.
func bySelector(args []string) map[string][]string {
	namespaces := map[string][]string{}
	for _, arg := range args {
		namespace, selector, _ := strings.Cut(arg, ":")
		namespaces[selector] = append(namespaces[selector], namespace)
	}
	return namespaces
}

// printer is called for one object after the other, with states in order. If it is slow,
// it is called less often, with newer states.
func printer(printed *log.Logger) informer.Handler[*corev1.Pod] {
	return informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, initial bool) {
			printed.Printf("+ %s/%s is %s (was there: %t)", pod.Namespace, pod.Name, pod.Status.Phase, initial)
		},
		Update: func(old, pod *corev1.Pod) {
			if old.Status.Phase != pod.Status.Phase {
				printed.Printf("  %s/%s went from %s to %s", pod.Namespace, pod.Name, old.Status.Phase, pod.Status.Phase)
			}
		},
		Delete: func(pod *corev1.Pod, finalStateUnknown bool) {
			// The deletion may have been missed while the server was not reachable: then
			// pod is the last state that was seen, perhaps not the last that there was.
			printed.Printf("- %s/%s (final state unknown: %t)", pod.Namespace, pod.Name, finalStateUnknown)
		},
	}
}
