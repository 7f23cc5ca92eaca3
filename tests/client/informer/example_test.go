package informer_test

import (
	"context"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/workqueue"
)

// exampleServer is an API server in this process. A program has
// client.FromKubeconfig in its place.
func exampleServer() (*client.Client, func()) {
	dir, err := os.MkdirTemp("", "levelwire-example-*")
	check(err)
	c, stop, err := serve(dir)
	check(err)
	return c, func() {
		stop()
		check(os.RemoveAll(dir))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A first informer: wait until the cache is complete, then read it.
func Example() {
	c, stop := exampleServer()
	defer stop()
	ctx := context.Background()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	namespaces := informer.For[*corev1.Namespace](factory, informer.ListOptions{})
	factory.Start(ctx)
	check(factory.WaitForSync(ctx))

	namespace, ok := namespaces.Lister().Get("", "kube-system")
	fmt.Println(namespace.Name, namespace.Status.Phase, ok)
	// Output: kube-system Active true
}

// An index finds objects by what a function makes of them.
func ExampleSharedInformer_AddIndexers() {
	c, stop := exampleServer()
	defer stop()
	ctx := context.Background()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	services := informer.For[*corev1.Service](factory, informer.ListOptions{})
	check(services.AddIndexers(cache.Indexers[*corev1.Service]{
		"port": func(service *corev1.Service) (ports []string, err error) {
			for _, port := range service.Spec.Ports {
				ports = append(ports, fmt.Sprint(port.Port))
			}
			return ports, nil
		},
	}))
	factory.Start(ctx)
	check(factory.WaitForSync(ctx))

	found, err := services.Lister().ByIndex("port", "443")
	check(err)
	fmt.Println(found[0].Name)
	// Output: kubernetes
}

// Many handlers share one watch and one cache. Each is called in a
// goroutine of its own, knows when it has seen everything there was, and may
// leave.
func ExampleSharedInformer_AddHandler() {
	c, stop := exampleServer()
	defer stop()
	ctx := context.Background()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	services := informer.For[*corev1.Service](factory, informer.ListOptions{Namespace: "default"})
	factory.Start(ctx)
	check(factory.WaitForSync(ctx))

	for _, handler := range []string{"first", "second"} {
		registration, err := services.AddHandler(informer.HandlerFuncs[*corev1.Service]{
			Add: func(service *corev1.Service, initial bool) {
				fmt.Println(handler, "sees", service.Name, "that was there:", initial)
			},
		}, informer.HandlerOptions{Name: handler})
		check(err)
		<-registration.Synced()
		<-registration.Remove()
	}
	// Output:
	// first sees kubernetes that was there: true
	// second sees kubernetes that was there: true
}

// The server leaves out what a program does not look at. Several namespaces are
// one informer.
func ExampleFor() {
	c, stop := exampleServer()
	defer stop()
	ctx := context.Background()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	one := informer.For[*corev1.Namespace](factory, informer.ListOptions{FieldSelector: "metadata.name=default"})
	labelled := informer.For[*corev1.Namespace](factory, informer.ListOptions{LabelSelector: "team in (red, blue)"})
	several := informer.For[*corev1.Service](factory, informer.ListOptions{Namespaces: []string{"default", "kube-system"}})
	factory.Start(ctx)
	check(factory.WaitForSync(ctx))

	fmt.Println(one.Name(), one.Lister().Len())
	fmt.Println(labelled.Name(), labelled.Lister().Len())
	fmt.Println(several.Name(), several.Lister().Len())
	// Output:
	// namespaces (fields metadata.name=default) 1
	// namespaces (labels team in (red, blue)) 0
	// services (namespaces default kube-system) 1
}

// A transform drops fields that the program does not read before the object is
// stored.
func ExampleSharedInformer_SetTransform() {
	c, stop := exampleServer()
	defer stop()
	ctx := context.Background()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	namespaces := informer.For[*corev1.Namespace](factory, informer.ListOptions{})
	check(namespaces.SetTransform(func(namespace *corev1.Namespace) (*corev1.Namespace, error) {
		namespace.ManagedFields, namespace.Spec = nil, corev1.NamespaceSpec{}
		return namespace, nil
	}))
	factory.Start(ctx)
	check(factory.WaitForSync(ctx))

	namespace, _ := namespaces.Lister().Get("", "default")
	fmt.Println(namespace.Name, namespace.Spec.Finalizers)
	// Output: default []
}

// Shutdown waits until no handler runs and no watch is open: what a handler
// uses may be given up after it.
func ExampleFactory_Shutdown() {
	c, stop := exampleServer()
	defer stop()

	factory := informer.NewFactory(c, informer.Options{})
	namespaces := informer.For[*corev1.Namespace](factory, informer.ListOptions{})
	var names []string
	registration, err := namespaces.AddHandler(informer.HandlerFuncs[*corev1.Namespace]{
		Add: func(namespace *corev1.Namespace, _ bool) { names = append(names, namespace.Name) },
	}, informer.HandlerOptions{})
	check(err)
	factory.Start(context.Background()) // or with a context: its end stops the informers, too
	<-registration.Synced()
	factory.Shutdown()

	slices.Sort(names) // no handler runs any more
	fmt.Println(names, c.Stats().ActiveWatches)
	// Output: [default kube-node-lease kube-public kube-system] 0
}

// A controller by hand: handlers put keys into a queue, a worker brings each
// object to the state that is wanted, from the present state and never from the
// event. Package controller does it for you.
func Example_controller() {
	c, stop := exampleServer()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	configMaps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default", LabelSelector: "greets"})
	queue := workqueue.New(workqueue.Options[string]{})
	enqueue := func(cm *corev1.ConfigMap) { queue.Add(cm.Name) }
	_, err := configMaps.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{
		Add:    func(cm *corev1.ConfigMap, _ bool) { enqueue(cm) },
		Update: func(_, cm *corev1.ConfigMap) { enqueue(cm) },
		Delete: func(cm *corev1.ConfigMap, _ bool) { enqueue(cm) },
	}, informer.HandlerOptions{})
	check(err)
	factory.Start(ctx)
	check(factory.WaitForSync(ctx))

	api := client.For[*corev1.ConfigMap](c).Namespace("default")
	_, err = api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "greeting", Labels: map[string]string{"greets": "yes"}}}, metav1.CreateOptions{})
	check(err)

	for {
		name, ok := queue.Get(ctx)
		if !ok {
			return // ctx has ended, or the queue was shut down
		}
		cm, exists := configMaps.Lister().Get("default", name)
		if exists && cm.Data["text"] == "" {
			cm = cm.DeepCopy() // what a lister returns is shared
			cm.Data = map[string]string{"text": "hello"}
			if _, err := api.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
				queue.AddRateLimited(name) // another client wrote: look again later
			}
		} else if exists {
			fmt.Println(cm.Name, "says", cm.Data["text"])
			queue.ShutDown()
		}
		queue.Done(name)
	}
	// Output: greeting says hello
}
