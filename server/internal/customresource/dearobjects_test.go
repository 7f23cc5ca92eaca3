package customresource_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestDearObjects: an object whose validation would take minutes, since there are many values and each may have very
// many, is refused; errors about values do not repeat what is allowed without end.
func TestDearObjects(t *testing.T) {
	c := start(t)
	crd := load(t, "widgets.yaml")
	properties := at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties").(object)
	var enum, alternatives []any
	for i := range 10_000 {
		enum = append(enum, fmt.Sprintf("v%05d", i))
		alternatives = append(alternatives, object{"required": []any{fmt.Sprint("m", i)}})
	}
	properties["words"] = object{"type": "array", "items": object{"type": "string", "enum": enum}}
	properties["parts"] = object{"type": "array", "items": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "anyOf": alternatives[:1000]}}
	properties["texts"] = object{"type": "array", "items": object{"type": "string", "pattern": "^(a{1000}){0,1}b{900}.*$"}}
	c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
	many := func(n int, element any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = element
		}
		return list
	}
	const dear = "too many values for the enumerations, alternatives and patterns"
	for name, spec := range map[string]object{
		"enumeration":  {"words": many(10_000, "v09999")},
		"alternatives": {"parts": many(30_000, object{"m999": true})},
		"pattern":      {"texts": many(300, strings.Repeat("b", 2000))},
	} {
		spec["color"] = "red"
		if refused := c.do(http.MethodPost, widgets, widget("dear", spec)); refused.code != http.StatusUnprocessableEntity || !strings.Contains(refused.message(), dear) {
			t.Errorf("%s: %d %.300s", name, refused.code, refused.message())
		}
	}
	c.do(http.MethodPost, widgets, widget("it", object{"color": "red", "words": many(100, "v09999"), "texts": many(3, strings.Repeat("b", 2000))})).is(http.StatusCreated)
	refused := c.do(http.MethodPost, widgets, widget("wrong", object{"color": "red", "words": many(1500, "x")}))
	if refused.code != http.StatusUnprocessableEntity || len(refused.body) > 3<<20 {
		t.Errorf("code %d, with %d bytes, for 1,500 wrong values of 10,000", refused.code, len(refused.body))
	}
}

// TestDearObjectsLoseTheirFinalizers: one that became expensive by a change of its schema can be deleted.
func TestDearObjectsLoseTheirFinalizers(t *testing.T) {
	c := start(t)
	words := func(enum []any) func(object) {
		return func(crd object) {
			at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties").(object)["words"] = object{"type": "array", "items": object{"type": "string", "enum": enum}}
		}
	}
	crd := load(t, "widgets.yaml")
	words([]any{"a"})(crd)
	c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
	list := make([]any, 10_000)
	for i := range list {
		list[i] = "a"
	}
	dear := widget("it", object{"color": "red", "words": list})
	at(dear, "metadata").(object)["finalizers"] = []any{"example.com/wait"}
	c.do(http.MethodPost, widgets, dear).is(http.StatusCreated)
	enum := []any{}
	for i := range 10_000 {
		enum = append(enum, fmt.Sprint("v", i))
	}
	c.redefine("widgets.example.com", words(append(enum, "a"))).is(http.StatusOK)
	c.merge(widgets+"/it", object{"spec": object{"size": 3}}).is(http.StatusUnprocessableEntity).says("too many values")
	c.do(http.MethodDelete, widgets+"/it", nil).is(http.StatusOK)
	c.merge(widgets+"/it", object{"metadata": object{"finalizers": nil}}).is(http.StatusOK)
	c.get(widgets + "/it").is(http.StatusNotFound)
}
