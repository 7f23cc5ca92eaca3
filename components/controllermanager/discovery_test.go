package controller_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/client"
)

// registerUnavailable registers a group version whose server does not exist, and waits
// until discovery says that it cannot be asked.
func registerUnavailable(c *cluster) (remove func()) {
	c.t.Helper()
	services := client.For[*apiregistrationv1.APIService](c.client)
	create(c, services, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.unavailable.example.com"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "unavailable.example.com", Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 100, InsecureSkipTLSVerify: true,
			Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "nothing"},
		},
	})
	await(c, services, "v1.unavailable.example.com", "unavailable", func(s *apiregistrationv1.APIService) bool {
		return len(s.Status.Conditions) > 0 && s.Status.Conditions[0].Status == apiregistrationv1.ConditionFalse
	})
	return func() {
		if err := services.Delete(c.ctx, "v1.unavailable.example.com", metav1.DeleteOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// A group that cannot be asked keeps a namespace, because it may have objects there. It
// keeps nothing else in it, and the namespace says so.
func TestNamespaceWithAGroupThatCannotBeAsked(t *testing.T) {
	c := newCluster(t, 0)
	repair := registerUnavailable(c)
	c.startManager()
	namespaces := client.For[*corev1.Namespace](c.client)
	create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	configs := client.For[*corev1.ConfigMap](c.client).Namespace("team")
	create(c, configs, newConfig("c"))
	remove(c, namespaces, "team", metav1.DeleteOptions{})
	awaitEach(c, configs, metav1.ListOptions{}, "no ConfigMaps", func(all map[string]*corev1.ConfigMap) bool { return len(all) == 0 })
	await(c, namespaces, "team", "its conditions name the group", func(n *corev1.Namespace) bool {
		failure := conditionOf(n, corev1.NamespaceDeletionDiscoveryFailure)
		return failure.Status == corev1.ConditionTrue && strings.Contains(failure.Message, "unavailable.example.com/v1") &&
			conditionOf(n, corev1.NamespaceDeletionContentFailure).Status == corev1.ConditionFalse
	})
	repair()
	awaitEach(c, namespaces, metav1.ListOptions{}, "the namespace gone", func(all map[string]*corev1.Namespace) bool { return all["team"] == nil })
}

func conditionOf(n *corev1.Namespace, kind corev1.NamespaceConditionType) corev1.NamespaceCondition {
	for _, condition := range n.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.NamespaceCondition{}
}

// A group that cannot be asked when the garbage collector starts does not keep it from
// collecting what the others have.
func TestCollectorStartsWithoutAGroup(t *testing.T) {
	c := newCluster(t, 0)
	registerUnavailable(c)
	c.startManager()
	configs := in[*corev1.ConfigMap](c)
	owner := create(c, configs, newConfig("owner"))
	create(c, configs, newConfig("dependent", ownedBy(owner)))
	remove(c, configs, "owner", metav1.DeleteOptions{})
	awaitGone(c, "dependent")
}

// A kind that the preferred version of its group does not have is found as others are: its
// objects are collected, what they own is, and they go with their namespace.
func TestKindsOfOtherVersions(t *testing.T) {
	gadgets := schema.GroupVersionResource{Group: widgets.Group, Version: "v1alpha1", Resource: "gadgets"}
	c := newCluster(t, 0)
	defineWidgets(c) // in v1
	anything := true
	create(c, definitions(c), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gadgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: gadgets.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}}}},
		},
	})
	await(c, definitions(c), "gadgets.example.com", "established", established)
	c.startManager()
	gadgetKind := gadgets.GroupVersion().WithKind("Gadget")
	createGadget := func(namespace, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
		gadget := &unstructured.Unstructured{}
		gadget.SetGroupVersionKind(gadgetKind)
		gadget.SetName(name)
		gadget.SetOwnerReferences(owners)
		return create(c, client.Dynamic(c.client, gadgets).Namespace(namespace), gadget)
	}
	awaitNoGadgets := func(namespace string) {
		awaitEach(c, client.Dynamic(c.client, gadgets).Namespace(namespace), metav1.ListOptions{}, "no gadgets in "+namespace,
			func(all map[string]*unstructured.Unstructured) bool { return len(all) == 0 })
	}
	configs := in[*corev1.ConfigMap](c)
	top := create(c, configs, newConfig("top"))
	middle := createGadget("default", "middle", ownedBy(top))
	create(c, configs, newConfig("bottom", *metav1.NewControllerRef(middle, gadgetKind)))
	remove(c, configs, "top", metav1.DeleteOptions{})
	awaitNoGadgets("default")
	awaitGone(c, "bottom")

	namespaces := client.For[*corev1.Namespace](c.client)
	create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	createGadget("team", "g")
	remove(c, namespaces, "team", metav1.DeleteOptions{})
	awaitEach(c, namespaces, metav1.ListOptions{}, "the namespace gone", func(all map[string]*corev1.Namespace) bool { return all["team"] == nil })
	awaitNoGadgets("team")
}
