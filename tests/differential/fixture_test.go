package differential

import (
	"encoding/json"
	"testing"
)

// widgets is a catalog with one kind, which has a field of each type.
func widgets(t *testing.T) (*catalog, *kind) {
	t.Helper()
	c := &catalog{
		Discovery: []json.RawMessage{json.RawMessage(`{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
			{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Namespaced","verbs":["create","update"]}
		]}]}]}`)},
		Documents: map[string]json.RawMessage{"apis/example.com/v1": json.RawMessage(`{"components":{"schemas":{
			"Widget":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Widget"}],"properties":{
				"apiVersion":{"type":"string"},"kind":{"type":"string"},
				"metadata":{"allOf":[{"$ref":"#/components/schemas/Meta"}]},
				"spec":{"allOf":[{"$ref":"#/components/schemas/Spec"}]},
				"status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}},
			"Meta":{"type":"object","properties":{"name":{"type":"string"},"labels":{"type":"object","additionalProperties":{"type":"string"}}}},
			"Spec":{"type":"object","properties":{
				"size":{"type":"integer"},"mode":{"type":"string","enum":["Fast","Slow"]},
				"parts":{"type":"array","items":{"$ref":"#/components/schemas/Part"}},
				"memory":{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
				"next":{"$ref":"#/components/schemas/Spec"}}},
			"Part":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"type":"integer"}}},
			"io.k8s.apimachinery.pkg.api.resource.Quantity":{"oneOf":[{"type":"string"},{"type":"number"}]}
		}}}`)},
	}
	if err := c.load(); err != nil {
		t.Fatal(err)
	}
	k := c.find("example.com/v1", "Widget")
	if k == nil || k.schema == nil {
		t.Fatal("the catalog has no schema of Widget")
	}
	return c, k
}

// decode reads JSON as answers and objects are read.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	value, err := parseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func widget(t *testing.T, k *kind) *object {
	t.Helper()
	return &object{k, small, decode(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"example","labels":{"a.b/c":"d"}},"spec":{"size":1,"parts":[{"name":"a"}]}}`)}
}
