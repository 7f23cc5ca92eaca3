package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// TestInitialEventsAreEventsOneByOne compares the state that streams begin
// with, written from blocks or in parts, with what the event encoder makes of each object.
func TestInitialEventsAreEventsOneByOne(t *testing.T) {
	c := newCluster(t)
	for i := range 150 {
		c.put(listedPod(i * 3))
	}
	last := c.remove(listedPod(30).Namespace, listedPod(30).Name)
	snapshot, err := c.caches[c.pods].Exact(t.Context(), last)
	must(t, err)
	for _, accept := range []string{
		"application/json", protobufType, "application/cbor",
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		"application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
	} {
		form, err := encoding.Negotiate(&http.Request{Header: http.Header{"Accept": {accept}}, URL: &url.URL{}}, encoding.ObjectOffer)
		must(t, err)
		for _, path := range []string{"/api/v1/pods?", "/api/v1/pods?" + oneByOne, "/api/v1/namespaces/team-01/pods?", "/api/v1/namespaces/none/pods?"} {
			selection := &watchcache.Selection{}
			if path == "/api/v1/namespaces/team-01/pods?" {
				selection.Namespace = "team-01"
			} else if path == "/api/v1/namespaces/none/pods?" {
				selection.Namespace = "none"
			}
			f := encoding.NewEventEncoder(c.server.verbs.Encoder(c.pods, form), metav1.IncludeMetadata)
			var want []byte
			for o := range snapshot.Range("", "") {
				if selection.Namespace == "" || selection.Namespace == o.Attributes.Namespace {
					want, err = f.AppendEvent(t.Context(), want, watchcache.Event{Type: watchcache.Added, Object: o, Revision: o.Revision}, false)
					must(t, err)
				}
			}
			want, err = f.AppendBookmark(want, last, true)
			must(t, err)
			for name, client := range map[string]*http.Client{"HTTP/1.1": c.http1, "HTTP/2": c.http2} {
				ctx, cancel := context.WithCancel(t.Context())
				resp := c.open(ctx, client, http.MethodGet, path+"&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", "Accept: "+accept)
				got := make([]byte, len(want))
				n, err := io.ReadFull(resp.Body, got)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s as %s over %s: %d bytes and %v, want %d; equal: %v", path, accept, name, n, err, len(want), bytes.Equal(got, want))
				}
				cancel()
				resp.Body.Close()
			}
		}
	}
	untilIdle(t, c.server.metrics.Watches.WithLabelValues("", "v1", "pods"))
	if got := counterValue(t, c.server.metrics.Events.WithLabelValues("", "v1", "pods")); got < 6*2*2*149 {
		t.Errorf("%v events are counted", got)
	}
}

// TestInitialEventsAreFollowedByChanges looks at where the state ends and the
// changes begin.
func TestInitialEventsAreFollowedByChanges(t *testing.T) {
	c := newCluster(t)
	c.put(testPod("a", "one", nil, "n1"))
	frames := c.watch("/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	if got := frames.next().Type; got != "ADDED" {
		t.Fatalf("first event is %s", got)
	}
	c.remove("a", "one")
	if got := frames.next().Type; got != "DELETED" {
		t.Fatalf("second event is %s", got)
	}
}

// TestInitialEventsEndWithTheError has an object among others that cannot be
// shown: the client gets those before it, and can read why it gets no more.
func TestInitialEventsEndWithTheError(t *testing.T) {
	stored, shown := newThing(), newThing()
	shown.Version, shown.Storage = "v2", stored
	shown.ToStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) { return obj, nil }
	shown.FromStorage = func(_ context.Context, obj resource.Object) (resource.Object, error) {
		if obj.GetName() == "c" {
			return nil, errors.New("this one has no such shape")
		}
		return obj, nil
	}
	c := newCluster(t, func(s *setup) { must(t, s.config.Resources.(*resource.Table).Add(stored, shown)) })
	last := storage.Revision(0)
	for _, name := range []string{"a", "b", "c", "d"} {
		value := fmt.Appendf(nil, `{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":%q,"namespace":"a"}}`, name)
		var err error
		last, err = c.store.Create(t.Context(), stored.StorePrefix+"a/"+name, value, 0)
		must(t, err)
	}
	for name, accept := range map[string]string{"objects": "application/json", "metadata": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"} {
		stream := c.watch(fmt.Sprintf("/apis/example.com/v2/things?watch=1&resourceVersion=%d&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", last), "Accept: "+accept)
		for _, want := range []string{"a", "b"} {
			if got := stream.next(); got.Type != "ADDED" || !strings.Contains(string(got.Object), fmt.Sprintf(`"name":%q`, want)) {
				t.Errorf("%s: got %s %s, want %s", name, got.Type, got.Object, want)
			}
		}
		if got := stream.next(); got.Type != "ERROR" || !strings.Contains(string(got.Object), `"code":500`) {
			t.Errorf("%s: got %s %s, want an error", name, got.Type, got.Object)
		}
		stream.wantEnd()
	}
}
