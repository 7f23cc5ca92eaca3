package controller_test

import (
	"fmt"
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
				return strings.Contains(condition.Message, fmt.Sprintf("%d configmaps", kept))
			}
		}
		return false
	})
	for i := range kept {
		change(c, configs, fmt.Sprintf("config-%03d", i), func(o *corev1.ConfigMap) { o.Finalizers = nil })
	}
	awaitEach(c, namespaces, metav1.ListOptions{}, "the namespace is gone", func(all map[string]*corev1.Namespace) bool { return all["pages"] == nil })
}
