package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
)

var (
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	widgetKind = widgets.GroupVersion().WithKind("Widget")
)

func definitions(c *cluster) client.Resource[*apiextensionsv1.CustomResourceDefinition] {
	return client.For[*apiextensionsv1.CustomResourceDefinition](c.client)
}

// defineWidgets makes a kind and waits until it is served.
func defineWidgets(c *cluster) {
	c.t.Helper()
	anything := true
	create(c, definitions(c), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}}}},
		},
	})
	await(c, definitions(c), "widgets.example.com", "established", established)
}

func established(d *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range d.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}

func createWidget(c *cluster, namespace, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	c.t.Helper()
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(widgetKind)
	widget.SetName(name)
	widget.SetOwnerReferences(owners)
	return create(c, client.Dynamic(c.client, widgets).Namespace(namespace), widget)
}

func awaitNoWidgets(c *cluster, namespace string) {
	c.t.Helper()
	awaitEach(c, client.Dynamic(c.client, widgets).Namespace(namespace), metav1.ListOptions{}, "no widgets",
		func(all map[string]*unstructured.Unstructured) bool { return len(all) == 0 })
}

// Custom resources own and are owned as soon as they are defined, when they are
// defined anew, and what they owned goes with their definition.
func TestCustomResourcesAreCollected(t *testing.T) {
	c := newCluster(t, 0)
	c.startManager()
	configs := in[*corev1.ConfigMap](c)
	for range 2 {
		defineWidgets(c)
		top := create(c, configs, newConfig("top"))
		middle := createWidget(c, "default", "middle", ownedBy(top))
		create(c, configs, newConfig("bottom", *metav1.NewControllerRef(middle, widgetKind)))
		foreground := metav1.DeletePropagationForeground
		remove(c, configs, "top", metav1.DeleteOptions{PropagationPolicy: &foreground})
		for _, name := range []string{"bottom", "top"} {
			awaitGone(c, name)
		}
		awaitNoWidgets(c, "default")

		last := createWidget(c, "default", "last")
		create(c, configs, newConfig("bottom", *metav1.NewControllerRef(last, widgetKind)))
		remove(c, definitions(c), "widgets.example.com", metav1.DeleteOptions{})
		awaitEach(c, definitions(c), metav1.ListOptions{}, "no definitions",
			func(all map[string]*apiextensionsv1.CustomResourceDefinition) bool { return len(all) == 0 })
		awaitGone(c, "bottom")
	}
}

func TestNamespaceGoesWithItsCustomResources(t *testing.T) {
	c := newCluster(t, 0)
	c.startManager()
	defineWidgets(c)
	namespaces := client.For[*corev1.Namespace](c.client)
	create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	createWidget(c, "team", "w")
	createWidget(c, "default", "w")
	remove(c, namespaces, "team", metav1.DeleteOptions{})
	awaitEach(c, namespaces, metav1.ListOptions{}, "the namespace gone", func(all map[string]*corev1.Namespace) bool {
		_, there := all["team"]
		return !there
	})
	awaitNoWidgets(c, "team")
	if _, err := client.Dynamic(c.client, widgets).Namespace("default").Get(c.ctx, "w", metav1.GetOptions{}); err != nil {
		t.Errorf("another namespace's: %v", err)
	}
}
