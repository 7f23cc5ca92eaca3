package resource_test

import (
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

func TestReceived(t *testing.T) {
	pods := builtin.Table().Lookup("", "v1", "pods")
	const want = `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a"},"spec":{"x":1}}`
	for name, sent := range map[string]string{
		"as Levelwire sends it":                  want,
		"as an item of a list of Levelwire":      `{"metadata":{"resourceVersion":"7","name":"a"},"spec":{"x":1}}`,
		"as kube-apiserver sends it":             `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7","creationTimestamp":null},"spec":{"x":1}}`,
		"as an item of a list of kube-apiserver": `{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"x":1}}`,
		"in an order of its own":                 `{"spec":{"x":1},"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}`,
	} {
		json, revision, err := pods.Received([]byte(sent))
		if err != nil || revision != 7 || string(json) != want {
			t.Errorf("%s: %s %d %v", name, json, revision, err)
		}
	}
	for name, sent := range map[string]string{
		"another kind":               `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}`,
		"another version":            `{"kind":"Pod","apiVersion":"v2","metadata":{"name":"a","resourceVersion":"7"}}`,
		"no version":                 `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`,
		"a version of another kind":  `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"a1"}}`,
		"version zero":               `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"0"}}`,
		"a version that is too long": `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"340282366920938463463374607431768211455"}}`,
		"no object":                  `[]`,
	} {
		if json, _, err := pods.Received([]byte(sent)); err == nil {
			t.Errorf("%s: %s", name, json)
		}
	}
}

// TestEveryBuiltinKindIsServedUnconverted, each in a place of its own, as a relay caches
// them.
func TestEveryBuiltinKindIsServedUnconverted(t *testing.T) {
	for _, r := range builtin.Resources() {
		own := r.Unconverted("/registry/x/", []string{"get"})
		if own.Stored() != own || own.GroupVersionKind() != r.GroupVersionKind() {
			t.Errorf("%s: %s", r.GroupVersionResource(), own.GroupVersionKind())
		}
		if _, err := own.Attributes([]byte(`{"metadata":{"name":"a"}}`)); err != nil {
			t.Errorf("%s: %v", r.GroupVersionResource(), err)
		}
	}
}
