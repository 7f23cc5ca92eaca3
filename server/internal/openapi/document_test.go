package openapi

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	openapi "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Documents are read back by the libraries that clients use, and all of their
// references lead somewhere.
func TestV3DocumentsAreWhole(t *testing.T) {
	b := NewBuilder("v1.99.0")
	for _, g := range append(builtinGroups(), things(nil)) {
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
		for name, s := range d.Components.Schemas {
			everySchema(s, func(s *spec.Schema) {
				if ref := refOf(s); ref != "" && d.Components.Schemas[ref] == nil {
					t.Errorf("%s: %s refers to %s, which is not there", g.Version, name, ref)
				}
			})
		}
		checkOperations(t, g, &d)
		binary, err := V3Protobuf(document)
		if err != nil {
			t.Fatalf("%s: %v", g.Version, err)
		}
		if content, err = binary.Content(); err != nil {
			t.Fatal(err)
		}
		var message openapi_v3.Document
		if err := proto.Unmarshal(content, &message); err != nil {
			t.Fatal(err)
		}
		if got := len(message.Components.Schemas.AdditionalProperties); got != len(d.Components.Schemas) || binary.Hash != document.Hash {
			t.Errorf("%s: %d models in protobuf, %d in JSON", g.Version, got, len(d.Components.Schemas))
		}
	}
}

// checkOperations checks that ids are unique and that what kubectl looks for
// before it validates at the server is said of every PATCH.
func checkOperations(t *testing.T, g Group, d *spec3.OpenAPI) {
	t.Helper()
	ids := map[string]string{}
	for path, item := range d.Paths.Paths {
		for _, op := range []*spec3.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
			if op == nil {
				continue
			}
			if other := ids[op.OperationId]; other != "" {
				t.Errorf("%s and %s are both %s", other, path, op.OperationId)
			}
			ids[op.OperationId] = path
		}
		if op := item.Patch; op != nil {
			if op.Extensions[kindExtension] == nil || !slices.ContainsFunc(op.Parameters, func(p *spec3.Parameter) bool {
				return p.Name == "fieldValidation" && p.In == "query"
			}) {
				t.Errorf("%s: PATCH of %s does not offer fieldValidation", g.Version, path)
			}
		}
	}
}

// Names of operations are those that generated clients have as methods.
func TestOperationsAreNamedAsElsewhere(t *testing.T) {
	described := preferredDocuments(t)[""].Paths.Paths
	for path, want := range map[string]map[string]string{
		"/api/v1/pods":                                      {"get": "listCoreV1PodForAllNamespaces"},
		"/api/v1/namespaces/{namespace}/pods":               {"get": "listCoreV1NamespacedPod", "post": "createCoreV1NamespacedPod", "delete": "deleteCoreV1CollectionNamespacedPod"},
		"/api/v1/namespaces/{namespace}/pods/{name}":        {"get": "readCoreV1NamespacedPod", "put": "replaceCoreV1NamespacedPod", "patch": "patchCoreV1NamespacedPod", "delete": "deleteCoreV1NamespacedPod"},
		"/api/v1/namespaces/{namespace}/pods/{name}/status": {"get": "readCoreV1NamespacedPodStatus", "put": "replaceCoreV1NamespacedPodStatus", "patch": "patchCoreV1NamespacedPodStatus"},
		"/api/v1/watch/namespaces/{namespace}/pods":         {"get": "watchCoreV1NamespacedPodList"},
		"/api/v1/nodes/{name}":                              {"get": "readCoreV1Node", "put": "replaceCoreV1Node", "patch": "patchCoreV1Node", "delete": "deleteCoreV1Node"},
		"/api/v1/":                                          {"get": "getCoreV1APIResources"},
	} {
		item := described[path]
		if item == nil {
			t.Errorf("%s is not described", path)
			continue
		}
		got := map[string]string{}
		for method, op := range map[string]*spec3.Operation{"get": item.Get, "put": item.Put, "post": item.Post, "patch": item.Patch, "delete": item.Delete} {
			if op != nil {
				got[method] = op.OperationId
			}
		}
		if a, b := mustJSON(t, got), mustJSON(t, want); a != b {
			t.Errorf("%s: got %s, want %s", path, a, b)
		}
	}
	for gv, want := range map[schema.GroupVersion]string{
		{Group: "rbac.authorization.k8s.io", Version: "v1"}: "RbacAuthorizationV1 rbacAuthorization_v1",
		{Group: "shop.example.com", Version: "v1alpha1"}:    "ShopExampleComV1alpha1 shopExampleCom_v1alpha1",
		{Version: "v1"}: "CoreV1 core_v1",
	} {
		if got := identifier(gv) + " " + tagOf(gv); got != want {
			t.Errorf("%v: got %s, want %s", gv, got, want)
		}
	}
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Version 2 is what kubectl reads kinds from where version 3 is not used: its
// reader fails on a reference or a form that it does not know.
func TestV2IsWhatClientsRead(t *testing.T) {
	document := describeAll(t, builtinGroups(), things(demanding))
	binary, err := V2Protobuf(document)
	if err != nil {
		t.Fatal(err)
	}
	content, err := binary.Content()
	if err != nil {
		t.Fatal(err)
	}
	var message openapi_v2.Document
	if err := proto.Unmarshal(content, &message); err != nil {
		t.Fatal(err)
	}
	models, err := openapi.NewOpenAPIData(&message)
	if err != nil {
		t.Fatal(err)
	}
	pod, ok := models.LookupModel("io.k8s.api.core.v1.Pod").(*openapi.Kind)
	if !ok || pod.Fields["spec"] == nil {
		t.Errorf("Pod is %v", models.LookupModel("io.k8s.api.core.v1.Pod"))
	}
	thing, ok := models.LookupModel("com.example.shop.v1.Thing").(*openapi.Kind)
	if !ok {
		t.Fatalf("Thing is %v", models.LookupModel("com.example.shop.v1.Thing"))
	}
	fields := thing.Fields["spec"].(*openapi.Kind).Fields
	if _, any := fields["free"].(*openapi.Arbitrary); !any || fields["color"] == nil {
		t.Errorf("spec.free is %T, which lets old clients refuse what the server takes", fields["free"])
	}
}

// TestKindsOfAnyFieldsNameNoneInVersion2: clients that find some fields of an object, such as its metadata, refuse the others.
func TestKindsOfAnyFieldsNameNoneInVersion2(t *testing.T) {
	open := demanding()
	open.AddExtension(preserveExtension, true)
	for name, group := range map[string]Group{"with a schema": things(func() *spec.Schema { return open }), "without one": things(nil)} {
		content, err := describeAll(t, nil, group).Content()
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ Definitions map[string]json.RawMessage }
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatal(err)
		}
		want := `{"type":"object","x-kubernetes-group-version-kind":[{"group":"shop.example.com","kind":"Thing","version":"v1"}],` +
			`"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"}]}`
		if got := string(d.Definitions["com.example.shop.v1.Thing"]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// demanding is a schema with what version 2 cannot say.
func demanding() *spec.Schema {
	part := func(kind string) *spec.Schema { return (&spec.Schema{}).Typed(kind, "") }
	free := part("object").SetProperty("known", *part("string"))
	free.AddExtension(preserveExtension, true)
	either := &spec.Schema{SchemaProps: spec.SchemaProps{AnyOf: []spec.Schema{*part("integer"), *part("string")}}}
	inner := part("object").SetProperty("color", *part("string")).SetProperty("free", *free).
		SetProperty("either", *either).SetProperty("maybe", *part("string").AsNullable()).WithRequired("color", "maybe")
	return part("object").WithDescription("A thing.").SetProperty("spec", *inner)
}

func TestCustomKinds(t *testing.T) {
	shared := demanding()
	b := NewBuilder("v1.99.0")
	d := describeV3(t, b, things(func() *spec.Schema { return shared }))
	thing := d.Components.Schemas["com.example.shop.v1.Thing"]
	if thing == nil || thing.Description != "A thing." {
		t.Fatalf("got %v", thing)
	}
	metadata := thing.Properties["metadata"]
	if refOf(&metadata) != "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" || thing.Properties["kind"].Description == "" {
		t.Errorf("metadata %v, kind %v", metadata, thing.Properties["kind"])
	}
	if len(thing.Properties["spec"].Properties["either"].AnyOf) != 2 || !thing.Properties["spec"].Properties["maybe"].Nullable {
		t.Errorf("version 3 lost a part of the schema: %s", mustJSON(t, thing))
	}
	if got := mustJSON(t, thing.Extensions); !strings.Contains(got, `"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"}]`) {
		t.Errorf("extensions %s", got)
	}
	if list := d.Components.Schemas["com.example.shop.v1.ThingList"]; list == nil || refOf(list.Properties["items"].Items.Schema) != "com.example.shop.v1.Thing" {
		t.Errorf("list %v", list)
	}
	patch := d.Paths.Paths["/apis/shop.example.com/v1/namespaces/{namespace}/things/{name}"].Patch
	if patch.RequestBody.Content["application/strategic-merge-patch+json"] != nil || patch.RequestBody.Content["application/merge-patch+json"] == nil {
		t.Errorf("patches: %s", mustJSON(t, patch.RequestBody))
	}
	if len(shared.Properties) != 1 || len(shared.Extensions) != 0 {
		t.Errorf("the resource's own schema was changed: %s", mustJSON(t, shared))
	}
	if d.Components.Schemas["io.k8s.api.core.v1.Pod"] != nil {
		t.Error("the document has models that it does not need")
	}
}

// TestDeepSchemasAreTruncated: what is below publishedDepth is published as allowing
// anything, in both versions, and the schema that writes are checked by stays.
func TestDeepSchemasAreTruncated(t *testing.T) {
	nested := func(depth int) *spec.Schema {
		s := spec.StringProperty()
		for i := range depth {
			switch i % 3 {
			case 0:
				s = spec.ArrayProperty(s)
			case 1:
				s = spec.MapProperty(s)
			default:
				s = (&spec.Schema{}).Typed("object", "").SetProperty("next", *s)
			}
		}
		return (&spec.Schema{}).Typed("object", "").SetProperty("spec", *s)
	}
	below := func(s *spec.Schema) *spec.Schema {
		switch next, found := s.Properties["next"]; {
		case found:
			return &next
		case s.Items != nil:
			return s.Items.Schema
		case s.AdditionalProperties != nil:
			return s.AdditionalProperties.Schema
		}
		return nil
	}
	for _, depth := range []int{3, publishedDepth - 1, publishedDepth, 4000} {
		whole := nested(depth)
		document, err := NewBuilder("v1.99.0").V3Document(things(func() *spec.Schema { return whole }))
		if err != nil {
			t.Fatal(err)
		}
		content, err := document.Content()
		if err != nil {
			t.Fatal(err)
		}
		var d spec3.OpenAPI
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatal(err)
		}
		levels, s := 1, new(d.Components.Schemas["com.example.shop.v1.Thing"].Properties["spec"])
		for next := below(s); next != nil; next = below(s) {
			levels, s = levels+1, next
		}
		preserves, _ := s.Extensions.GetBool(preserveExtension)
		if levels != min(depth+1, publishedDepth) || preserves != (depth >= publishedDepth) {
			t.Errorf("of a schema %d deep, %d levels are published, and the last preserves unknown fields: %t", depth+1, levels, preserves)
		}
		if _, err := V3Protobuf(document); err != nil {
			t.Error(err)
		}
		describeAll(t, nil, things(func() *spec.Schema { return whole }))
		if !reflect.DeepEqual(whole, nested(depth)) {
			t.Error("the schema itself has changed")
		}
	}
}

// TestContentIsReadInPieces, from any place.
func TestContentIsReadInPieces(t *testing.T) {
	var content []byte
	for n := range 100_000 {
		content = append(content, fmt.Sprintf("%d,", n)...)
	}
	document, err := NewDocument(content)
	if err != nil {
		t.Fatal(err)
	}
	yields := 0
	reader := func() io.ReadSeeker { yields = 0; return document.Reader(func() { yields++ }) }
	if err := iotest.TestReader(reader(), content); err != nil {
		t.Error(err)
	}
	least := len(content)/pieceBytes + 1
	if read, err := io.ReadAll(reader()); err != nil || len(read) != len(content) || yields < least {
		t.Errorf("%d of %d bytes, %v: others may run %d times", len(read), len(content), err, yields)
	}
	r := reader()
	if _, err := r.Seek(-1, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if last, err := io.ReadAll(r); err != nil || string(last) != "," || yields < least {
		t.Errorf("the end is %q, %v: others may run %d times on the way there", last, err, yields)
	}
}
