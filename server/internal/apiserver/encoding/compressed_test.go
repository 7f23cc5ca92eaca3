package encoding

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
)

// storedThings returns n objects of a custom resource, and its stored and another version.
func storedThings(t *testing.T, n int) (objects []*watchcache.Object, versions []*resource.Resource) {
	t.Helper()
	stored := &resource.Resource{
		Group: "example.com", Version: "v1", Kind: "Thing", Plural: "things", Namespaced: true, Mixed: true,
		StorePrefix: "/registry/example.com/things/", New: func() resource.Object { return &unstructured.Unstructured{} },
	}
	other := &resource.Resource{
		Group: "example.com", Version: "v2", Kind: "Thing", Plural: "things", Namespaced: true, Storage: stored, New: stored.New,
		FromStorage: func(_ context.Context, o resource.Object) (resource.Object, error) { return o, nil },
		AsStored:    func(json []byte, _ int64) bool { return bytes.Contains(json, []byte(`"apiVersion":"example.com/v2"`)) },
	}
	cache := watchcache.New(stored, watchcache.Options{})
	for i := range n {
		text := fmt.Sprintf(`{"kind":"Thing","apiVersion":"example.com/v%d","metadata":{"name":"it-%d","namespace":"a"},"spec":{"text":%q}}`,
			1+i%2, i, strings.Repeat(fmt.Sprint("text ", i%3), i%50))
		o, err := cache.Decode(fmt.Sprintf("a/it-%d", i), []byte(text), 2)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects, []*resource.Resource{stored, other}
}

// TestItemsOfCompressedObjects: what is appended is the same, whether or not there is room
// behind what is there, and whatever version is asked for.
func TestItemsOfCompressedObjects(t *testing.T) {
	plain, versions := storedThings(t, 60)
	objects, _ := storedThings(t, 60)
	for _, made := range state.NewCompressor(state.CompressorOptions{Always: true}).Compress(objects, 1<<20) {
		made.Install()
	}
	for _, res := range versions {
		for _, form := range []Form{{Media: JSON}, {Media: JSON, As: AsMetadata, MetaVersion: "v1"}} {
			for _, room := range []int{0, 100, 1 << 20} {
				p := NewEncoder(res, form, func(string) {})
				want, got := appended(t, p, plain, room), appended(t, p, objects, room)
				if !bytes.Equal(got, want) {
					t.Errorf("version %s as %v with %d bytes of room: %s\nwant %s", res.Version, form.As, room, got, want)
				}
			}
		}
	}
}

// appended is what the appenders of items, documents and events make of the objects.
func appended(t *testing.T, p Encoder, objects []*watchcache.Object, room int) []byte {
	t.Helper()
	out := make([]byte, 0, room)
	item, document := p.itemAppender(t.Context()), p.DocumentAppender(t.Context())
	events := EventEncoder{encoder: p}
	for i, o := range objects {
		var err error
		switch i % 3 {
		case 0:
			out, err = item(out, o)
		case 1:
			var one []byte
			one, err = document(o)
			out = append(out, one...)
		case 2:
			out, err = events.AppendEvent(t.Context(), out, watchcache.Event{Type: watchcache.Added, Object: o, Revision: o.Revision}, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
