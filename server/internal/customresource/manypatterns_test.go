package customresource_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestPatternsOfManyDefinitions: definitions that have had more patterns in all than the server keeps leave room for
// the next, and a pattern means the same when it is compiled again.
func TestPatternsOfManyDefinitions(t *testing.T) {
	c := start(t)
	c.define("widgets.yaml")
	pattern := func(round, i int) string { return fmt.Sprintf("^round%d-%d$", round, i) }
	for round := range 11 {
		properties := object{}
		for i := range 2900 {
			properties[fmt.Sprint("p", i)] = object{"type": "string", "pattern": pattern(round, i)}
		}
		c.redefine("widgets.example.com", func(crd object) {
			at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties").(object)["many"] = object{"type": "object", "properties": properties}
		}).is(http.StatusOK)
		name := fmt.Sprint("w", round)
		right, wrong := object{"p7": fmt.Sprintf("round%d-7", round)}, object{"p7": "other"}
		c.do(http.MethodPost, widgets, widget(name, object{"color": "red", "many": right})).is(http.StatusCreated)
		c.do(http.MethodPost, widgets, widget(name+"x", object{"color": "red", "many": wrong})).is(http.StatusUnprocessableEntity).
			says(fmt.Sprintf(`spec.many.p7: Invalid value: "other": spec.many.p7 in body should match '%s'`, pattern(round, 7)))
	}
}
