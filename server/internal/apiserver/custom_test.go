package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// newThing is a custom resource: unstructured, as those of definitions are.
func newThing() *resource.Resource {
	res := &resource.Resource{
		Group: "example.com", Version: "v1", Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing",
		Namespaced: true, StorePrefix: "/registry/example.com/things/",
		New:     func() resource.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
	res.Columns, res.Row = builtin.Columns(res.GroupVersionKind())
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
	value, err := things.Encode(t.Context(), obj)
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

// shownBy is a version of things over what is stored, whose objects say which
// generation of the definition shows them.
func shownBy(stored *resource.Resource, generation uint64) *resource.Resource {
	res := newThing()
	res.Storage, res.Generation = stored, generation
	res.ToStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) { return obj, nil }
	res.FromStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) {
		obj.(*unstructured.Unstructured).Object["generation"] = int64(generation)
		return obj, nil
	}
	return res
}

// TestListsThatChangeTheirLength: the encoder asks for the items of a protobuf
// list twice, the first time for the length that precedes them. A converter may
// return another length the second time.
func TestListsThatChangeTheirLength(t *testing.T) {
	stored := newThing()
	stored.Mixed = true
	things := shownBy(stored, 1)
	length := 100 << 10
	things.FromStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) {
		length++
		obj.SetAnnotations(map[string]string{"fill": strings.Repeat("x", length)})
		return obj, nil
	}
	c := newCluster(t, func(s *setup) { must(t, s.config.Resources.(*resource.Table).Add(things)) })
	cache := watchcache.New(stored, watchcache.Options{})
	_, err := cache.Fill(nil, 1)
	must(t, err)
	object, err := cache.Decode("a/it", []byte(`{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"it","namespace":"a"}}`), 2)
	must(t, err)
	for _, grows := range []bool{false, true} {
		items := func(yield func(*watchcache.Object) bool) {
			for range 20 {
				if !grows {
					length = 100 << 10
				}
				if !yield(object) {
					return
				}
			}
		}
		w := httptest.NewRecorder()
		form := encoding.Form{Media: encoding.Protobuf, As: encoding.AsMetadata, MetaVersion: "v1"}
		aborted := func() (aborted bool) {
			defer func() { aborted = recover() == http.ErrAbortHandler }()
			must(t, encoding.WriteList(w, httptest.NewRequest(http.MethodGet, "/", nil), c.server.verbs.Encoder(things, form), metav1.IncludeMetadata, read.Page{Items: items}))
			return false
		}()
		if aborted != grows {
			t.Errorf("a list that grows, %v, is broken off: %v", grows, aborted)
		}
		if !aborted {
			var envelope runtime.Unknown
			must(t, envelope.Unmarshal(w.Body.Bytes()[len("k8s\x00"):]))
			must(t, new(metav1.PartialObjectMetadataList).Unmarshal(envelope.Raw))
		}
	}
}
