package ondemand_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/informer/ondemand"
)

// A program that needs few of a cluster's secrets whole watches the metadata of all.
func Example() {
	var ctx context.Context // that of the program
	var c *client.Client    // of client.New

	factory := informer.NewFactory(c, informer.Options{})
	metadata := informer.Metadata(factory, corev1.SchemeGroupVersion.WithResource("secrets"), informer.ListOptions{})
	secrets, err := ondemand.New(metadata, client.For[*corev1.Secret](c), ondemand.Options{MaxObjects: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	factory.Start(ctx)
	secret, err := secrets.Get(ctx, "default", "tls") // one request, unless it is kept in this state
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(secret.Data))
}
