package customresource_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Expressions whose compilation takes hours, or some seconds of which there may be many.
func bombs() map[string]string {
	nested := "1"
	for i := range 30 {
		nested = fmt.Sprintf("[%s].map(x%d, {x%d: x%d})", nested, i, i, i)
	}
	return map[string]string{
		"maps":      nested + ".size() > 0",
		"optionals": "optional.of(1)" + strings.Repeat(".optMap(x, x)", 30) + ".hasValue()",
		"types":     "true" + strings.Repeat("&&1==1", 10_000),
	}
}

// soon fails the test if f takes long: a bomb has gone off.
func soon(t *testing.T, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > 5*time.Minute {
		t.Errorf("it took %v", took)
	}
}

// TestRulesThatDoNotCompile: definitions whose rules would keep the compiler busy for
// hours, or would take much memory, are refused before they are compiled.
func TestRulesThatDoNotCompile(t *testing.T) {
	c := start(t)
	schema := func(crd object) object { return at(crd, "spec.versions.0.schema.openAPIV3Schema").(object) }
	for _, expression := range bombs() {
		for _, field := range []string{"rule", "messageExpression"} {
			crd := load(t, "widgets.yaml")
			rule := object{"rule": "true"}
			rule[field] = expression
			schema(crd)["x-kubernetes-validations"] = []any{rule}
			soon(t, func() {
				c.do(http.MethodPost, definitions, crd).is(http.StatusUnprocessableEntity).says("the expression is too complex")
			})
		}
	}
	crd := load(t, "widgets.yaml")
	properties := object{}
	for i := range 3000 {
		properties[fmt.Sprint("p", i)] = object{"type": "integer", "x-kubernetes-validations": []any{object{"rule": "self > 0"}}}
	}
	at(schema(crd), "properties").(object)["many"] = object{"type": "object", "properties": properties}
	soon(t, func() {
		c.do(http.MethodPost, definitions, crd).is(http.StatusUnprocessableEntity).says("MiB of memory when they are compiled, and may take 100")
	})
}

// TestManyLongRules: definitions whose rules keep the compiler busy together are refused before they are compiled.
func TestManyLongRules(t *testing.T) {
	c := start(t)
	crd := load(t, "widgets.yaml")
	var rules []any
	for range 60 {
		rules = append(rules, object{"rule": "'" + strings.Repeat("a", 10_000) + "' != ''"})
	}
	at(crd, "spec.versions.0.schema.openAPIV3Schema").(object)["x-kubernetes-validations"] = rules
	c.do(http.MethodPost, definitions, crd).is(http.StatusUnprocessableEntity).says("spec.versions").says("would take the compiler about")
}

// TestStoredRulesThatDoNotCompile: a definition with such rules that another server has
// stored costs the writes of its kind an error, and nothing else. It can be deleted.
func TestStoredRulesThatDoNotCompile(t *testing.T) {
	stored := strings.Replace(fmt.Sprintf(storedHats, false), `"size":{"type":"integer"}`,
		fmt.Sprintf(`"size":{"type":"integer","x-kubernetes-validations":[{"rule":%q}]}`, bombs()["optionals"]), 1)
	c, _ := startOn(t, hatsKey, stored)
	const hats = "/apis/example.com/v1/namespaces/default/hats"
	soon(t, func() {
		c.do(http.MethodPost, hats, object{"apiVersion": "example.com/v1", "kind": "Hat", "metadata": object{"name": "it"}}).says("the expression is too complex")
	})
	c.get(hats).is(http.StatusOK)
	c.define("widgets.yaml")
	c.do(http.MethodPost, widgets, widget("it", object{"color": "red"})).is(http.StatusCreated)
	soon(t, func() {
		c.do(http.MethodDelete, definitions+"/hats.example.com", nil).is(http.StatusOK)
		c.until("hats.example.com", func(crd object) bool { return crd == nil })
	})
}

// TestDearRules: what rules cost when an object is written is bounded, for each and for all
// of a request.
func TestDearRules(t *testing.T) {
	c := start(t)
	crd := load(t, "widgets.yaml")
	list := object{"type": "array", "maxItems": 190, "items": object{"type": "integer"}}
	at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties").(object)["numbers"] = list
	// Estimated at less than what a rule may cost, and dearer than an evaluation may be.
	list["x-kubernetes-validations"] = []any{object{"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}}
	c.do(http.MethodPost, definitions, crd).is(http.StatusUnprocessableEntity).says("estimated rule cost exceeds budget")
	list["maxItems"] = 70
	c.do(http.MethodPost, definitions, crd).is(http.StatusCreated)
	numbers := make([]any, 70)
	for i := range numbers {
		numbers[i] = i
	}
	soon(t, func() {
		c.do(http.MethodPost, widgets, widget("it", object{"color": "red", "numbers": numbers})).is(http.StatusUnprocessableEntity).says("call cost exceeds limit")
	})
	c.do(http.MethodPost, widgets, widget("it", object{"color": "red", "numbers": numbers[:20]})).is(http.StatusCreated)

	// Each rule is cheap enough, and all together are not. For what they cost they take little time: the bound of
	// the time must not come first on a busy machine.
	c.redefine("widgets.example.com", func(crd object) {
		var rules []any
		for i := range 18 {
			rules = append(rules, object{"rule": fmt.Sprintf("!self.contains('%s%d')", strings.Repeat("b", 1_000), i)})
		}
		properties := at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties").(object)
		properties["text"] = object{"type": "string", "maxLength": 90_000, "x-kubernetes-validations": rules}
	}).is(http.StatusOK)
	soon(t, func() {
		c.do(http.MethodPost, widgets, widget("more", object{"color": "red", "text": strings.Repeat("a", 90_000)})).is(http.StatusUnprocessableEntity).
			says("running out of cost budget")
	})
}
