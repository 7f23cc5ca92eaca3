package informer_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/workqueue"
)

// tinyServer is an API server with a few objects, which never change. A program has
// client.FromKubeconfig in its place.
func tinyServer() (c *client.Client, stop func()) {
	objects := map[string][]string{
		"namespaces": {
			`{"metadata":{"name":"default","resourceVersion":"1"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`,
			`{"metadata":{"name":"kube-system","resourceVersion":"2"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`,
		},
		"services": {
			`{"metadata":{"name":"kubernetes","namespace":"default","resourceVersion":"3"},"spec":{"ports":[{"port":443}]}}`,
			`{"metadata":{"name":"web","namespace":"default","resourceVersion":"4"},"spec":{"ports":[{"port":80},{"port":443}]}}`,
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, object := range objects[path.Base(r.URL.Path)] {
			_, _ = io.WriteString(w, `{"type":"ADDED","object":`+object+`}`)
		}
		_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	check(err)
	return c, func() {
		c.CloseIdleConnections()
		server.Close()
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A first informer: wait until the cache is complete, then read it.
func Example() {
	c, stop := tinyServer()
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
	c, stop := tinyServer()
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

	found, err := services.Lister().ByIndex("port", "80")
	check(err)
	fmt.Println(found[0].Name)
	// Output: web
}

// Many handlers share one watch and one cache. Each is called in a goroutine of its
// own, knows when it has seen everything there was, and may leave.
func ExampleSharedInformer_AddHandler() {
	c, stop := tinyServer()
	defer stop()
	ctx := context.Background()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	services := informer.For[*corev1.Service](factory, informer.ListOptions{Namespace: "default"})
	factory.Start(ctx)
	check(factory.WaitForSync(ctx))

	registration, err := services.AddHandler(informer.HandlerFuncs[*corev1.Service]{
		Add: func(service *corev1.Service, initial bool) {
			fmt.Println("added", service.Name, "that was there:", initial)
		},
		Update: func(old, service *corev1.Service) {
			fmt.Println("changed", service.Name, "from version", old.ResourceVersion)
		},
		Delete: func(service *corev1.Service, finalStateUnknown bool) {
			fmt.Println("deleted", service.Name)
		},
	}, informer.HandlerOptions{Name: "printer"})
	check(err)
	<-registration.Synced()
	<-registration.Remove()
	// Unordered output:
	// added kubernetes that was there: true
	// added web that was there: true
}

// The server leaves out what a program does not look at. Several namespaces are one
// informer, and the same options give the same informer.
func ExampleFor() {
	c, stop := tinyServer()
	defer stop()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	one := informer.For[*corev1.Namespace](factory, informer.ListOptions{FieldSelector: "metadata.name=default"})
	labelled := informer.For[*corev1.Pod](factory, informer.ListOptions{LabelSelector: "team in (red, blue)"})
	several := informer.For[*corev1.Service](factory, informer.ListOptions{Namespaces: []string{"default", "kube-system"}})
	again := informer.For[*corev1.Service](factory, informer.ListOptions{Namespaces: []string{"kube-system", "default"}})

	fmt.Println(one.Name())
	fmt.Println(labelled.Name())
	fmt.Println(several.Name(), several == again)
	// Output:
	// namespaces (fields metadata.name=default)
	// pods (labels team in (red, blue))
	// services (namespaces default kube-system) true
}

// A transform drops fields that the program does not read before the object is stored.
func ExampleSharedInformer_SetTransform() {
	c, stop := tinyServer()
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

// Shutdown waits until no handler runs and no watch is open: what a handler uses may be
// given up after it.
func ExampleFactory_Shutdown() {
	c, stop := tinyServer()
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
	// Output: [default kube-system] 0
}

// A cache that shows what the program has just written: the wait ends with the event of
// the write, and nothing polls.
func ExampleSharedInformer_WaitForResourceVersion() {
	ctx := context.Background()
	c, err := client.FromKubeconfig("", client.Options{})
	check(err)
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	configMaps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default"})
	factory.Start(ctx)

	written, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	check(err)
	check(configMaps.WaitForResourceVersion(ctx, written.ResourceVersion))
	_, ok := configMaps.Lister().Get("default", "settings")
	fmt.Println(ok)
}

// With a directory the informers keep their objects in files. A program that is started
// again has them at once, and resumes its watches: nothing is listed.
func ExampleOptions_disk() {
	ctx := context.Background()
	c, err := client.FromKubeconfig("", client.Options{})
	check(err)
	factory := informer.NewFactory(c, informer.Options{
		Disk: informer.DiskOptions{Directory: "/var/cache/my-controller", Interval: time.Minute},
	})
	defer factory.Shutdown() // saves once more
	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{})
	factory.Start(ctx)
	check(factory.WaitForSync(ctx)) // until the server has confirmed what the file says
	log.Println(pods.Lister().Len(), "pods,", pods.Stats().Disk.Restored, "of them from the file")
}

// A controller by hand: handlers put keys into a queue, and a worker brings each object
// to the state that is wanted, from the present state and never from the event. Package
// controller does it for you.
func Example_workqueue() {
	ctx := context.Background()
	c, err := client.FromKubeconfig("", client.Options{})
	check(err)
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	configMaps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default"})
	queue := workqueue.New(workqueue.Options[string]{})
	_, err = configMaps.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{
		Add:    func(cm *corev1.ConfigMap, _ bool) { queue.Add(cm.Name) },
		Update: func(_, cm *corev1.ConfigMap) { queue.Add(cm.Name) },
		Delete: func(cm *corev1.ConfigMap, _ bool) { queue.Add(cm.Name) },
	}, informer.HandlerOptions{})
	check(err)
	factory.Start(ctx)
	check(factory.WaitForSync(ctx))

	for {
		name, ok := queue.Get(ctx)
		if !ok {
			return // ctx has ended, or the queue was shut down
		}
		if cm, exists := configMaps.Lister().Get("default", name); exists && cm.Data["text"] == "" {
			cm = cm.DeepCopy() // what a lister returns is shared
			cm.Data = map[string]string{"text": "hello"}
			if _, err := client.For[*corev1.ConfigMap](c).Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
				queue.AddRateLimited(name) // another client wrote: look again later
			} else {
				queue.Forget(name)
			}
		}
		queue.Done(name)
	}
}
