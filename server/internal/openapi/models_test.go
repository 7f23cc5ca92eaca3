package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Every field that an object can have in JSON is described, with its type, and
// nothing else is.
func TestSchemasHaveTheFieldsOfTheirKinds(t *testing.T) {
	b := NewBuilder("v1.99.0")
	fill := filler()
	for _, g := range builtinGroups() {
		d := describeV3(t, b, g)
		for _, e := range g.Endpoints {
			obj := e.New()
			fill.Fill(obj)
			nameStrings(reflect.ValueOf(obj))
			obj.GetObjectKind().SetGroupVersionKind(e.GroupVersionKind())
			body, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(body, &value); err != nil {
				t.Fatal(err)
			}
			c := comparison{t: t, document: d}
			c.compare(e.Kind, value, &spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef("/" + modelOf(d, e))}})
		}
	}
}

// TestSchemeStaysAsItIs: what the scheme answers is its own, and all of the process read it.
func TestSchemeStaysAsItIs(t *testing.T) {
	before, _, err := scheme.Scheme.ObjectKinds(&metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before = slices.Clone(before)
	if kinds := kindsOf(reflect.TypeFor[metav1.DeleteOptions]()); len(kinds) == 0 || !slices.IsSortedFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		t.Errorf("%v", kinds)
	}
	if after, _, _ := scheme.Scheme.ObjectKinds(&metav1.DeleteOptions{}); !slices.Equal(before, after) {
		t.Errorf("%v\nwere\n%v", after, before)
	}
}

// modelOf finds a kind's model by what the document says of it, as clients do.
func modelOf(d *spec3.OpenAPI, e Endpoint) string {
	want := kindValue(e.GroupVersionKind())
	for name, s := range d.Components.Schemas {
		kinds, _ := s.Extensions[kindExtension].([]any)
		if slices.ContainsFunc(kinds, func(k any) bool { return fmt.Sprint(k) == fmt.Sprint(want) }) {
			return name
		}
	}
	return "none for " + e.Kind
}

type comparison struct {
	t        *testing.T
	document *spec3.OpenAPI
}

func (c comparison) compare(path string, value any, s *spec.Schema) {
	model := refOf(s)
	if model != "" {
		if s = c.document.Components.Schemas[model]; s == nil {
			c.t.Errorf("%s: no model %q", path, model)
			return
		}
	}
	switch v := value.(type) {
	case map[string]any:
		c.compareObject(path, model, v, s)
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			c.t.Errorf("%s is a list, but not described as one", path)
			return
		}
		for _, item := range v {
			c.compare(path+"[]", item, s.Items.Schema)
		}
	case string:
		c.expect(path, s, "string")
	case float64:
		c.expect(path, s, "integer", "number")
	case bool:
		c.expect(path, s, "boolean")
	}
}

func (c comparison) expect(path string, s *spec.Schema, kinds ...string) {
	for _, one := range s.OneOf {
		if slices.Contains(kinds, one.Type[0]) {
			return
		}
	}
	if len(s.Type) > 0 && !slices.Contains(kinds, s.Type[0]) || len(s.Type) == 0 && len(s.OneOf) > 0 {
		c.t.Errorf("%s is one of %v, but described as %v", path, kinds, s.Type)
	}
}

func (c comparison) compareObject(path, model string, v map[string]any, s *spec.Schema) {
	if s.AdditionalProperties != nil {
		for key, element := range v {
			c.compare(path+"."+key, element, s.AdditionalProperties.Schema)
		}
		return
	}
	for key, field := range v {
		if p, ok := s.Properties[key]; ok {
			c.compare(path+"."+key, field, &p)
		} else if len(s.Properties) > 0 {
			c.t.Errorf("%s.%s is not described", path, key)
		}
	}
	for key := range s.Properties {
		if _, ok := v[key]; !ok && key != "kind" && key != "apiVersion" && !strings.HasSuffix(model, ".JSONSchemaProps") {
			c.t.Errorf("%s.%s is described, but %s has no such field", path, key, model)
		}
	}
}

// What is published about fields that users and clients depend on.
func TestFactsAboutFields(t *testing.T) {
	const core, meta = "io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1."
	documents := preferredDocuments(t)
	for _, fact := range []struct{ group, model, field, want string }{
		{"", core + "PodSpec", "containers", `{"type":"array","items":{"default":{},"allOf":[{"$ref":"#/components/schemas/io.k8s.api.core.v1.Container"}]},` +
			`"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}`},
		{"", core + "PodSpec", "volumes", `{"type":"array","items":{"default":{},"allOf":[{"$ref":"#/components/schemas/io.k8s.api.core.v1.Volume"}]},` +
			`"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge,retainKeys"}`},
		{"", core + "PodSpec", "nodeSelector", `{"type":"object","additionalProperties":{"type":"string","default":""},"x-kubernetes-map-type":"atomic"}`},
		{"", core + "PodSpec", "terminationGracePeriodSeconds", `{"type":"integer","format":"int64"}`},
		{"", core + "Container", "args", `{"type":"array","items":{"type":"string","default":""},"x-kubernetes-list-type":"atomic"}`},
		{"", core + "Container", "name", `{"type":"string","default":""}`},
		{"", core + "Container", "ports", `{"type":"array","items":{"default":{},"allOf":[{"$ref":"#/components/schemas/io.k8s.api.core.v1.ContainerPort"}]},` +
			`"x-kubernetes-list-map-keys":["containerPort","protocol"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"containerPort","x-kubernetes-patch-strategy":"merge"}`},
		{"", core + "Container", "imagePullPolicy", `{"type":"string","enum":["Always","IfNotPresent","Never"]}`},
		{"", core + "ContainerPort", "protocol", `{"type":"string","default":"TCP","enum":["SCTP","TCP","UDP"]}`},
		{"", core + "ServicePort", "targetPort", `{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}`},
		{"", core + "ResourceRequirements", "limits", `{"type":"object","additionalProperties":{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}}`},
		{"", core + "Secret", "data", `{"type":"object","additionalProperties":{"type":"string","format":"byte"}}`},
		{"", core + "Secret", "immutable", `{"type":"boolean"}`},
		{"", meta + "ObjectMeta", "finalizers", `{"type":"array","items":{"type":"string","default":""},"x-kubernetes-list-type":"set","x-kubernetes-patch-strategy":"merge"}`},
		{"", meta + "ObjectMeta", "creationTimestamp", `{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}`},
		{"", meta + "DeleteOptions", "gracePeriodSeconds", `{"type":"integer","format":"int64"}`},
		{"apps", "io.k8s.api.apps.v1.DeploymentSpec", "replicas", `{"type":"integer","format":"int32"}`},
		{"apps", "io.k8s.api.apps.v1.DeploymentSpec", "strategy", `{"default":{},"allOf":[{"$ref":"#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],"x-kubernetes-patch-strategy":"retainKeys"}`},
		{"apps", "io.k8s.api.apps.v1.DeploymentStrategy", "type", `{"type":"string","enum":["Recreate","RollingUpdate"]}`},
		{"policy", "io.k8s.api.policy.v1.PodDisruptionBudgetStatus", "conditions", `{"type":"array","items":{"default":{},"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Condition"}]},` +
			`"x-kubernetes-list-map-keys":["type"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"type","x-kubernetes-patch-strategy":"merge"}`},
	} {
		s := documents[fact.group].Components.Schemas[fact.model]
		if s == nil {
			t.Errorf("%s is in no document", fact.model)
			continue
		}
		p := s.Properties[fact.field]
		if p.Description == "" {
			t.Errorf("%s.%s has no description", fact.model, fact.field)
		}
		if p.Description = ""; p.Ref.String() == "" && len(p.AllOf) == 1 && p.Default == nil && len(p.Extensions) == 0 {
			p = p.AllOf[0] // wrapped for the description alone
		}
		if got := canonical(t, p); got != canonicalJSON(t, fact.want) {
			t.Errorf("%s.%s:\n got %s\nwant %s", fact.model, fact.field, got, canonicalJSON(t, fact.want))
		}
	}
}

func TestFactsAboutModels(t *testing.T) {
	documents := preferredDocuments(t)
	for _, fact := range []struct{ group, model, want string }{
		{"", "io.k8s.apimachinery.pkg.util.intstr.IntOrString", `{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]}`},
		{"", "io.k8s.apimachinery.pkg.api.resource.Quantity", `{"oneOf":[{"type":"string"},{"type":"number"}]}`},
		{"", "io.k8s.apimachinery.pkg.apis.meta.v1.Time", `{"type":"string","format":"date-time"}`},
		{"", "io.k8s.apimachinery.pkg.apis.meta.v1.Patch", `{"type":"object"}`},
		{"", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", `{"type":"object"}`},
		{"", "io.k8s.api.core.v1.LocalObjectReference", `{"type":"object","x-kubernetes-map-type":"atomic"}`},
		{"", "io.k8s.api.core.v1.Container", `{"type":"object","required":["name"]}`},
		{"", "io.k8s.api.core.v1.PodSpec", `{"type":"object","required":["containers"]}`},
		{"", "io.k8s.api.core.v1.PodList", `{"type":"object","required":["items"],"x-kubernetes-group-version-kind":[{"group":"","kind":"PodList","version":"v1"}]}`},
		{"apps", "io.k8s.api.apps.v1.DeploymentSpec", `{"type":"object","required":["selector","template"]}`},
		{"networking.k8s.io", "io.k8s.api.networking.v1.HTTPIngressPath", `{"type":"object","required":["backend","pathType"]}`},
	} {
		s := documents[fact.group].Components.Schemas[fact.model]
		if s == nil {
			t.Errorf("%s is in no document", fact.model)
			continue
		}
		shell := *s
		shell.Properties, shell.Description = nil, ""
		shell.Required = slices.Sorted(slices.Values(s.Required))
		if got := canonical(t, shell); got != canonicalJSON(t, fact.want) {
			t.Errorf("%s: got %s, want %s", fact.model, got, fact.want)
		}
	}
}

// preferredDocuments makes the document of each group's preferred version.
func preferredDocuments(t *testing.T) map[string]*spec3.OpenAPI {
	t.Helper()
	b := NewBuilder("v1.99.0")
	documents := map[string]*spec3.OpenAPI{}
	for _, g := range builtinGroups() {
		if documents[g.Version.Group] != nil {
			continue
		}
		d := describeV3(t, b, g)
		documents[g.Version.Group] = d
	}
	return documents
}

func canonical(t *testing.T, s spec.Schema) string {
	t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return canonicalJSON(t, string(body))
}

func canonicalJSON(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
