package controller_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
)

// TestNamespaceOfSeveralPages: what cannot go yet, first in order and more than a request deletes, keeps nothing
// else, and is counted in the namespace's conditions.
func TestNamespaceOfSeveralPages(t *testing.T) {
	c := newCluster(t, 0)
	namespaces := client.For[*corev1.Namespace](c.client)
	create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pages"}})
	configs := client.For[*corev1.ConfigMap](c.client).Namespace("pages")
	const kept, all = 40, 100
	for i := range all {
		o := newConfig(fmt.Sprintf("config-%03d", i))
		if i < kept {
			o.Finalizers = []string{"example.com/kept"}
		}
		create(c, configs, o)
	}
	c.startManager()
	remove(c, namespaces, "pages", metav1.DeleteOptions{})
	awaitEach(c, configs, metav1.ListOptions{}, "only what has finalizers is left", func(left map[string]*corev1.ConfigMap) bool { return len(left) == kept })
	await(c, namespaces, "pages", "its conditions count what is left", func(n *corev1.Namespace) bool {
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NamespaceContentRemaining && condition.Status == corev1.ConditionTrue {
				return strings.Contains(condition.Message, fmt.Sprintf("configmaps. has %d resource instances", kept))
			}
		}
		return false
	})
	for i := range kept {
		change(c, configs, fmt.Sprintf("config-%03d", i), func(o *corev1.ConfigMap) { o.Finalizers = nil })
	}
	awaitEach(c, namespaces, metav1.ListOptions{}, "the namespace is gone", func(all map[string]*corev1.Namespace) bool { return all["pages"] == nil })
}

// TestPodsGoFirst: what a pod may need stays until it has gone, and the namespace's conditions say what it waits for.
func TestPodsGoFirst(t *testing.T) {
	c := newCluster(t, 0)
	namespaces := client.For[*corev1.Namespace](c.client)
	create(c, namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ordered"}})
	pods, configs := client.For[*corev1.Pod](c.client).Namespace("ordered"), client.For[*corev1.ConfigMap](c.client).Namespace("ordered")
	create(c, configs, newConfig("needed"))
	create(c, pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{"example.com/kept"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	})
	create(c, pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "free"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	})
	c.startManager()
	remove(c, namespaces, "ordered", metav1.DeleteOptions{})
	want := map[corev1.NamespaceConditionType]string{
		corev1.NamespaceDeletionDiscoveryFailure: "All resources successfully discovered",
		corev1.NamespaceDeletionGVParsingFailure: "All legacy kube types successfully parsed",
		corev1.NamespaceDeletionContentFailure:   "All content successfully deleted, may be waiting on finalization",
		corev1.NamespaceContentRemaining:         "Some resources are remaining: pods. has 1 resource instances",
		corev1.NamespaceFinalizersRemaining:      "Some content in the namespace has finalizers remaining: example.com/kept in 1 resource instances",
	}
	await(c, namespaces, "ordered", "its conditions say that it waits for the pod", func(n *corev1.Namespace) bool {
		said := map[corev1.NamespaceConditionType]string{}
		for _, condition := range n.Status.Conditions {
			said[condition.Type] = condition.Message
		}
		return maps.Equal(said, want)
	})
	if pod, err := pods.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp == nil {
		t.Errorf("the pod is not being deleted, %v", err)
	}
	if _, err := configs.Get(t.Context(), "needed", metav1.GetOptions{}); err != nil {
		t.Errorf("the pod needs %v", err)
	}
	change(c, pods, "kept", func(o *corev1.Pod) { o.Finalizers = nil })
	awaitEach(c, namespaces, metav1.ListOptions{}, "the namespace is gone", func(all map[string]*corev1.Namespace) bool { return all["ordered"] == nil })
}
