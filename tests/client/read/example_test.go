package read_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/cached"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/tests/client/exampleserver"
)

var check = exampleserver.Check

// The reader serves pods from an informer, with an index for a field selector, and
// namespaces from the server.
func Example() {
	c, stop := exampleserver.Start()
	defer stop()
	ctx := context.Background()
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()

	services := informer.For[*corev1.Service](factory, informer.ListOptions{})
	check(services.AddIndexers(cached.FieldIndexers("spec.type", func(s *corev1.Service) string { return string(s.Spec.Type) })))
	reader := cached.NewReader(factory, cached.Options{})
	check(cached.Add(reader, services))
	factory.Start(ctx)

	list, err := cached.For[*corev1.Service](reader).List(ctx, metav1.ListOptions{FieldSelector: "spec.type=ClusterIP"})
	check(err)
	fmt.Println(list.Items[0].Name)

	namespace, err := cached.For[*corev1.Namespace](reader).Get(ctx, "default", metav1.GetOptions{})
	check(err)
	fmt.Println(namespace.Status.Phase)
	// Output:
	// kubernetes
	// Active
}

// Reads after a recorded write show it.
func Example_readYourWrites() {
	c, stop := exampleserver.Start()
	defer stop()
	ctx := context.Background()
	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	reader := cached.NewReader(factory, cached.Options{})
	reader.CacheOnFirstUse(ctx)
	maps := cached.For[*corev1.ConfigMap](reader).Namespace("default")

	written, err := maps.Uncached().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	check(err)
	maps.Record(written)
	read, err := maps.Get(ctx, "settings", metav1.GetOptions{})
	check(err)
	fmt.Println(read.UID == written.UID)
	// Output: true
}
