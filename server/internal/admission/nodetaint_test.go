package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/admission"
)

// TestTaintNodesByCondition: a new node is tainted once, whatever taints it comes with; one
// that is changed is not tainted again.
func TestTaintNodesByCondition(t *testing.T) {
	c, without := start(t), start(t, admission.TaintNodesByCondition)
	newNode := func(name string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	other := corev1.Taint{Key: "disk", Value: "slow", Effect: corev1.TaintEffectNoSchedule}
	evicts := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}
	nodes := client.For[*corev1.Node](c.Client)
	for name, test := range map[string]struct {
		has  []corev1.Taint
		want int
	}{
		"none": {nil, 1}, "same": {[]corev1.Taint{notReady}, 1}, "other": {[]corev1.Taint{other}, 2}, "effect": {[]corev1.Taint{evicts}, 2},
	} {
		made := must[*corev1.Node](t, name)(nodes.Create(t.Context(), newNode(name, test.has...), metav1.CreateOptions{}))
		if last := len(made.Spec.Taints) - 1; last+1 != test.want || !made.Spec.Taints[last].MatchTaint(&notReady) {
			t.Errorf("%s: %v", name, made.Spec.Taints)
		}
		made.Spec.Taints = nil
		if made = must[*corev1.Node](t, name)(nodes.Update(t.Context(), made, metav1.UpdateOptions{})); len(made.Spec.Taints) != 0 {
			t.Errorf("%s is tainted again: %v", name, made.Spec.Taints)
		}
	}
	made := must[*corev1.Node](t, "node")(client.For[*corev1.Node](without.Client).Create(t.Context(), newNode("n"), metav1.CreateOptions{}))
	if len(made.Spec.Taints) != 0 {
		t.Errorf("without the plugin: %v", made.Spec.Taints)
	}
}
