package cel

import (
	"fmt"
	"strings"
	"testing"
	"time"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// Short expressions whose compilation takes hours or gigabytes are refused before it.
func TestExpressionsThatDoubleAreRefused(t *testing.T) {
	nested := "1"
	for i := range 30 {
		nested = fmt.Sprintf("[%s].map(x%d, {x%d: x%d})", nested, i, i, i)
	}
	for name, expression := range map[string]string{
		"maps":      nested,
		"optionals": "optional.of(1)" + strings.Repeat(".optMap(x, x)", 30) + ".hasValue()",
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func() {
				if _, err := NewCompiler(New).Compile(expression, Declarations{}); err == nil || !strings.Contains(err.Error(), "too complex") {
					t.Errorf("error is %v", err)
				}
			})
		})
	}
	nested = "1"
	for i := range maxComputedMaps {
		nested = fmt.Sprintf("[%s].map(x%d, {x%d: x%d})", nested, i, i, i)
	}
	within(t, func() {
		if _, err := NewCompiler(New).Compile(nested, Declarations{}); err != nil {
			t.Error(err)
		}
	})
	few := "optional.of(1)" + strings.Repeat(".optMap(x, x)", maxOptionalMaps) + ".hasValue()"
	if _, err := NewCompiler(New).Compile(few, Declarations{}); err != nil {
		t.Error(err)
	}
}

// The types of variables do not double, either.
func TestVariablesDoNotDouble(t *testing.T) {
	within(t, func() {
		c := NewCompiler(New)
		if err := c.Declare("v0", "1", Declarations{}); err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			if err := c.Declare(fmt.Sprint("v", i+1), fmt.Sprintf("{variables.v%d: variables.v%d}", i, i), Declarations{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Fatal("it does not end")
	}
}
