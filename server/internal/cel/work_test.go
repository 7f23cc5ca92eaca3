package cel

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

func repeated(part, separator string, bytes int) string {
	return strings.TrimSuffix(strings.Repeat(part+separator, bytes/len(part+separator)), separator)
}

// TestExpressionsOfManyTypes: what would keep the type checker busy for many seconds is refused before it.
func TestExpressionsOfManyTypes(t *testing.T) {
	const bytes = 32_000
	for name, expression := range map[string]string{
		"comparisons":             repeated("1==1", "&&", bytes),
		"alternatives":            repeated("1==1", "||", bytes),
		"comparisons in a macro":  "[1].all(x, " + repeated("x==1", "&&", bytes) + ")",
		"macros":                  repeated("[1].all(x,x==1)", "&&", bytes),
		"empty lists":             "[" + repeated("[]", ",", bytes) + "].size() == 0",
		"empty maps":              "[" + repeated("{}", ",", bytes) + "].size() == 0",
		"empty lists and numbers": "[" + repeated("[]", ",", bytes/8) + "," + repeated("1", ",", bytes) + "].size() == 0",
		"indices":                 repeated("object.a[0]", "||", bytes),
	} {
		if _, err := NewCompiler(New).Compile(expression, Declarations{}); err == nil || !strings.Contains(err.Error(), "the expression is too complex") {
			t.Errorf("%s: %.200v", name, err)
		}
		schema := &apiextensions.JSONSchemaProps{XValidations: apiextensions.ValidationRules{{Rule: expression}}}
		if _, err := CheckRules(schema); err == nil || !strings.Contains(err.Error(), "the expression is too complex") {
			t.Errorf("%s in a rule: %.200v", name, err)
		}
	}
}

// TestLargeExpressions: expressions that are larger than those that are written are compiled.
func TestLargeExpressions(t *testing.T) {
	for name, expression := range map[string]string{
		"containers": repeated("object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/') && c.securityContext.privileged != true)", " && ", 16_000),
		"rights":     repeated("authorizer.group('apps').resource('deployments').namespace('default').check('create').allowed()", " || ", 16_000),
		"labels":     repeated("'example.com/label' in object.metadata.labels && object.metadata.labels['example.com/label'] == 'value'", " || ", 16_000),
		"names":      "object.metadata.name in [" + repeated("'a-name'", ",", 16_000) + "]",
	} {
		c := NewCompiler(New)
		if _, err := c.Compile(expression, Declarations{Authorizer: true}); err != nil {
			t.Errorf("%s: %.200v", name, err)
		}
		if c.Work() > MaxWork/4 {
			t.Errorf("%s: work of %d", name, c.Work())
		}
	}
}

// TestWorkOfManyExpressions: the work of all expressions of a policy is added up; an equal one makes none.
func TestWorkOfManyExpressions(t *testing.T) {
	c := NewCompiler(New)
	first, err := c.Compile("1 == 1 && 2 == 2", Declarations{})
	if err != nil {
		t.Fatal(err)
	}
	one := c.Work()
	second, err := c.Compile("1 == 1 && 3 == 3", Declarations{})
	if err != nil {
		t.Fatal(err)
	}
	if one == 0 || c.Work() != 2*one {
		t.Errorf("work of one %d, of two %d", one, c.Work())
	}
	if again, err := c.Compile("1 == 1 && 2 == 2", Declarations{}); again != first || again == second || err != nil || c.Work() != 2*one {
		t.Errorf("work of an equal one: %d, %v", c.Work()-2*one, err)
	}
}

// TestPatternsInExpressions: a regular expression that is compiled with an expression costs what it has when it is
// compiled, and not what it is long.
func TestPatternsInExpressions(t *testing.T) {
	bomb := strings.Repeat("a{1000}", 200)
	for _, expression := range []string{"'x'.matches('" + bomb + "')", "matches('x', '" + bomb + "')", "'x'.find('" + bomb + "') == ''"} {
		if _, err := NewCompiler(New).Compile(expression, Declarations{}); err == nil || !strings.Contains(err.Error(), "too complex") {
			t.Errorf("%.20s...: %v", expression, err)
		}
	}
	if _, err := CompileDevice("device.driver.matches('"+bomb+"')", false); err == nil || !strings.Contains(err.Error(), "too complex") {
		t.Errorf("an expression about devices: %v", err)
	}
	if _, err := NewCompiler(New).Compile("object.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')", Declarations{}); err != nil {
		t.Error(err)
	}
}

// TestPatternSize: it is about that of the compiled program.
func TestPatternSize(t *testing.T) {
	for pattern, want := range map[string]int{"abc": 3, "a{1000}": 1000, "(ab){2,50}": 150, "a*b+c?": 6, "(": 0, "a{3,}": 3} {
		if got := PatternSize(pattern); got < want/2 || got > 3*want {
			t.Errorf("%s has %d steps, want about %d", pattern, got, want)
		}
	}
}
