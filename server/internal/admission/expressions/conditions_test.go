package expressions_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/levelwire/levelwire/server/internal/admission/expressions"
	"github.com/levelwire/levelwire/server/internal/cel"
)

// TestConditions lists what conditions decide together.
func TestConditions(t *testing.T) {
	// Another server may have stored what this one refuses: it would compile for hours.
	bomb := "optional.of(1)" + strings.Repeat(".optMap(x, x)", 40) + ".hasValue()"
	for name, test := range map[string]struct {
		conditions []string
		matches    bool
		err        string
	}{
		"none":           {nil, true, ""},
		"all true":       {[]string{"true", "object == 1"}, true, ""},
		"one false":      {[]string{"true", "object == 2"}, false, ""},
		"false and fail": {[]string{"object.a == 1", "false"}, false, ""},
		"true and fail":  {[]string{"object.a == 1", "true"}, false, "resulted in error"},
		"bomb":           {[]string{bomb}, false, "too complex"},
		"no bool":        {[]string{"1"}, false, "must evaluate to bool"},
	} {
		t.Run(name, func(t *testing.T) {
			var list []admissionv1.MatchCondition
			for _, e := range test.conditions {
				list = append(list, admissionv1.MatchCondition{Name: "c", Expression: e})
			}
			c := expressions.CompileConditions(cel.NewCompiler(cel.Stored), list, false, expressions.ConditionLabels{})
			matches, err := c.Match(t.Context(), &cel.Input{Object: types.Int(1)}, "CREATE", nil)
			if matches != test.matches || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v %v, want %v %q", matches, err, test.matches, test.err)
			}
		})
	}
}
