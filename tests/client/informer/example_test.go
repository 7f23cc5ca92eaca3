package informer_test

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
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
