package cel

import (
	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// deviceFeatures are those of all gates.
var deviceFeatures = dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}

// plain parses what is not type-checked.
var plain, errPlain = cel.NewEnv()

// CompileDevice compiles an expression about a device, as resource.k8s.io has them: one that
// selects devices, or, with derived, one whose value is an attribute of them. It returns what
// an evaluation may cost at most. The error is a *apiservercel.Error.
func CompileDevice(expression string, derived bool) (cost uint64, err error) {
	if err := checkDevice(expression); err != nil {
		return 0, err
	}
	compiling.Lock()
	defer compiling.Unlock()
	mode := environment.NewExpressions
	result := dracel.GetCompiler(deviceFeatures).CompileCELExpression(expression, dracel.Options{EnvType: &mode, DerivedAttribute: derived})
	if result.Error != nil {
		return 0, result.Error
	}
	return result.MaxCost, nil
}

// checkDevice refuses an expression whose compilation would not end. What does not parse is
// for the compiler to refuse.
func checkDevice(expression string) error {
	if err := checkOptionals(expression); err != nil {
		return &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: err.Error()}
	}
	if errPlain != nil {
		return &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: errPlain.Error()}
	}
	parsed, issues := plain.Parse(expression)
	if issues.Err() != nil {
		return nil
	}
	_, err := checkParsed(plain, parsed)
	if err == nil {
		_, err = checkGrowth(parsed, nil)
	}
	if err != nil {
		return &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: err.Error()}
	}
	return nil
}
