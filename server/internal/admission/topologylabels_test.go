package admission_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/admission"
)

// TestPodTopologyLabels: a pod that is bound, or created with a node, has the zone and the
// region of the node and no other labels of it, in the place of a client's.
func TestPodTopologyLabels(t *testing.T) {
	c, without := start(t), start(t, admission.PodTopologyLabels)
	kind := "Node"
	bound := func(c *cluster, name, node string, labels map[string]string) map[string]string {
		t.Helper()
		pod := newPod(name)
		pod.Labels = labels
		must[*corev1.Pod](t, name)(create(c, pod))
		pods := client.For[*corev1.Pod](c.Client).Namespace("default")
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: kind, Name: node}}
		if err := pods.SubResource("binding").Create(t.Context(), name, binding, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return must[*corev1.Pod](t, name)(pods.Get(t.Context(), name, metav1.GetOptions{})).Labels
	}
	const zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
	place := map[string]string{zone: "a", region: "r"}
	for _, c := range []*cluster{c, without} {
		createCluster(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{zone: "a", region: "r", "topology.kubernetes.io/rack": "3", "x": "y"}}})
		createCluster(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}})
	}
	check := func(what string, got, want map[string]string) {
		t.Helper()
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("no labels", bound(c, "a", "n", nil), place)
	check("labels of the client", bound(c, "b", "n", map[string]string{"app": "web", zone: "z"}), map[string]string{"app": "web", zone: "a", region: "r"})
	check("a node without", bound(c, "c", "bare", map[string]string{zone: "z"}), map[string]string{zone: "z"})
	check("no node", bound(c, "d", "gone", nil), nil)
	kind = ""
	check("a target without a kind", bound(c, "g", "n", nil), nil)
	kind = "Node"
	check("without the plugin", bound(without, "e", "n", nil), nil)
	made := must[*corev1.Pod](t, "created with a node")(create(c, newPod("f", func(s *corev1.PodSpec) { s.NodeName = "n" })))
	check("created with a node", made.Labels, place)
}
