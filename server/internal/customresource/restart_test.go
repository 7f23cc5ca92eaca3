package customresource_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// TestRestart: a server that comes back serves every custom resource before it
// says that it is ready, from embedded etcd.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	durable := func(c *server.Config) { c.DataDir, c.Storage = dir, server.Embedded }
	t.Run("before", func(t *testing.T) {
		c := start(t, durable)
		c.define("widgets.yaml")
		c.define("gadgets.yaml")
		c.do(http.MethodPost, widgets, widget("it", object{"color": "red", "size": 7})).is(http.StatusCreated)
		c.redefine("widgets.example.com", func(crd object) { properties(crd, "0")["fresh"] = object{"type": "string", "default": "yes"} }).is(http.StatusOK)
	})
	t.Run("after", func(t *testing.T) {
		c := start(t, durable)
		it := c.get(widgets + "/it").is(http.StatusOK).object()
		if at(it, "spec.size") != 7. || at(it, "spec.fresh") != "yes" {
			t.Errorf("got %v", it)
		}
		c.get("/apis/example.com/v1beta1/gadgets").is(http.StatusOK)
		c.do(http.MethodPost, widgets, widget("new", object{"color": "pink"})).is(http.StatusUnprocessableEntity)
	})
}

// shared is a store that outlives the servers that use it.
type shared struct{ storage.Store }

func (shared) Close() error { return nil }

// TestServersOnOneStoreAgree: what is defined at one is served by the other, and
// so are its changes and its end.
func TestServersOnOneStoreAgree(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	use := func(c *server.Config) {
		c.OpenStore = func(context.Context) (storage.Store, error) { return shared{store}, nil }
	}
	one, two := start(t, use), start(t, use)
	one.define("widgets.yaml")
	established := func(crd object) bool { return condition(crd, "Established") == "InitialNamesAccepted True" }
	one.until("widgets.example.com", established)
	// The status may come from the first server. The second answers a write when
	// it has caught up.
	two.redefine("widgets.example.com", func(crd object) { properties(crd, "0")["more"] = object{"type": "string", "default": "m"} }).is(http.StatusOK)
	two.do(http.MethodPost, widgets, widget("it", object{"color": "red"})).is(http.StatusCreated).says(`"more":"m"`)
	one.get(widgets + "/it").is(http.StatusOK).says(`"more":"m"`)

	watch := one.watch(widgets + "?watch=1")
	watch.expect("ADDED", "it")
	two.do(http.MethodDelete, definitions+"/widgets.example.com", nil).is(http.StatusOK)
	watch.expect("DELETED", "it")
	if event := watch.next(); event != nil {
		t.Errorf("after the end: %v", event)
	}
	one.get(widgets).is(http.StatusNotFound)
	two.until("widgets.example.com", func(crd object) bool { return crd == nil })
}
