package customresource_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestManyWrongElements: of a large object with very many errors, the first ones are said. The library would
// compare each of them with each.
func TestManyWrongElements(t *testing.T) {
	const many, few = 50_000, 20
	c := start(t)
	crd := load(t, "widgets.yaml")
	text := object{"type": "string", "enum": []any{"a", "b"}}
	at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties").(object)["texts"] = object{"type": "array", "items": object{
		"type": "object", "properties": object{"list": object{"type": "array", "items": text}, "map": object{"type": "object", "additionalProperties": text}},
	}}
	c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
	list := func(wrong int) []any {
		elements := make([]any, many)
		for i := range elements {
			if elements[i] = "a"; i < wrong {
				elements[i] = fmt.Sprint("x", i)
			}
		}
		return elements
	}
	entries := object{}
	for i := range many {
		entries[fmt.Sprint("k", i)] = "x"
	}
	of := func(name string, elements ...any) object {
		return widget(name, object{"color": "red", "texts": elements})
	}
	const more = "more may be wrong"
	for name, test := range map[string]struct {
		body   object
		causes int
		more   bool
	}{
		"elements of a list": {of("w", object{"list": list(many)}), 102, true},
		"entries of a map":   {of("w", object{"map": entries}), 102, true},
		"some elements":      {of("w", object{"list": list(few)}), few + 1, false}, // one says that rules were not checked
	} {
		refused := c.do(http.MethodPost, widgets+"?dryRun=All", test.body).is(http.StatusUnprocessableEntity)
		causes, _ := at(refused.object(), "details.causes").([]any)
		if len(causes) != test.causes || strings.Contains(refused.message(), more) != test.more {
			t.Errorf("%s: %d causes, want %d: %.300s", name, len(causes), test.causes, refused.message())
		}
	}
	c.do(http.MethodPost, widgets, of("w", object{"list": list(0)})).is(http.StatusCreated)
	c.merge(widgets+"/w?dryRun=All", object{"spec": object{"texts": []any{object{"list": list(many)}}}}).is(http.StatusUnprocessableEntity).says(more)
	c.merge(widgets+"/w?dryRun=All", object{"spec": object{"texts": []any{object{"list": list(few)}}}}).is(http.StatusUnprocessableEntity)
	c.merge(widgets+"/w?dryRun=All", object{"spec": object{"size": 3}}).is(http.StatusOK)
}
