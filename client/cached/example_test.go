package cached_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cached"
	"github.com/levelwire/levelwire/client/informer"
)

// The reader serves pods from an informer, by an index where a field selector asks for
// it, and everything else from the server. Calls are those of package client.
func Example() {
	ctx := context.Background()
	c, err := client.FromKubeconfig("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{})
	if err := pods.AddIndexers(cached.FieldIndexers("spec.nodeName", func(pod *corev1.Pod) string { return pod.Spec.NodeName })); err != nil {
		log.Fatal(err)
	}
	reader := cached.NewReader(factory, cached.Options{})
	if err := cached.Add(reader, pods); err != nil {
		log.Fatal(err)
	}
	factory.Start(ctx)

	list, err := cached.For[*corev1.Pod](reader).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(list.Items), "pods, from the cache")
	secret, err := cached.For[*corev1.Secret](reader).Namespace("default").Get(ctx, "password", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(secret.Name, "from the server")
}

// Reads after a recorded write show it: they wait until the cache does.
func ExampleResource_Record() {
	ctx := context.Background()
	c, err := client.FromKubeconfig("", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	reader := cached.NewReader(factory, cached.Options{})
	reader.CacheOnFirstUse(ctx) // an informer of each kind that is read

	configMaps := cached.For[*corev1.ConfigMap](reader).Namespace("default")
	settings, err := configMaps.Get(ctx, "settings", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	settings.Data = map[string]string{"color": "red"} // a copy: Options.Shared is not set
	written, err := configMaps.Uncached().Update(ctx, settings, metav1.UpdateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	configMaps.Record(written)
	settings, err = configMaps.Get(ctx, "settings", metav1.GetOptions{})
	fmt.Println(settings, err)
}
