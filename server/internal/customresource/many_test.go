package customresource_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server"
)

// gadgetsOf returns the definition of gadgets under another name.
func gadgetsOf(t testing.TB, i int) object {
	crd := load(t, "gadgets.yaml")
	plural := fmt.Sprintf("gadgets%d", i)
	crd["metadata"] = object{"name": plural + ".example.com"}
	crd["spec"].(object)["names"] = object{"plural": plural, "kind": fmt.Sprintf("Gadget%d", i)}
	return crd
}

// TestManyDefinitions: they do not get in each other's way, at once or after a
// restart.
func TestManyDefinitions(t *testing.T) {
	const n = 60
	dir := t.TempDir()
	durable := func(c *server.Config) { c.DataDir, c.Storage = dir, server.Embedded }
	serves := func(c *cluster) {
		c.t.Helper()
		for i := range n {
			c.get(fmt.Sprintf("/apis/example.com/v1/gadgets%d", i)).is(http.StatusOK)
		}
	}
	t.Run("defined", func(t *testing.T) {
		c := start(t, durable)
		for i := range n {
			c.do(http.MethodPost, definitions, gadgetsOf(t, i)).is(http.StatusCreated)
		}
		serves(c)
	})
	t.Run("restored", func(t *testing.T) { serves(start(t, durable)) })
}

// TestReadsNeedNoEncoding: what was written by the present schema is sent as it
// is stored, defaults or not; what is older is made once, and only if the
// schema has anything to say about it.
func TestReadsNeedNoEncoding(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	for i := range 5 {
		c.do(http.MethodPost, widgets, widget(fmt.Sprintf("w%d", i), object{"color": "red"})).is(http.StatusCreated)
	}
	encodes := func() string {
		for line := range strings.Lines(string(c.get("/metrics").body)) {
			if count, ok := strings.CutPrefix(line, `levelwire_encodes_total{form="json"} `); ok {
				return strings.TrimSpace(count)
			}
		}
		t.Fatal("no such metric")
		return ""
	}
	before := encodes()
	c.get(widgets).is(http.StatusOK)
	c.get(widgets + "/w1").is(http.StatusOK)
	if now := encodes(); now != before {
		t.Errorf("%s encodes became %s", before, now)
	}
	c.redefine("widgets.example.com", func(crd object) { properties(crd, "0")["more"] = object{"type": "string"} }).is(http.StatusOK)
	c.get(widgets).is(http.StatusOK)
	after := encodes()
	if after == before {
		t.Error("objects from before a change of the schema were not looked at")
	}
	c.get(widgets).is(http.StatusOK)
	if now := encodes(); now != after {
		t.Errorf("they were looked at again: %s encodes became %s", after, now)
	}
	for line := range strings.Lines(string(c.get("/metrics").body)) {
		if strings.HasPrefix(line, `levelwire_cache_form_bytes{group="example.com",resource="widgets"}`) && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
			t.Errorf("what has not changed takes memory: %s", line)
		}
	}
}

// BenchmarkDefine measures from the POST of a definition to the answer, when
// what it defines is served.
func BenchmarkDefine(b *testing.B) {
	for _, kind := range []server.Storage{server.Memory, server.Embedded} {
		b.Run(string(kind), func(b *testing.B) {
			c := start(b, func(c *server.Config) { c.Storage = kind })
			crds := make([]object, b.N)
			for i := range crds {
				crds[i] = gadgetsOf(b, i)
			}
			b.ResetTimer()
			for i, crd := range crds {
				c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
				c.get(fmt.Sprintf("/apis/example.com/v1/gadgets%d", i)).is(http.StatusOK)
			}
		})
	}
}
