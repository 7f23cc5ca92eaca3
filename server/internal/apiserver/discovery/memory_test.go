package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// documented is a kind, the only one of its group, with a schema of some kB as definitions have them: many fields, each
// with a text of its own, so that compression finds no more than it does in real ones.
func documented(group int) *resource.Resource {
	res := thing()
	res.Group = fmt.Sprintf("group%d.example.com", group)
	res.StorePrefix = "/registry/" + res.Group + "/things/"
	schema := func() []byte {
		properties := map[string]any{}
		for i := range 60 {
			properties[fmt.Sprintf("field%dOf%d", i, group)] = map[string]any{
				"type": "string", "description": fmt.Sprintf("Field %d of group %d says %x to those that read %x.", i, group, i*7919+group*104729, i*15485863+group),
			}
		}
		text, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}}})
		if err != nil {
			panic(err)
		}
		return text
	}
	// As of a definition, both are read anew at each call: what is stored is not the documents'.
	res.SchemaJSON = schema
	res.OpenAPI = func() *spec.Schema {
		s := &spec.Schema{}
		if err := json.Unmarshal(schema(), s); err != nil {
			panic(err)
		}
		return s
	}
	return res
}

// describeGroups returns what serves the documents of so many groups of custom kinds.
func describeGroups(t *testing.T, groups int) *Handler {
	t.Helper()
	var kinds []*resource.Resource
	for i := range groups {
		kinds = append(kinds, documented(i))
	}
	table, err := resource.NewTable(kinds...)
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(HandlerConfig{Resources: table})
	h.described() // has no documents yet
	return h
}

// makeAll makes all documents, and returns the bytes that are kept of them: those of version 3, their list, and
// that of version 2 with the parts of which it is joined, whose bytes are its own.
func makeAll(t *testing.T, h *Handler) (bytes int) {
	t.Helper()
	d := h.described()
	if err := d.makeIndex(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := d.makeV2(); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.versions() {
		bytes += len(v.openAPI.json.Load().Gzip)
	}
	return bytes + len(d.openAPI.index.json.Load().Gzip) + 2*len(d.openAPI.v2.json.Load().Gzip)
}

// heap returns the bytes that are reachable. The first collection leaves what pools hold.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestDocumentsAreAllThatIsKept: of the models, the texts and the compressors by which documents are made, nothing
// stays. A server with thousands of definitions has what the documents weigh, and little more.
func TestDocumentsAreAllThatIsKept(t *testing.T) {
	makeAll(t, describeGroups(t, 1)) // what the process keeps once: models that all groups share, templates of paths
	const groups = 300
	h := describeGroups(t, groups)
	before := heap()
	weight := makeAll(t, h)
	kept := heap() - before
	runtime.KeepAlive(h)
	t.Logf("%d bytes are kept of documents of %d bytes", kept, weight)
	if weight < groups*1000 {
		t.Fatalf("documents of %d bytes prove nothing", weight)
	}
	if most := weight * 13 / 10; kept > most {
		t.Errorf("%d bytes are kept of documents of %d bytes, want at most %d", kept, weight, most)
	}
}
