package resource

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// newMixed is what the objects of a custom resource are stored as.
func newMixed() *Resource {
	return &Resource{
		Group: "example.com", Version: "v1", Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing",
		Namespaced: true, Mixed: true, StorePrefix: "/registry/example.com/things/",
		New:     func() Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
}

// TestMixedVersions: each stored object keeps its own version, no matter which server wrote
// it, and nothing of another group or kind gets in.
func TestMixedVersions(t *testing.T) {
	r := newMixed()
	for name, test := range map[string]struct{ stored, want, fails string }{
		"ours":            {stored: `{"kind":"Thing","apiVersion":"example.com/v1beta1","metadata":{"name":"a"},"x":1}`, want: `{"kind":"Thing","apiVersion":"example.com/v1beta1","metadata":{"resourceVersion":"7","name":"a"},"x":1}`},
		"kube-apiserver":  {stored: `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a","resourceVersion":"3"},"x":1}`, want: `{"kind":"Thing","apiVersion":"example.com/v2","metadata":{"resourceVersion":"7","name":"a"},"x":1 }`},
		"another group":   {stored: `{"kind":"Thing","apiVersion":"example.org/v1","metadata":{"name":"a"}}`, fails: "is a example.org/v1"},
		"another kind":    {stored: `{"kind":"Thong","apiVersion":"example.com/v1","metadata":{"name":"a"}}`, fails: "Kind=Thong"},
		"no version":      {stored: `{"kind":"Thing","metadata":{"name":"a"}}`, fails: "is a /, Kind=Thing"},
		"half a document": {stored: `{"kind":"Thing","apiVersion":"example.com/v1`, fails: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.WithRevision([]byte(test.stored), 7)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %s, %v", got, err)
				}
				return
			}
			if err != nil || string(got) != test.want {
				t.Fatalf("got %s, %v", got, err)
			}
			obj, err := r.Decode(t.Context(), got)
			if err != nil {
				t.Fatal(err)
			}
			again, err := r.Encode(t.Context(), obj)
			if err != nil {
				t.Fatal(err)
			}
			if cached, err := r.WithRevision(again, 7); err != nil || IsUnchecked(cached) || !SameJSON(cached, []byte(test.want)) {
				t.Errorf("encoded and spliced: %s, %v", cached, err)
			}
		})
	}
	for _, stored := range []string{string(r.Prefix()), string(r.Prefix()) + "v1", string(r.Prefix()) + `v1"`} {
		if r.IsCached([]byte(stored), 7, []byte(stored)) {
			t.Errorf("%s is taken for an object", stored)
		}
	}
	if _, err := r.Encode(t.Context(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}); err == nil {
		t.Error("an object of another group was encoded")
	}
}

// TestMixedIsNotServed: what is shown over it is, and it has no place of its
// own in the table.
func TestMixedIsNotServed(t *testing.T) {
	stored := newMixed()
	shown := newMixed()
	shown.Mixed, shown.Storage = false, stored
	shown.FromStorage = func(_ context.Context, o Object) (Object, error) { return o, nil }
	shown.ToStorage = shown.FromStorage
	table, err := NewTable(shown)
	if err != nil {
		t.Fatal(err)
	}
	if table.Lookup("example.com", "v1", "things") != shown || len(table.All()) != 1 {
		t.Errorf("got %v", table.All())
	}
}

// TestSelectKeepsPlaces: fields that are added do not move the others.
func TestSelectKeepsPlaces(t *testing.T) {
	r := newMixed()
	field := func(name string) Field { return Field{Name: "spec." + name, Paths: [][]string{{"spec", name}}} }
	object := []byte(`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"a","namespace":"n"},"spec":{"a":"1","b":true}}`)
	r.Select(field("a"))
	before, err := r.Attributes(object)
	if err != nil {
		t.Fatal(err)
	}
	r.Select(field("b"), field("a"))
	after, err := r.Attributes(object)
	if err != nil {
		t.Fatal(err)
	}
	if len(before.Fields) != 1 || before.Fields[0] != "1" || len(after.Fields) != 2 || after.Fields[0] != "1" || after.Fields[1] != "true" {
		t.Errorf("before %q, after %q", before.Fields, after.Fields)
	}
	if i, ok := r.FieldIndex("spec.b"); !ok || i != 1 {
		t.Errorf("spec.b is at %d, %v", i, ok)
	}
	if late := r.LateField(object, 1); late != "true" {
		t.Errorf("got %q", late)
	}
}
