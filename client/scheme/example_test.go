package scheme_test

import (
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client/scheme"
)

// Gadget is the Go type of a custom resource. DeepCopyObject is usually generated.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Color             string `json:"color"`
}

// DeepCopyObject implements runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// A custom type is registered once, when the program starts. client.For[*Gadget],
// informer.For[*Gadget], controller.Owns[*Gadget], events and owner references then know
// what it is, and no object needs a TypeMeta.
func ExampleRegister() {
	err := scheme.Register[*Gadget](nil, scheme.Mapping{ // nil: in scheme.Default
		Kind:  schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"},
		Scope: scheme.Namespaced,
	})
	if err != nil {
		log.Fatal(err)
	}
	gadgets, err := scheme.For[*Gadget](nil)
	fmt.Println(gadgets.GroupVersionResource(), err)
	pods, err := scheme.For[*corev1.Pod](nil) // is known without registration
	fmt.Println(pods.GroupVersionResource(), err)
	// Output:
	// example.com/v1, Resource=gadgets <nil>
	// /v1, Resource=pods <nil>
}
