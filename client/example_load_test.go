package client_test

import (
	"flag"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/kubeconfig"
)

// The flags, files and defaults of kubectl.
func ExampleLoad() {
	var from kubeconfig.Options
	from.AddFlags(flag.CommandLine) // -kubeconfig, -context, -namespace, -as
	flag.Parse()
	c, namespace, err := client.Load(from, client.Options{ContentType: client.Protobuf})
	if err != nil {
		log.Fatal(err)
	}
	pods := client.For[*corev1.Pod](c).Namespace(namespace)
	fmt.Println("pods of", namespace, "at", c.Host(), pods.Err())
}
