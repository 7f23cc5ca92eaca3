package informer_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

func Example_program() {
	if err := printPods(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// printPods prints what happens to pods until ctx ends.
func printPods(ctx context.Context) error {
	c, err := client.FromKubeconfig("", client.Options{}) // "": the kubeconfig that kubectl uses
	if err != nil {
		return err
	}
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{LabelSelector: "app=web"})
	if _, err := pods.AddHandler(informer.HandlerFuncs[*corev1.Pod]{
		Add:    func(pod *corev1.Pod, initial bool) { fmt.Println("added", pod.Name) },
		Update: func(old, pod *corev1.Pod) { fmt.Println("updated", pod.Name, pod.Status.Phase) },
		Delete: func(pod *corev1.Pod, finalStateUnknown bool) { fmt.Println("deleted", pod.Name) },
	}, informer.HandlerOptions{}); err != nil {
		return err
	}
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		return err // it names what has no complete list, and why
	}
	if pod, ok := pods.Lister().Get("default", "web-0"); ok { // from the cache
		fmt.Println("there is", pod.Name)
	}
	<-ctx.Done()
	return nil
}
