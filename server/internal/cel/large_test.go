package cel

import (
	"fmt"
	"testing"
)

// TestManyVariables: the variables of a policy are looked up by the names that are in an expression.
func TestManyVariables(t *testing.T) {
	const many = 50_000
	c := NewCompiler(New)
	for i := range many {
		if err := c.Declare(fmt.Sprint("v", i), "1", Declarations{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range many {
		if err := c.Declare(fmt.Sprint("v", i), "'text'", Declarations{}); err != nil { // which takes the place of the other
			t.Fatal(err)
		}
	}
	for i := range many {
		if used := c.usedBy(fmt.Sprintf("variables.v%d + variables.other", i)); len(used) != 1 || used[0].name != fmt.Sprint("v", i) {
			t.Fatalf("v%d: %v", i, used)
		}
	}
	if _, err := c.Compile("variables.v1 + variables.v20 == 'texttext' && size('v3') > 0", Declarations{}); err != nil {
		t.Error(err)
	}
	if _, err := c.Compile("variables.w", Declarations{}); err == nil {
		t.Error("a variable that is not declared can be used")
	}
}
