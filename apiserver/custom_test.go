package apiserver

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/resource"
	"github.com/levelwire/levelwire/resource/columns"
)

// newThing is a custom resource: unstructured, as those of definitions are.
func newThing() *resource.Resource {
	res := &resource.Resource{
		Group: "example.com", Version: "v1", Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing",
		Namespaced: true, StorePrefix: "/registry/example.com/things/",
		New:     func() resource.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
	res.Columns, res.Row = columns.For(res.GroupVersionKind())
	return res
}

func TestCustomResourcesAreJSON(t *testing.T) {
	things := newThing()
	c := newCluster(t, func(s *setup) {
		table := s.config.Resources.(*resource.Table)
		if err := table.Add(things); err != nil {
			t.Fatal(err)
		}
	})
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "it", "namespace": "a"}, "extra": "yes",
	}}
	value, err := things.Encode(obj)
	must(t, err)
	_, err = c.store.Create(context.Background(), things.StorePrefix+"a/it", value, 0)
	must(t, err)
	path := "/apis/example.com/v1/things"
	// Items of custom lists carry their kind; built-in ones do not.
	if got := string(c.get(path).body); !strings.Contains(got, `"items":[{"kind":"Thing","apiVersion":"example.com/v1","metadata"`) {
		t.Errorf("got %s", got)
	}
	if got := c.get(path, "Accept: "+protobufType+",application/json"); got.header.Get("Content-Type") != "application/json" {
		t.Errorf("with JSON as the second choice: %v", got.header)
	}
	if got := c.get(path, "Accept: "+protobufType); got.code != 406 {
		t.Errorf("protobuf only: %d", got.code)
	}
	if got := c.get(path, "Accept: "+protobufType+";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"); got.code != 200 {
		t.Errorf("metadata in protobuf: %d %s", got.code, got.body)
	}
	if got := c.get(path, "Accept: "+tableType); got.code != 200 {
		t.Errorf("table: %d %s", got.code, got.body)
	}
	stream := c.watch(path + "?watch=1" + initialEnd)
	stream.next()
	if end := stream.next().String(); !strings.HasPrefix(end, "BOOKMARK end@") {
		t.Errorf("got %s", end)
	}
}
