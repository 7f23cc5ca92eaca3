package client

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/levelwire/levelwire/client/internal/wiretest"
)

// Plural names are guessed from kinds, so every kind of a stable group that
// has one is checked.
func TestGuessedPluralsAreTheRealOnes(t *testing.T) {
	checked := map[string]bool{}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		want, known := wiretest.Plurals[gvk.Kind]
		if !known {
			continue
		}
		b, err := builtinOf(reflect.PointerTo(typ))
		if err != nil {
			t.Errorf("%v: %v", gvk, err)
			continue
		}
		if b.gvr.Resource != want || b.gvr.GroupVersion() != gvk.GroupVersion() {
			t.Errorf("%v: got %v, want plural %q", gvk, b.gvr, want)
		}
		checked[gvk.Kind] = true
	}
	for kind := range wiretest.Plurals {
		if !checked[kind] {
			t.Errorf("%s is not in the scheme: is its name right?", kind)
		}
	}
}

// Whatever has a list is listed somewhere, so the table above must have it.
func TestEveryListedKindHasACheckedPlural(t *testing.T) {
	types := scheme.Scheme.AllKnownTypes()
	for gvk := range types {
		_, hasList := types[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		if _, known := wiretest.Plurals[gvk.Kind]; hasList && !known && gvk.Kind != "APIGroup" {
			t.Errorf("%v has a list and no entry in the table of plurals", gvk)
		}
	}
}

func TestForPanicsOutsideTheScheme(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for a type that has no endpoint")
		}
	}()
	For[*metav1.PartialObjectMetadata](nil)
}

func TestForKnowsTheEndpoint(t *testing.T) {
	r := For[*corev1.Pod](nil)
	if got := r.GroupVersionResource(); got != corev1.SchemeGroupVersion.WithResource("pods") {
		t.Errorf("got %v", got)
	}
	if first, second := r.New(), r.New(); first == nil || first == second {
		t.Error("New must give a new object each time")
	}
}
