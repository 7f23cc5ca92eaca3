package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestPredicatesCombine(t *testing.T) {
	labelled := func(namespace, app string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"app": app}}}
	}
	type predicate = Predicate[*corev1.ConfigMap]
	yes := predicate(func(Change[*corev1.ConfigMap]) bool { return true })
	no := Not(yes)
	web := HasLabels[*corev1.ConfigMap](labels.SelectorFromSet(labels.Set{"app": "web"}))
	added := func(m *corev1.ConfigMap) Change[*corev1.ConfigMap] { return Change[*corev1.ConfigMap]{Object: m} }
	updated := func(old, m *corev1.ConfigMap) Change[*corev1.ConfigMap] {
		return Change[*corev1.ConfigMap]{Kind: Updated, Old: old, Object: m}
	}
	for _, c := range []struct {
		name      string
		predicate predicate
		change    Change[*corev1.ConfigMap]
		want      bool
	}{
		{"and of none", And[*corev1.ConfigMap](), added(labelled("a", "")), true},
		{"and", And(yes, yes), added(labelled("a", "")), true},
		{"and, one does not", And(yes, no), added(labelled("a", "")), false},
		{"or of none", Or[*corev1.ConfigMap](), added(labelled("a", "")), false},
		{"or", Or(no, yes), added(labelled("a", "")), true},
		{"or, none does", Or(no, no), added(labelled("a", "")), false},
		{"not of a combination", Not(Or(no, web)), added(labelled("a", "web")), false},
		{"labels match", web, added(labelled("a", "web")), true},
		{"labels do not match", web, added(labelled("a", "db")), false},
		{"labels match no more", web, updated(labelled("a", "web"), labelled("a", "db")), true},
		{"labels match now", web, updated(labelled("a", "db"), labelled("a", "web")), true},
		{"labels never match", web, updated(labelled("a", "db"), labelled("a", "db")), false},
		{"no selector", HasLabels[*corev1.ConfigMap](nil), added(labelled("a", "db")), true},
		{"in one of the namespaces", InNamespaces[*corev1.ConfigMap]("a", "b"), added(labelled("b", "")), true},
		{"in another namespace", InNamespaces[*corev1.ConfigMap]("a", "b"), added(labelled("c", "")), false},
		{"passes both", And(web, InNamespaces[*corev1.ConfigMap]("a")), added(labelled("a", "web")), true},
	} {
		if got := c.predicate(c.change); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Servers without resourceVersions have changes, too, and a transform may drop the versions: such
// a change is no resync.
func TestResyncsWithoutVersions(t *testing.T) {
	at := func(version string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	same := at("")
	for _, c := range []struct {
		name     string
		old, now *corev1.ConfigMap
		want     bool
	}{
		{"another version", at("1"), at("2"), false},
		{"the version once more", at("1"), at("1"), true},
		{"no versions, another state", at(""), at(""), false},
		{"no versions, the state once more", same, same, true},
		{"a version after none", at(""), at("1"), false},
	} {
		change := Change[*corev1.ConfigMap]{Kind: Updated, Old: c.old, Object: c.now}
		if change.Resync() != c.want || NoResync(change) == c.want {
			t.Errorf("%s: %v", c.name, change.Resync())
		}
	}
}

// widgetValue is an object that is no pointer, and that Go cannot compare.
type widgetValue struct {
	*corev1.ConfigMap
	counts map[string]int
}

// A type may be a value with maps, which must not panic.
func TestResyncsOfValues(t *testing.T) {
	same := &corev1.ConfigMap{}
	of := func(count int) widgetValue { return widgetValue{same, map[string]int{"a": count}} }
	for _, c := range []struct {
		name     string
		old, now widgetValue
		want     bool
	}{
		{"the state once more", of(1), of(1), true},
		{"another state", of(1), of(2), false},
	} {
		change := Change[widgetValue]{Kind: Updated, Old: c.old, Object: c.now}
		if change.Resync() != c.want {
			t.Errorf("%s: %v", c.name, change.Resync())
		}
	}
}
