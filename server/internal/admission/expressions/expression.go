package expressions

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/levelwire/levelwire/server/internal/cel"
)

// Expression is compiled, or it has the error of that: the server that accepted it may
// have known other functions. It is immutable.
type Expression struct {
	// Text is empty if there is no expression.
	Text    string
	program *cel.Program
	err     error
}

// Compile compiles an expression that is stored already. Evaluate returns the error, if
// there is one.
func Compile(c *cel.Compiler, text string, d cel.Declarations, results ...*celgo.Type) Expression {
	program, err := c.Compile(text, d, results...)
	return Expression{text, program, err}
}

// Evaluate evaluates the expression. The error is a *CompileError if it has never compiled.
// Its cause is cel.ErrBudget if no other expression of the evaluation should follow.
func (e *Expression) Evaluate(ctx context.Context, evaluation *cel.Evaluation) (ref.Val, error) {
	if e.err != nil {
		return nil, &CompileError{e.err}
	}
	return evaluation.Evaluate(ctx, e.Text, e.program)
}

// CompileError is the error of an expression that does not compile.
type CompileError struct{ cause error }

// Error implements error.
func (e *CompileError) Error() string { return "compilation error: " + e.cause.Error() }

// Unwrap returns what the compiler said.
func (e *CompileError) Unwrap() error { return e.cause }
