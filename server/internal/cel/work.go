package cel

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
)

// The type checker keeps a type variable for each literal [] and {} and for each type parameter
// of a call, such as the two sides of ==, and copies all of them each time it compares two
// types: 2,700 comparisons in 16 kB took 1.7 s of processor time, and 64 kB take sixteen times as
// much. Copies are counted before.
const (
	maxCopies = 3_000_000
	// byteWork is the work of parsing a byte, in copies.
	byteWork = 20
)

// MaxWork is how much work the expressions of one object should make (see Compiler.Work): about
// 2 s of processor time. 500 kB of expressions without much else make as much.
const MaxWork = 10_000_000

// copies is how often the type checker copies a type variable, or somewhat less: it does not
// keep those of overloads that do not fit. Regular expressions that are compiled with the expression count, too.
func copies(env *cel.Env, parsed *cel.Ast) int {
	c := copyCounter{functions: env.Functions()}
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(c.visit))
	return c.copies
}

type copyCounter struct {
	functions         map[string]*decls.FunctionDecl
	variables, copies int
}

// comprehensionTypes are the comparisons of types for a macro such as all.
const comprehensionTypes = 3

// visit counts what the checker does for an expression when it is done with the parts of it.
func (c *copyCounter) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		c.call(e.AsCall())
	case ast.ListKind:
		c.literal(1, e.AsList().Size())
	case ast.MapKind:
		c.literal(2, e.AsMap().Size())
	case ast.StructKind:
		c.compare(len(e.AsStruct().Fields()))
	case ast.SelectKind:
		c.compare(1)
	case ast.ComprehensionKind:
		c.compare(comprehensionTypes)
	}
}

// compare counts comparisons of types.
func (c *copyCounter) compare(times int) { c.copies += times * c.variables }

// literal counts a list or map, each element of which has so many types.
func (c *copyCounter) literal(types, elements int) {
	if elements == 0 {
		c.variables += types
	}
	c.compare(types * elements)
}

func (c *copyCounter) call(call ast.CallExpr) {
	name := call.FunctionName()
	c.copies += patternWork * literalPatterns(call)
	function := c.functions[name]
	if function == nil || name == operators.LogicalAnd || name == operators.LogicalOr {
		c.compare(len(call.Args()))
		return
	}
	for _, overload := range function.OverloadDecls() {
		if overload.IsMemberFunction() == call.IsMemberFunction() {
			c.variables += len(overload.TypeParams())
			c.compare(1)
		}
	}
}
