package informer_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// A list of namespaces that a program has computed may be empty. It is neither all
// namespaces nor the factory's, and spoils no informer that is.
func TestEmptyListOfNamespaces(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []informer.Options{{}, {Namespace: "default"}} {
		f := informer.NewFactory(c, opts)
		none := informer.For[*corev1.Pod](f, informer.ListOptions{Namespaces: []string{}})
		all := informer.For[*corev1.Pod](f, informer.ListOptions{})
		if err := none.Err(); err == nil || !strings.Contains(err.Error(), "leave it nil for all namespaces") {
			t.Errorf("namespace %q: none: %v", opts.Namespace, err)
		}
		if err := all.Err(); err != nil || all == none {
			t.Errorf("namespace %q: all: %v", opts.Namespace, err)
		}
	}
}
