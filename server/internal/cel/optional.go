package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// decorateOptional plans or and orValue of optional values so that the right side is
// evaluated only if the left has no value.
func decorateOptional(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	function, overload := call.Function(), call.OverloadID()
	switch {
	case function == "or" && (overload == "" || overload == "optional_or_optional"):
		return &optionalOr{call.ID(), call.Args()[0], call.Args()[1], false}, nil
	case function == "orValue" && (overload == "" || overload == "optional_orValue_value"):
		return &optionalOr{call.ID(), call.Args()[0], call.Args()[1], true}, nil
	}
	return i, nil
}

// optionalOr is left.or(right), or left.orValue(right) if unwrap.
type optionalOr struct {
	id          int64
	left, right interpreter.InterpretableV2
	unwrap      bool
}

// ID implements interpreter.Interpretable.
func (o *optionalOr) ID() int64 { return o.id }

// Eval implements interpreter.Interpretable.
func (o *optionalOr) Eval(a interpreter.Activation) ref.Val { return o.Exec(interpreter.AsFrame(a)) }

// Exec implements interpreter.InterpretableV2.
func (o *optionalOr) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	left := o.left.Exec(frame)
	switch left := left.(type) {
	case *types.Err, *types.Unknown:
		return left
	case *types.Optional:
		if !left.HasValue() {
			return o.right.Exec(frame)
		}
		if o.unwrap {
			return left.GetValue()
		}
		return left
	}
	return types.NoSuchOverloadErr()
}
