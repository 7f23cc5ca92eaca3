package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/randfill"

	served "github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

var everyVerb = []string{
	verbCreate, verbDelete, verbDeleteCollection, verbGet, verbList, verbPatch, verbUpdate, verbWatch,
}

// builtinGroups are the built-in kinds, with a status subresource where they
// have one.
func builtinGroups() []Group {
	var groups []Group
	for _, res := range builtin.Table().All() {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Version == res.GroupVersion() })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Version: res.GroupVersion()})
		}
		e := Endpoint{Resource: res, Verbs: everyVerb}
		if res.Verbs != nil {
			e.Verbs = res.Verbs
		}
		if res.Status {
			e.Subresources = []Subresource{{Name: "status", Kind: res.GroupVersionKind(), Verbs: []string{verbGet, verbPatch, verbUpdate}}}
		}
		groups[i].Endpoints = append(groups[i].Endpoints, e)
	}
	return groups
}

// describeV3 returns the description of a group, as clients decode it.
func describeV3(t *testing.T, b *Builder, g Group) *spec3.OpenAPI {
	t.Helper()
	document, err := b.V3Document(g)
	if err != nil {
		t.Fatal(err)
	}
	content, err := document.Content()
	if err != nil {
		t.Fatal(err)
	}
	var d spec3.OpenAPI
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatalf("%s: %v", g.Version, err)
	}
	return &d
}

// describeAll makes the document of version 2.
func describeAll(t testing.TB, builtin []Group, custom ...Group) *Document {
	t.Helper()
	part, err := NewBuilder("v1.99.0").BuiltinPart(builtin)
	if err != nil {
		t.Fatal(err)
	}
	parts := []*Part{part}
	for _, g := range custom {
		if part, err = NewBuilder("v1.99.0").CustomPart(g); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	document, err := NewBuilder("v1.99.0").V2Document(parts)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// things is a group with one custom kind.
func things(schemaOf func() *spec.Schema) Group {
	res := &served.Resource{
		Group: "shop.example.com", Version: "v1", Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing",
		Namespaced: true, OpenAPI: schemaOf,
		New:     func() served.Object { return &unstructured.Unstructured{} },
		NewList: func() runtime.Object { return &unstructured.UnstructuredList{} },
		Fields:  []served.Field{{Name: "spec.color", Paths: [][]string{{"spec", "color"}}}},
	}
	return Group{Version: schema.GroupVersion{Group: res.Group, Version: res.Version}, Endpoints: []Endpoint{{Resource: res, Verbs: everyVerb}}}
}

// filler sets every field of every type, so that all of them are in the JSON.
func filler() *randfill.Filler {
	return randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).Funcs(
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("v%d", c.Intn(1000)) },
		func(b *bool, c randfill.Continue) { *b = true },
		func(b *[]byte, c randfill.Continue) { *b = []byte{1} },
		func(q *resource.Quantity, c randfill.Continue) { *q = *resource.NewQuantity(1, resource.DecimalSI) },
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Time{Time: time.Unix(1, 0)} },
		func(t *metav1.MicroTime, c randfill.Continue) { *t = metav1.MicroTime{Time: time.Unix(1, 1000)} },
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(1) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{}`) },
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString(`{}`) },
		// It holds itself, without end.
		func(v *apiextensionsv1.JSONSchemaProps, c randfill.Continue) { v.Type = "string" },
	)
}

// nameStrings gives every empty string a value: randfill leaves one of twenty
// strings of a named type empty, and those would not be in the JSON.
func nameStrings(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			nameStrings(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				nameStrings(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			nameStrings(v.Index(i))
		}
	case reflect.String:
		if v.Len() == 0 && v.CanSet() {
			v.SetString("x")
		}
	}
}

// refOf returns the model that a schema refers to, or "".
func refOf(s *spec.Schema) string {
	for _, all := range s.AllOf {
		if name := refOf(&all); name != "" {
			return name
		}
	}
	ref := s.Ref.String()
	return ref[strings.LastIndex(ref, "/")+1:]
}

// everySchema calls visit for a schema and all below it.
func everySchema(s *spec.Schema, visit func(*spec.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	for _, p := range s.Properties {
		everySchema(&p, visit)
	}
	for _, all := range s.AllOf {
		everySchema(&all, visit)
	}
	if s.Items != nil {
		everySchema(s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil {
		everySchema(s.AdditionalProperties.Schema, visit)
	}
}
