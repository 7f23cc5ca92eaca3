package cel

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// doubled is an expression whose value has a part 2^times times.
func doubled(times int) string {
	text := "[1]"
	for i := range times {
		text += fmt.Sprintf(".map(x%d, [x%d, x%d])", i, i, i)
	}
	return text
}

// TestValuesThatGrow: expressions whose values are exponentially larger than they are are refused, wherever expressions are.
func TestValuesThatGrow(t *testing.T) {
	const times = 12
	half := doubled(times / 2)
	for _, expression := range []string{
		doubled(times) + " == []", "[" + doubled(times) + "].exists(x, x == x)", "[1].all(i, " + doubled(times) + " == [])",
		half + ".sortBy(y, 1)" + half[3:] + " == []", strings.ReplaceAll(doubled(times), ".map", ".map(y, dyn(y)).map") + " == []",
	} {
		_, err := NewCompiler(New).Compile(expression, Declarations{})
		if err == nil || !strings.Contains(err.Error(), "too complex") {
			t.Errorf("%.60s...: %v", expression, err)
		}
	}
	rule := &apiextensions.JSONSchemaProps{XValidations: apiextensions.ValidationRules{{Rule: doubled(times) + " == []"}}}
	if _, err := CheckRules(rule); err == nil {
		t.Error("a rule of a schema may have such a value")
	}
	if _, err := CompileDevice(doubled(times)+" == []", false); err == nil || !strings.Contains(err.Error(), "too complex") {
		t.Errorf("an expression about devices: %v", err)
	}
	c := NewCompiler(New)
	_ = c.Declare("v0", "object", Declarations{})
	var refused error
	for i := range times {
		refused = errors.Join(refused, c.Declare(fmt.Sprint("v", i+1), fmt.Sprintf("[variables.v%d, variables.v%d]", i, i), Declarations{}))
	}
	if refused == nil || !strings.Contains(refused.Error(), "too complex") {
		t.Errorf("variables: %v", refused)
	}
}

// TestValuesThatDoNotGrow: what repeats parts side by side, or compares them, may do so.
func TestValuesThatDoNotGrow(t *testing.T) {
	names := make([]string, 200)
	for i := range names {
		names[i] = fmt.Sprintf("object.spec.m%d", i)
	}
	for _, expression := range []string{
		doubled(5) + " == []", "[" + strings.Join(names, ", ") + "].all(x, x != 'y')",
		strings.Repeat("(object.a == object.b) && ", 300) + "true", "object.list.map(x, object.list.filter(y, y == x)).map(z, z.size()) == []",
	} {
		if _, err := NewCompiler(New).Compile(expression, Declarations{}); err != nil {
			t.Errorf("%.60s...: %v", expression, err)
		}
	}
}
