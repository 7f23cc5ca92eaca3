package customresource_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestDearPatterns: what the patterns of a definition would take in memory is bounded: they are kept until the
// process ends.
func TestDearPatterns(t *testing.T) {
	c := start(t)
	with := func(patterns ...string) answer {
		crd := load(t, "widgets.yaml")
		properties := object{}
		for i, pattern := range patterns {
			properties[fmt.Sprint("p", i)] = object{"type": "string", "pattern": pattern}
		}
		at(crd, "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties").(object)["many"] = object{"type": "object", "properties": properties}
		return c.do(http.MethodPost, definitions, crd)
	}
	var distinct []string
	for i := range 4000 {
		distinct = append(distinct, fmt.Sprintf("^a%d$", i))
	}
	with(distinct...).is(http.StatusUnprocessableEntity).says("4001 different patterns, and may have 3000")
	with(strings.Repeat("a{1000}", 2000)).is(http.StatusUnprocessableEntity).says("steps when they are compiled")
	with(distinct[:1000]...).is(http.StatusCreated)
}
