package cel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"weak"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	tree   *interpreter.ObservableInterpretable
	result *cel.Type
	growth int // of its value; see maxGrowth
}

func newProgram(tree interpreter.InterpretableV2, result *cel.Type, growth int) (*Program, error) {
	observable, ok := tree.(*interpreter.ObservableInterpretable)
	if !ok {
		return nil, internalError("program instantiation failed", fmt.Errorf("the cost of a %T is not counted", tree))
	}
	return &Program{tree: observable, result: result, growth: growth}, nil
}

// eval evaluates the expression and returns what that has cost. The error is of the
// evaluation; the cost counts then too.
func (p *Program) eval(ctx context.Context, activation interpreter.Activation) (value ref.Val, cost uint64, err error) {
	frame, err := interpreter.NewExecutionFrame(activation)
	if err != nil {
		return nil, 0, err
	}
	defer frame.Close()
	var tracker *interpreter.CostTracker
	defer func() {
		if tracker != nil {
			cost = tracker.ActualCost()
		}
		// The interpreter ends an evaluation that is too expensive by a panic.
		switch panicked := recover().(type) {
		case nil:
		case interpreter.EvalCancelledError:
			value, err = nil, panicked
		default:
			value, err = nil, fmt.Errorf("internal error: %v", panicked)
		}
	}()
	if err := frame.SetContext(ctx, celconfig.CheckFrequency); err != nil {
		return nil, 0, err
	}
	value = p.tree.ObserveExec(frame, func(state any) {
		if t, ok := state.(*interpreter.CostTracker); ok {
			tracker = t
		}
	})
	if failed, ok := value.(*types.Err); ok {
		if errors.Is(failed, interpreter.InterruptError{}) {
			return nil, 0, fmt.Errorf("%w: %w", failed, context.Cause(ctx))
		}
		return nil, 0, failed
	}
	return value, 0, nil
}

// programs are the Programs that some policy holds, by programKey. It is guarded by
// compiling, and so is only asked when a policy is compiled.
var programs = map[string]weak.Pointer[Program]{}

// programKey is equal for expressions that have the same Program.
func programKey(expression string, d Declarations, mode Mode, used []variable) string {
	var b strings.Builder
	for _, flag := range []bool{d.Params, d.Authorizer, d.PatchTypes} {
		b.WriteString(strconv.FormatBool(flag))
		b.WriteByte(' ')
	}
	b.WriteString(string(mode))
	for _, v := range used {
		b.WriteByte(' ')
		b.WriteString(v.name)
		b.WriteByte(':')
		b.WriteString(v.kind.CelType().String())
		b.WriteByte('*')
		b.WriteString(strconv.Itoa(v.growth()))
	}
	b.WriteByte('\n')
	b.WriteString(expression)
	return b.String()
}

// sharedProgram returns the Program of an equal expression, or nil. The caller holds compiling.
func sharedProgram(key string) *Program { return programs[key].Value() }

// shareProgram lets equal expressions have a Program for as long as a policy holds it. The
// caller holds compiling.
func shareProgram(key string, p *Program) {
	programs[key] = weak.Make(p)
	runtime.AddCleanup(p, func(key string) {
		compiling.Lock()
		defer compiling.Unlock()
		if programs[key].Value() == nil {
			delete(programs, key)
		}
	}, key)
}
