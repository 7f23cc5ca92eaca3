package customresource

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/webhookclient"
	"github.com/levelwire/levelwire/storage"
)

// headOf reads a definition from testdata as the cache holds it, changed by
// replacing text.
func headOf(t testing.TB, name string, revision storage.Revision, replace ...string) *crdMeta {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	source, err := yaml.YAMLToJSON([]byte(strings.NewReplacer(replace...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	h, err := readCRDMeta(watchcache.NewUnversioned(name, revision, resource.Attributes{}, source))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestManyVersions: what a change takes over is found in a time that does not
// depend on how the versions are compared: all definitions wait for it.
func TestManyVersions(t *testing.T) {
	const count = 3000
	h := headOf(t, "gadgets.yaml", 10)
	for range count {
		v := h.Spec.Versions[0]
		v.Name, v.Storage = "v1beta"+strconv.Itoa(len(h.Spec.Versions)+1), false
		h.Spec.Versions = append(h.Spec.Versions, v)
	}
	first := define(h, apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Kind: "Gadget"}, nil, nil)
	changed := *h
	changed.Spec.Versions = slices.Clone(h.Spec.Versions)
	changed.Spec.Versions[count].Deprecated = true
	second := define(&changed, first.names, first, nil)
	if len(second.versions) != len(first.versions) {
		t.Fatalf("%d versions became %d", len(first.versions), len(second.versions))
	}
	for i, v := range second.versions {
		if v.schema != first.versions[i].schema || v.generation != first.versions[i].generation {
			t.Fatalf("version %s was not taken over", v.spec.Name)
		}
	}
	changed.Spec.Versions = changed.Spec.Versions[:count]
	if third := define(&changed, first.names, second, nil); third.versions[0].generation == second.versions[0].generation {
		t.Error("forms from before a version went are still taken for those of now")
	}
}

// TestSchemasOfManyVersions: a definition is read once to find the schemas of all its versions, and not once for each.
func TestSchemasOfManyVersions(t *testing.T) {
	source := []byte(`{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2"},{"name":"v3","schema":{"openAPIV3Schema":null}},` +
		`{"name":"v1","schema":{"openAPIV3Schema":{"type":"string"}}}]}}`)
	texts := &schemaTexts{source: source}
	if props, err := texts.read("v1"); err != nil || props.Type != "object" {
		t.Fatalf("%v, %v", props, err)
	}
	clear(source) // what is found now was found before
	for version, want := range map[string]bool{"v1": true, "v2": false, "v3": false, "v4": false} {
		if text, err := texts.of(version); err != nil || (text != nil) != want {
			t.Errorf("version %s: %q, %v", version, text, err)
		}
	}
}

// TestWhatAChangeTakesOver: compiled schemas, generations and trust stay for
// what a change does not touch.
func TestWhatAChangeTakesOver(t *testing.T) {
	h := headOf(t, "gadgets.yaml", 10)
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	first := define(h, names, nil, nil)
	for name, test := range map[string]struct {
		replace                    []string
		schema, generation, trusts bool // kept, of v1
	}{
		"nothing":        {nil, true, true, true},
		"deprecation":    {[]string{"deprecated: true", "deprecated: false"}, true, true, true},
		"served":         {[]string{"- name: v1beta1\n    served: true", "- name: v1beta1\n    served: false"}, true, true, true},
		"one more":       {[]string{"  - name: v1\n", "  - name: v2\n    served: true\n    storage: false\n    schema: *schema\n  - name: v1\n"}, true, true, true},
		"columns":        {[]string{"schema: *schema", "schema: *schema\n    additionalPrinterColumns: [{name: A, type: string, jsonPath: .a}]"}, true, false, true},
		"another schema": {[]string{"schema: *schema", "schema: {openAPIV3Schema: {type: object}}"}, false, false, false},
		"another one's":  {[]string{"port: {type: integer}", "port: {type: string}", "schema: *schema", "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {host: {type: string}, port: {type: integer}}}}}}"}, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			next := define(headOf(t, "gadgets.yaml", 20, test.replace...), names, first, nil)
			before, after := first.version("v1"), next.version("v1")
			if next.stored != first.stored {
				t.Error("the cache would have to be filled anew")
			}
			if (after.schema == before.schema) != test.schema || (after.generation == before.generation) != test.generation {
				t.Errorf("schema kept: %v, generation kept: %v", after.schema == before.schema, after.generation == before.generation)
			}
			json := []byte(`{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{}}`)
			if first.version("v1").resource.AsStored(json, 10) || !first.version("v1").resource.AsStored(json, 11) {
				t.Error("what was written after the definition is as it should be, and nothing before")
			}
			if after.resource.AsStored(json, 30) != test.trusts {
				t.Errorf("trusts what is written now: %v", !test.trusts)
			}
			next.settle(40)
			if after.resource.AsStored(json, 40) != test.trusts || !after.resource.AsStored(json, 41) || next.unsettled() {
				t.Error("not settled")
			}
			if after.resource.AsStored([]byte(`{"kind":"Gadget","apiVersion":"example.com/v1beta1","metadata":{}}`), 50) {
				t.Error("another version is taken for this one")
			}
		})
	}
}

// TestDefinitionsThatAreBroken: a store may hold a definition that validation
// would refuse. The server reports it when it needs it, and everything else
// works.
func TestDefinitionsThatAreBroken(t *testing.T) {
	names := apiextensionsv1.CustomResourceDefinitionNames{Kind: "Gadget"}
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Gadget", "apiVersion": "example.com/v1", "metadata": map[string]any{"name": "x"}}}
	d := define(headOf(t, "gadgets.yaml", 1, "type: integer", "type: [1]"), names, nil, nil)
	if _, err := d.show(context.Background(), d.version("v1"), nil); err != nil {
		t.Error(err)
	}
	if errs := d.version("v1").validateCreate(u); len(errs) != 1 || !strings.Contains(errs[0].Error(), "correct the CustomResourceDefinition") {
		t.Errorf("got %v", errs)
	}
	if s := d.version("v1").schema.openAPI(); s == nil {
		t.Error("nothing to publish")
	}
	if _, err := d.version("v1").typeConverter(); err == nil {
		t.Error("types out of a broken schema")
	}
	none := define(headOf(t, "gadgets.yaml", 1, "storage: true", "storage: false"), names, nil, nil)
	if _, err := none.toStorage(t.Context(), u); err == nil {
		t.Error("stored in no version")
	}
	u.SetAPIVersion("example.com/v9")
	if _, err := d.restore(u); err == nil {
		t.Error("an object of a version that is not in the definition was shown")
	}
}

// TestColumnsAreSinglePaths: a column cannot be a template.
func TestColumnsAreSinglePaths(t *testing.T) {
	_, row := columnsOf([]apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "A", Type: "string", JSONPath: ".a[0]"},
		{Name: "Ready", Type: "string", JSONPath: `.a[?(@=="x")]`},
		{Name: "Each", Type: "string", JSONPath: `.a[0]}{range .a[*]}{@`},
	})
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n"}, "a": []any{"x", "y"}}}
	if got := row(u); !slices.Equal(got, []any{"n", "x", "x", nil}) {
		t.Errorf("got %v", got)
	}
}

// TestDearColumns: a row costs what its object costs, whatever the columns of a definition say. The first path
// would find 10^20 values, and the columns of the last case 2 GB.
func TestDearColumns(t *testing.T) {
	nested := any("x")
	for range 60 {
		nested = map[string]any{"a": nested}
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "n"}, "spec": nested, "text": strings.Repeat("x", 100_000), "list": []any{"x", "y"},
	}}
	cells := func(kind string, times int, paths ...string) []any {
		var columns []apiextensionsv1.CustomResourceColumnDefinition
		for _, path := range slices.Repeat(paths, times) {
			columns = append(columns, apiextensionsv1.CustomResourceColumnDefinition{Name: "C", Type: kind, JSONPath: path})
		}
		_, row := columnsOf(columns)
		return row(u)[1:]
	}
	if got := cells("string", 1, ".spec"+strings.Repeat("..a", 20), ".spec"+strings.Repeat("['a','a']", 50), "."+strings.Repeat("a", 2000)); !slices.Equal(got, []any{nil, nil, nil}) {
		t.Errorf("dear paths find %v", got)
	}
	if got := cells("string", 1, "..list[0]", ".list[*]", ".list[0,1]", `.list[?(@=="y")]`); !slices.Equal(got, []any{"x", "x", "x", "y"}) {
		t.Errorf("cheap ones find %v", got)
	}
	for _, path := range []string{".list[*]", ".spec..a", ".text"} {
		shown := slices.DeleteFunc(cells("string", 20_000, path), func(cell any) bool { return cell == nil })
		if len(shown) == 0 || len(shown) > 100 {
			t.Errorf("%s is shown in %d of 20,000 columns", path, len(shown))
		}
	}
}

// FuzzReadHead: whatever is in the store, reading it returns.
func FuzzReadHead(f *testing.F) {
	for _, name := range []string{"gadgets.yaml", "widgets.yaml", "certs.yaml"} {
		f.Add(headOf(f, name, 1).schemas.source)
	}
	f.Add([]byte(`{"spec":{"versions":[{"name":"v1","schema":7}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readCRDMeta(watchcache.NewUnversioned("", 1, resource.Attributes{}, data))
		if err != nil {
			return
		}
		d := define(h, h.Spec.Names, nil, nil)
		for _, v := range d.versions {
			_, _ = v.schema.structural()
		}
	})
}

// answering is a transport that answers everything with the same body.
type answering []byte

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a)), Request: r}, nil
}

// FuzzConvertedObjects: a webhook may answer what it likes; what is taken from
// it has the identity of what was sent.
func FuzzConvertedObjects(f *testing.F) {
	f.Add([]byte(`[{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{"name":"x","labels":{"a":"b"}}}]`))
	f.Add([]byte(`[{"kind":"Gadget","apiVersion":"example.com/v1","metadata":{"name":"y","uid":7}}]`))
	f.Add([]byte(`[null]`))
	f.Fuzz(func(t *testing.T, objects []byte) {
		sent := &unstructured.Unstructured{Object: map[string]any{
			"kind": "Gadget", "apiVersion": "example.com/v1beta1", "metadata": map[string]any{"name": "x", "generation": int64(3)},
		}}
		c := &hook{kind: "Gadget", version: "v1"}
		c.client = webhookclient.WithTransport("https://hook", transportFunc(func(r *http.Request) (*http.Response, error) {
			var asked review
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				return nil, err
			}
			body := `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"` + asked.Request.UID + `","result":{"status":"Success"},"convertedObjects":` + string(objects) + `}}`
			return answering(body).RoundTrip(r)
		}))
		converted, err := c.convert(context.Background(), []*unstructured.Unstructured{sent}, "example.com/v1")
		if err != nil {
			return
		}
		if got := converted[0]; got.GetName() != "x" || got.GetKind() != "Gadget" || got.GetAPIVersion() != "example.com/v1" || got.GetGeneration() != 3 {
			t.Errorf("took %v", got)
		}
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
