package cel

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Variables are the variables of a policy. They are immutable.
type Variables struct{ list []variable }

// Input is what the variables of the environment stand for. A nil field is null, but for
// the authorizers, which are then not declared. The values are read by one goroutine at a
// time.
type Input struct {
	Object, OldObject, Params, Request, Namespace ref.Val
	Authorizer, RequestResource                   ref.Val
}

// ErrBudget is the cause of an error if expressions have cost more than their budget.
var ErrBudget = apiservercel.ErrOutOfBudget

// Evaluation evaluates expressions of one policy for one Input. A variable is evaluated
// once, when an expression first needs it. It is used by one goroutine.
type Evaluation struct {
	ctx       context.Context // of the call of Evaluate that is running
	input     *Input
	variables Variables
	values    []ref.Val // of variables, nil where not evaluated
	budget    int64
}

// NewEvaluation returns an Evaluation whose budget is zero. input is kept.
func NewEvaluation(variables Variables, input *Input) *Evaluation {
	return &Evaluation{input: input, variables: variables}
}

// SetBudget sets what the expressions that follow may cost together, their variables
// included.
func (e *Evaluation) SetBudget(budget int64) { e.budget = budget }

// Evaluate evaluates an expression. The cause of the error is ErrBudget if the budget is
// exhausted; no further expression should then be evaluated.
func (e *Evaluation) Evaluate(ctx context.Context, expression string, p *Program) (ref.Val, error) {
	e.ctx = ctx
	value, cost, err := p.eval(ctx, e)
	e.ctx = nil
	e.spend(cost)
	if e.budget < 0 {
		return nil, &apiservercel.Error{
			Type: apiservercel.ErrorTypeInvalid, Detail: "validation failed due to running out of cost budget, no further validation rules will be run",
			Cause: ErrBudget,
		}
	}
	if err != nil {
		return nil, &apiservercel.Error{
			Type: apiservercel.ErrorTypeInvalid, Detail: fmt.Sprintf("expression '%v' resulted in error: %v", expression, err), Cause: err,
		}
	}
	return value, nil
}

// spend takes a cost from the budget, which is negative when it is exhausted.
func (e *Evaluation) spend(cost uint64) {
	if e.budget < 0 || cost > uint64(e.budget) {
		e.budget = -1
		return
	}
	e.budget -= int64(cost) //nolint:gosec // not above the budget
}

// ResolveName implements interpreter.Activation.
func (e *Evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case plugincel.ObjectVarName:
		return orNull(e.input.Object), true
	case plugincel.OldObjectVarName:
		return orNull(e.input.OldObject), true
	case plugincel.ParamsVarName:
		return orNull(e.input.Params), true
	case plugincel.RequestVarName:
		return orNull(e.input.Request), true
	case plugincel.NamespaceVarName:
		return orNull(e.input.Namespace), true
	case plugincel.AuthorizerVarName:
		return e.input.Authorizer, e.input.Authorizer != nil
	case plugincel.RequestResourceAuthorizerVarName:
		return e.input.RequestResource, e.input.RequestResource != nil
	case plugincel.VariableVarName:
		return lazyVariables{e}, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (e *Evaluation) Parent() interpreter.Activation { return nil }

func orNull(v ref.Val) ref.Val {
	if v == nil {
		return types.NullValue
	}
	return v
}

// variable returns the value of a variable, or the error of its evaluation.
func (e *Evaluation) variable(i int) ref.Val {
	if e.values == nil {
		e.values = make([]ref.Val, len(e.variables.list))
	}
	if e.values[i] == nil {
		e.values[i] = e.evaluateVariable(&e.variables.list[i])
	}
	return e.values[i]
}

func (e *Evaluation) evaluateVariable(v *variable) ref.Val {
	if v.program == nil {
		return types.NewErr("composited variable %q fails to compile: %v", v.name, v.err)
	}
	value, cost, err := v.program.eval(e.ctx, e)
	e.spend(cost)
	if err != nil {
		return types.NewErr("composited variable %q fails to evaluate: %v", v.name, err)
	}
	return value
}

// lazyVariables is the value of the variable named variables.
type lazyVariables struct{ evaluation *Evaluation }

var lazyVariablesType = types.NewObjectType(variablesType, traits.IndexerType|traits.FieldTesterType)

// Get implements traits.Indexer.
func (l lazyVariables) Get(key ref.Val) ref.Val {
	if value, ok := l.Find(key); ok {
		return value
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Find returns the value of a variable, as the interpreter asks for it.
func (l lazyVariables) Find(key ref.Val) (ref.Val, bool) {
	if i := l.index(key); i >= 0 {
		return l.evaluation.variable(i), true
	}
	return nil, false
}

// IsSet implements traits.FieldTester.
func (l lazyVariables) IsSet(key ref.Val) ref.Val { return types.Bool(l.index(key) >= 0) }

// Contains implements traits.Container.
func (l lazyVariables) Contains(key ref.Val) ref.Val { return l.IsSet(key) }

func (l lazyVariables) index(key ref.Val) int {
	s, ok := key.(types.String)
	if !ok {
		return -1
	}
	name, ok := apiservercel.Unescape(string(s))
	if !ok {
		name = string(s)
	}
	for i := range l.evaluation.variables.list {
		if l.evaluation.variables.list[i].name == name {
			return i
		}
	}
	return -1
}

var errNotAValue = errors.New("variables is no value of its own: name one of them")

// ConvertToNative implements ref.Val.
func (lazyVariables) ConvertToNative(reflect.Type) (any, error) { return nil, errNotAValue }

// ConvertToType implements ref.Val.
func (l lazyVariables) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return lazyVariablesType
	}
	return types.WrapErr(errNotAValue)
}

// Equal implements ref.Val.
func (l lazyVariables) Equal(other ref.Val) ref.Val {
	o, ok := other.(lazyVariables)
	return types.Bool(ok && o.evaluation == l.evaluation)
}

// Type implements ref.Val.
func (lazyVariables) Type() ref.Type { return lazyVariablesType }

// Value implements ref.Val.
func (l lazyVariables) Value() any { return l }
