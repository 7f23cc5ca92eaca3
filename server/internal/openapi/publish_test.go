package openapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	served "github.com/levelwire/levelwire/server/internal/resource"
)

// withSchema is a group with one custom kind, whose definition has the given schema.
func withSchema(t *testing.T, text string) Group {
	t.Helper()
	var s spec.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return things(func() *spec.Schema { return &s })
}

// TestSchemasArePublishedAsStored: what is copied out of a definition says what the decoded
// schema says.
func TestSchemasArePublishedAsStored(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, publishedDepth) + `{"type":"string"}` + strings.Repeat("}", publishedDepth)
	for name, test := range map[string]struct {
		schema string
		copied bool
	}{
		"nothing":     {`{"type":"object"}`, true},
		"description": {`{"type":"object","description":"Says \"what\" it is.\u2028é"}`, true},
		"everything": {`{"type":"object","required":["spec"],"x-kubernetes-validations":[{"rule":"self.spec.a > 0","message":"no"}],"properties":{
			"apiVersion":{"type":"string","description":"old"},"kind":{"type":"string"},"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":5}}},
			"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"integer","minimum":0.5,"default":1,"enum":[1,2]},
			"id":{"type":"string","nullable":true},"definitions":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
			"list":{"type":"array","items":{"type":"object","additionalProperties":true},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["b"]},
			"map":{"type":"object","additionalProperties":{"type":"string","format":"date"}},
			"x":{"not":{"required":["z"]},"allOf":[{"minProperties":1},{"properties":{"q":{"pattern":"^a"}}}],"oneOf":[{"required":["q"]}]}}}}}`, true},
		"white space":                   {"{ \"type\" : \"object\" ,\n\"properties\" : { } }", true},
		"as deep as may be":             {deep, true},
		"deeper":                        {`{"type":"array","items":` + deep + `}`, false},
		"deeper in a list":              {`{"type":"object","allOf":[` + deep + `]}`, false},
		"a reference":                   {`{"type":"object","properties":{"a":{"$ref":"#/definitions/b"}}}`, false},
		"definitions":                   {`{"type":"object","definitions":{"b":{"type":"string"}}}`, false},
		"patterns":                      {`{"type":"object","properties":{"a":{"patternProperties":{"b":{"type":"string"}}}}}`, false},
		"an unknown field":              {`{"type":"object","unknown":1}`, false},
		"unknown fields not preserved":  {`{"type":"object","x-kubernetes-preserve-unknown-fields":false}`, false},
		"a name with escapes":           {`{"type":"object","properties":{"a\u0062":{"type":"string"}}}`, false},
		"schemas of single items":       {`{"type":"array","items":[{"type":"string"}]}`, false},
		"an extension of another's own": {`{"type":"object","x-kubernetes-group-version-kind":[],"properties":{"a":{"type":"string"}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isPublishable([]byte(test.schema)); got != test.copied {
				t.Errorf("it can be published as it is stored: %t", got)
			}
			g := withSchema(t, test.schema)
			want := modelText(t, g)
			g.Endpoints[0].SchemaJSON = func() []byte { return []byte(test.schema) }
			if got := modelText(t, g); !sameJSON(t, got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// modelText returns the encoded model of a group's one kind.
func modelText(t *testing.T, g Group) []byte {
	t.Helper()
	m := newModels()
	text, err := m.encoded(m.object(g.Endpoints[0].Resource), version3)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	for text, into := range map[*[]byte]*any{&a: &x, &b: &y} {
		if err := json.Unmarshal(*text, into); err != nil {
			t.Fatalf("%v: %s", err, *text)
		}
	}
	return reflect.DeepEqual(x, y)
}

// TestPathsOfCustomKindsFollowATemplate: with the marks replaced it says what is said without one.
func TestPathsOfCustomKindsFollowATemplate(t *testing.T) {
	status := Subresource{Name: "status", Verbs: []string{verbGet, verbPatch, verbUpdate}}
	scale := Subresource{
		Name: "scale", Kind: autoscalingv1.SchemeGroupVersion.WithKind("Scale"), Body: &autoscalingv1.Scale{}, Verbs: []string{verbGet, verbPatch, verbUpdate},
	}
	for name, change := range map[string]func(*Endpoint){
		"plain":       func(*Endpoint) {},
		"cluster":     func(e *Endpoint) { e.Namespaced = false },
		"status":      func(e *Endpoint) { e.Subresources = []Subresource{status} },
		"scale":       func(e *Endpoint) { e.Subresources = []Subresource{scale, status} },
		"fewer verbs": func(e *Endpoint) { e.Verbs = []string{verbGet, verbList} },
		"no list":     func(e *Endpoint) { e.NewList, e.Verbs = nil, []string{verbCreate} },
		"deleted":     func(e *Endpoint) { e.Strategy.ReturnDeleted = true },
	} {
		for range 2 { // made, and then kept
			of := things(nil)
			e := &of.Endpoints[0]
			e.Resource = &served.Resource{
				Group: e.Group, Version: e.Version, Kind: e.Kind, ListKind: e.ListKind, Plural: e.Plural, Namespaced: e.Namespaced, New: e.New, NewList: e.NewList,
			}
			change(e)
			for i := range e.Subresources {
				if e.Subresources[i].Body == nil {
					e.Subresources[i].Kind = e.GroupVersionKind()
				}
			}
			filled, direct := newGroup(newModels(), of.Version), newGroup(newModels(), of.Version)
			if err := filled.describe(*e); err != nil {
				t.Fatal(err)
			}
			list := ""
			if e.NewList != nil {
				list = direct.models.list(e.Resource)
			}
			direct.describeAs(*e, direct.models.object(e.Resource), list)
			if got, want := filled.reached(), direct.reached(); !slices.Equal(got, want) {
				t.Errorf("%s: it needs %v, want %v", name, got, want)
			}
			for v := range versions {
				got, want := braced(t, filled, v), braced(t, direct, v)
				if !sameJSON(t, got, want) {
					t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
				}
			}
		}
	}
}

func braced(t *testing.T, g *group, v version) []byte {
	t.Helper()
	text, err := g.encodePaths(v)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]byte("{"), text, []byte("}"))
}

// TestPartsMakeOneDocument: version 2 has each path and each model once, also what is in
// several groups.
func TestPartsMakeOneDocument(t *testing.T) {
	for name, builtin := range map[string][]Group{"with built-in kinds": builtinGroups(), "without": nil} {
		document := describeAll(t, builtin, things(demanding), other(things(nil)))
		content, err := document.Content()
		if err != nil {
			t.Fatal(err)
		}
		var d spec.Swagger
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatal(err)
		}
		for _, model := range []string{"com.example.shop.v1.Thing", "com.example.shop.v1.ThingList", "com.example.other.v1.Thing", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"} {
			if n := bytes.Count(content, []byte(`"`+model+`":`)); n != 1 {
				t.Errorf("%s: %s is there %d times", name, model, n)
			}
		}
		for path, item := range d.Paths.Paths {
			if n := bytes.Count(content, []byte(`"`+path+`":`)); n != 1 || item.Get == nil && item.Post == nil && item.Put == nil {
				t.Errorf("%s: %s is there %d times, and has %v", name, path, n, item)
			}
		}
		for model, s := range d.Definitions {
			everySchema(&s, func(s *spec.Schema) {
				if ref := refOf(s); ref != "" {
					if _, ok := d.Definitions[ref]; !ok {
						t.Errorf("%s: %s refers to %s, which is not there", name, model, ref)
					}
				}
			})
		}
		if again := describeAll(t, builtin, things(demanding), other(things(nil))); again.Hash != document.Hash {
			t.Errorf("%s: the same document has another hash", name)
		}
		if another := describeAll(t, builtin, things(nil), other(things(nil))); another.Hash == document.Hash {
			t.Errorf("%s: another document has the same hash", name)
		}
	}
}

func other(g Group) Group {
	g.Version.Group, g.Endpoints[0].Group = "other.example.com", "other.example.com"
	return g
}
