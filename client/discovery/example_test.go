package discovery_test

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
)

// A name from the command line becomes an endpoint.
func ExampleMapper_ByName() {
	c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{
		WrapTransport: func(http.RoundTripper) http.RoundTripper { return &server{aggregated: true} }, // in place of a server
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mapper := discovery.NewMapper(c, discovery.Options{})
	deploy, err := mapper.ByName(context.Background(), "deploy")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(deploy.Mapping.Kind, deploy.Mapping.Resource, deploy.Mapping.Scope)
	_, err = client.DynamicMapping(c, deploy.Mapping).Get(context.Background(), "web", metav1.GetOptions{})
	fmt.Println(err)
	// Output:
	// apps/v1, Kind=Deployment deployments Namespaced
	// get deployments: no namespace is given, and Deployment is namespaced: call Namespace, or set metadata.namespace of objects to write
}
