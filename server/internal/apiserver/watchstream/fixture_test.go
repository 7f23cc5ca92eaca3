package watchstream

import (
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func counterValue(t testing.TB, counter prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	must(t, counter.Write(&m))
	return m.GetCounter().GetValue()
}

// oneResource is a table that never changes.
type oneResource struct{ res *resource.Resource }

func (o oneResource) Lookup(string, string, string) *resource.Resource { return o.res }

// openStream returns a stream of everything that a cache gets after revision 1. Its
// request's goroutine, the test's, owns it.
func openStream(t *testing.T, table Resources, cache *watchcache.Cache, res *resource.Resource, form encoding.Form, group *scheduler) *Stream {
	t.Helper()
	reader, err := read.New(read.Config{
		Store: struct{ storage.Reader }{}, // nothing is asked of it
		Cache: func(*resource.Resource) *watchcache.Cache { return cache },
	})
	must(t, err)
	watch, err := reader.Watch(read.Scope{Resource: cache.Resource()}, &metav1.ListOptions{ResourceVersion: "1"})
	must(t, err)
	streams := New(Config{Resources: table, Logger: slog.New(slog.DiscardHandler)})
	stream := streams.newStream(t.Context(), Watch{
		Watch:   watch,
		Encoder: encoding.NewEventEncoder(encoding.NewEncoder(res, form, func(string) {}), metav1.IncludeMetadata),
		Sent:    prometheus.NewCounter(prometheus.CounterOpts{Name: "sent"}),
		Record:  &request.Record{},
	})
	stream.owner = newOwnership()
	stream.scheduler = group
	must(t, stream.watch.Open(t.Context(), nil))
	t.Cleanup(stream.watch.Close)
	return stream
}

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
