package informer_test

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
)

// Gadget is the Go type of a custom resource. DeepCopyObject is usually generated.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              GadgetSpec `json:"spec"`
}

// GadgetSpec is what is wanted of a Gadget.
type GadgetSpec struct {
	Color string `json:"color"`
}

// DeepCopyObject implements runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

var gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}

// Custom resources have the same informers: with a Go type, which is registered once,
// without one, or of the metadata only. They need not be defined yet: an informer
// begins when its resource is there, empties when the definition goes, and begins anew.
func ExampleFor_customResource() {
	c, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	check(scheme.Register[*Gadget](c.Scheme(), scheme.Mapping{
		Kind: gadgets.GroupVersion().WithKind("Gadget"), Scope: scheme.Namespaced,
	}))

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	typed := informer.For[*Gadget](factory, informer.ListOptions{})
	dynamic := informer.Dynamic(factory, gadgets, informer.ListOptions{})
	metadata := informer.Metadata(factory, gadgets, informer.ListOptions{})
	factory.Start(ctx)

	defineGadgets(ctx, c)
	check(factory.WaitForSync(ctx))
	created, err := client.For[*Gadget](c).Namespace("default").Create(ctx, &Gadget{
		ObjectMeta: metav1.ObjectMeta{Name: "lamp"}, Spec: GadgetSpec{Color: "red"},
	}, metav1.CreateOptions{})
	check(err)

	check(typed.WaitForResourceVersion(ctx, created.ResourceVersion))
	gadget, _ := typed.Lister().Get("default", "lamp")
	fmt.Println(gadget.Spec.Color)
	check(dynamic.WaitForResourceVersion(ctx, created.ResourceVersion))
	object, _ := dynamic.Lister().Get("default", "lamp")
	color, _, err := unstructured.NestedString(object.Object, "spec", "color")
	check(err)
	fmt.Println(color)
	check(metadata.WaitForResourceVersion(ctx, created.ResourceVersion))
	meta, _ := metadata.Lister().Get("default", "lamp")
	fmt.Println(meta.Name, meta.UID == created.UID)
	// Output:
	// red
	// red
	// lamp true
}

// defineGadgets creates the CustomResourceDefinition of Gadgets.
func defineGadgets(ctx context.Context, c *client.Client) {
	color := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"color": color}}
	_, err := definitions(c).Create(ctx, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gadgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: gadgets.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}}}},
		},
	}, metav1.CreateOptions{})
	check(err)
}
