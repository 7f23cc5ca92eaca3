package discovery

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestUnchangedVersionsKeepTheirDocuments adds a kind and replaces it: a group
// that did not change is not described anew.
func TestUnchangedVersionsKeepTheirDocuments(t *testing.T) {
	table := builtin.Table()
	h := NewHandler(HandlerConfig{Resources: table})
	index := func() *groupVersion {
		t.Helper()
		if err := h.openAPI.index(h.described()); err != nil {
			t.Fatal(err)
		}
		return h.described().version(schema.GroupVersion{Group: "apps", Version: "v1"})
	}
	kept := index()
	document := kept.openAPI.json.Load()
	added, replaced := thing(), thing()
	if err := table.Add(added); err != nil {
		t.Fatal(err)
	}
	index()
	if err := table.Replace([]schema.GroupVersionResource{added.GroupVersionResource()}, replaced); err != nil {
		t.Fatal(err)
	}
	if now := index(); now != kept || now.openAPI.json.Load() != document {
		t.Error("a group that did not change was described anew")
	}
}

func thing() *resource.Resource {
	res := &resource.Resource{
		Group: "example.com", Version: "v1", Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing",
		Namespaced: true, StorePrefix: "/registry/example.com/things/",
		New:     func() resource.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
	res.Columns, res.Row = builtin.Columns(res.GroupVersionKind())
	return res
}
