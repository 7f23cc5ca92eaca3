package conditions_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/conditions"
)

func TestConditionsAreOfAGeneration(t *testing.T) {
	obj := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	all := &obj.Status.Conditions
	if !conditions.Set(obj, all, conditions.False("Ready", "Waiting", ""), conditions.Unknown("Known", "New", "")) || len(*all) != 2 {
		t.Fatalf("got %v", *all)
	}
	if conditions.Set(obj, all, conditions.False("Ready", "Waiting", "")) {
		t.Error("the same condition is no change")
	}
	conditions.Set(obj, all, conditions.True("Ready", "Done", ""))
	if !conditions.IsTrue(obj, *all, "Ready") || conditions.IsTrue(obj, *all, "Known") || conditions.IsTrue(obj, *all, "Missing") {
		t.Errorf("got %v", *all)
	}
	obj.Generation = 2
	if conditions.IsTrue(obj, *all, "Ready") {
		t.Error("a condition of an older generation counts")
	}
	since := conditions.Get(*all, "Ready").LastTransitionTime
	if !conditions.Set(obj, all, conditions.True("Ready", "Done", "")) || !conditions.IsTrue(obj, *all, "Ready") {
		t.Errorf("observed again: %v", *all)
	}
	if got := conditions.Get(*all, "Ready"); !got.LastTransitionTime.Equal(&since) {
		t.Error("the status is the same and its time another")
	}
	if !conditions.Remove(all, "Ready") || conditions.Remove(all, "Ready") {
		t.Errorf("got %v", *all)
	}
}
