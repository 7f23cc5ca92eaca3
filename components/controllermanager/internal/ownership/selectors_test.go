package ownership

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/controller"
)

// manyRequirements is a selector that the labels app=web have.
func manyRequirements(n int) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn}}}
	for i := range n {
		value := fmt.Sprint("v", i)
		s.MatchExpressions[0].Values = append(s.MatchExpressions[0].Values, value)
		s.MatchExpressions = append(s.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: "k" + value, Operator: metav1.LabelSelectorOpDoesNotExist},
			metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}})
	}
	return s
}

// TestSelectorsAreReadOnce: a reconciliation of an owner that has not changed makes nothing of its selector.
func TestSelectorsAreReadOnce(t *testing.T) {
	large := manyRequirements(10_000)
	owner := &metav1.ObjectMeta{Namespace: "default", Name: "o", UID: "1", Generation: 1}
	var s Selectors
	matches := func(owner metav1.Object, selector *metav1.LabelSelector) bool {
		t.Helper()
		read, err := s.Of(owner, selector)
		if err != nil {
			t.Fatal(err)
		}
		return read.Matches(labels.Set{"app": "web"})
	}
	again := owner.DeepCopy()
	again.ResourceVersion = "2" // of a change of the status
	if n := testing.AllocsPerRun(10, func() {
		if !matches(owner, large) || !matches(again, large) {
			t.Error("it does not match")
		}
	}); n > 10 {
		t.Errorf("%v allocations", n)
	}
	other := manyRequirements(10_000)
	other.MatchLabels["app"] = "other"
	for what, change := range map[string]func(*metav1.ObjectMeta){
		"generation": func(o *metav1.ObjectMeta) { o.Generation++ },
		"uid":        func(o *metav1.ObjectMeta) { o.UID = "2" },
	} {
		changed := owner.DeepCopy()
		change(changed)
		if !matches(owner, large) || matches(changed, other) {
			t.Errorf("that of another %s is taken", what)
		}
	}
	unversioned := &metav1.ObjectMeta{Namespace: "default", Name: "u", UID: "3"}
	if !matches(unversioned, large) || matches(unversioned, other) {
		t.Error("that of an owner without a generation is kept")
	}
	s.Forget(controller.KeyOf(unversioned))
	if matches(owner, &metav1.LabelSelector{MatchLabels: other.MatchLabels}); len(s.large) > 0 {
		t.Errorf("%d are kept that are gone, or small", len(s.large))
	}
}

// TestSelectorsOfOwners: what is small, empty or wrong is as Kubernetes has it.
func TestSelectorsOfOwners(t *testing.T) {
	var s Selectors
	owner := &metav1.ObjectMeta{Namespace: "default", Name: "o", UID: "1", Generation: 1}
	if none, err := s.Of(owner, nil); err != nil || none.Matches(labels.Set{}) {
		t.Error("none selects", err)
	}
	if all, err := s.Of(owner, &metav1.LabelSelector{}); err != nil || !all.Empty() || !all.Matches(labels.Set{"a": "b"}) {
		t.Error("an empty one does not select everything", err)
	}
	wrong := manyRequirements(1000)
	wrong.MatchExpressions[7].Operator = "Near"
	if _, err := s.Of(owner, wrong); err == nil {
		t.Error("an operator that does not exist is taken")
	}
	owner.Generation++ // when it is mended
	large, err := s.Of(owner, manyRequirements(1000))
	if err != nil || large.Empty() || large.Matches(labels.Set{}) || large.Matches(labels.Set{"app": "web", "kv7": ""}) {
		t.Error(err)
	}
}

// TestManyRequirements: what a pod costs depends on its labels. Held against each requirement and value, these took an hour, beyond the time
// of all tests of the package.
func TestManyRequirements(t *testing.T) {
	const pods = 1_000_000
	var s Selectors
	selector, err := s.Of(&metav1.ObjectMeta{Namespace: "default", Name: "o", UID: "1", Generation: 1}, manyRequirements(30_000))
	if err != nil {
		t.Fatal(err)
	}
	set := labels.Set{"app": "web"}
	for range pods {
		if !selector.Matches(set) {
			t.Fatal("it does not match")
		}
	}
}
