package cel

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apiservercel "k8s.io/apiserver/pkg/cel"
)

func TestExpressionsAboutDevices(t *testing.T) {
	for _, c := range []struct {
		expression string
		derived    bool
		want       string // "" is valid
	}{
		{`device.driver == "gpu.example.com"`, false, ""},
		{`device.attributes["example.com"].model == "a100" && device.capacity["example.com"].memory.compareTo(quantity("1Gi")) >= 0`, false, ""},
		{`device.allowMultipleAllocations`, false, ""},
		{`"1"`, false, "must evaluate to bool"},
		{`device.nix`, false, "undefined field 'nix'"},
		{`device.driver ==`, false, "Syntax error"},
		{``, false, "Syntax error"},
		{`device.driver`, true, ""},
	} {
		cost, err := CompileDevice(c.expression, c.derived)
		var compiled *apiservercel.Error
		switch {
		case c.want == "" && (err != nil || cost == 0):
			t.Errorf("%q: cost %d, %v", c.expression, cost, err)
		case c.want != "" && (!errors.As(err, &compiled) || compiled.Type != apiservercel.ErrorTypeInvalid || !strings.Contains(compiled.Detail, c.want)):
			t.Errorf("%q: %v, want %s", c.expression, err, c.want)
		}
	}
}

// What would keep the compiler busy for hours is refused here as for policies.
func TestExpressionsAboutDevicesThatDouble(t *testing.T) {
	nested := "1"
	for i := range 30 {
		nested = fmt.Sprintf("[%s].map(x%d, {x%d: x%d})", nested, i, i, i)
	}
	for _, expression := range []string{nested + " == null", "optional.of(1)" + strings.Repeat(".optMap(x, x)", 30) + ".hasValue()"} {
		within(t, func() {
			if _, err := CompileDevice(expression, false); err == nil || !strings.Contains(err.Error(), "too complex") {
				t.Errorf("error is %v", err)
			}
		})
	}
}
