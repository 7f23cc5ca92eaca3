package cel

import (
	"maps"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// maxGrowth is how often the value of an expression may contain a value that it is made of. [1].map(a, [a, a]).map(b,
// [b, b]) contains the 1 four times: a value that takes no memory, since its parts are shared, and doubles with each
// 15 bytes of the expression for whatever goes through it, such as == or the conversion to JSON. That cannot
// be interrupted, and costs are counted by the length of lists only.
const maxGrowth = 1_000

// growth says how often a value contains others: variables, or the elements that a macro has seen.
type growth map[string]int

func (g growth) add(other growth) growth {
	if len(g) == 0 {
		return other
	}
	if len(other) == 0 {
		return g
	}
	sum := maps.Clone(g)
	for name, n := range other {
		sum[name] = min(sum[name]+n, maxGrowth+1)
	}
	return sum
}

func (g growth) most() (n int) {
	for _, times := range g {
		n = max(n, times)
	}
	return n
}

// checkGrowth is for expressions that are not type-checked yet. variables are those that are known to grow: how often
// each may contain a part of what it is made of. It returns that of the expression.
func checkGrowth(parsed *cel.Ast, variables map[string]int) (n int, err *complexityError) {
	g := grower{variables: variables}
	if g.most = max(g.most, g.of(parsed.NativeRep().Expr(), nil).most()); g.most > maxGrowth {
		return 0, &complexityError{"times a part of its value in the value", g.most, maxGrowth}
	}
	return max(1, g.most), nil
}

// grower computes the growth of expressions; most is the largest that any part of the whole has.
type grower struct {
	variables map[string]int
	macros    int // until now
	most      int
}

// pure are the functions whose value contains nothing of what they are given.
var pure = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, operators.In: true, operators.OldIn: true,
	operators.NotStrictlyFalse: true, operators.OldNotStrictlyFalse: true, //nolint:staticcheck // expressions that were parsed before have it
}

// scope has the growth of the variables of macros.
type scope struct {
	name  string
	value growth
	outer *scope
}

func (s *scope) find(name string) growth {
	for ; s != nil; s = s.outer {
		if s.name == name {
			return s.value
		}
	}
	return growth{name: 1}
}

// of returns the growth of an expression.
func (g *grower) of(e ast.Expr, in *scope) growth {
	if g.most > maxGrowth {
		return nil
	}
	value := g.compute(e, in)
	g.most = max(g.most, value.most())
	return value
}

func (g *grower) compute(e ast.Expr, in *scope) growth {
	switch e.Kind() {
	case ast.IdentKind:
		return in.find(e.AsIdent())
	case ast.SelectKind:
		return g.selected(e.AsSelect(), in)
	case ast.ListKind:
		return g.sum(e.AsList().Elements(), in)
	case ast.MapKind:
		var sum growth
		for _, entry := range e.AsMap().Entries() {
			g.of(entry.AsMapEntry().Key(), in)
			sum = sum.add(g.of(entry.AsMapEntry().Value(), in))
		}
		return sum
	case ast.StructKind:
		var sum growth
		for _, field := range e.AsStruct().Fields() {
			sum = sum.add(g.of(field.AsStructField().Value(), in))
		}
		return sum
	case ast.CallKind:
		return g.called(e.AsCall(), in)
	case ast.ComprehensionKind:
		return g.folded(e.AsComprehension(), in)
	}
	return nil
}

func (g *grower) sum(list []ast.Expr, in *scope) (sum growth) {
	for _, e := range list {
		sum = sum.add(g.of(e, in))
	}
	return sum
}

// selected is a part of what is selected from, or a variable of a policy.
func (g *grower) selected(s ast.SelectExpr, in *scope) growth {
	of := g.of(s.Operand(), in)
	if s.IsTestOnly() {
		return nil
	}
	if s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == "variables" {
		return growth{"variables." + s.FieldName(): max(1, g.variables[s.FieldName()])}
	}
	return of
}

// called: a function may return all that it is given.
func (g *grower) called(call ast.CallExpr, in *scope) growth {
	sum := g.sum(call.Args(), in)
	if call.IsMemberFunction() {
		sum = sum.add(g.of(call.Target(), in))
	}
	if pure[call.FunctionName()] {
		return nil
	}
	return sum
}

// folded is what a macro makes: its step sees an element of the range, and what was made before, once.
func (g *grower) folded(c ast.ComprehensionExpr, in *scope) growth {
	of := g.of(c.IterRange(), in)
	begin := g.of(c.AccuInit(), in)
	g.macros++
	element := of.add(growth{strconv.Itoa(g.macros): 1})
	in = &scope{c.IterVar(), element, in}
	if c.HasIterVar2() {
		in = &scope{c.IterVar2(), element, in}
	}
	g.of(c.LoopCondition(), &scope{c.AccuVar(), begin, in})
	step := g.of(c.LoopStep(), &scope{c.AccuVar(), begin, in})
	return g.of(c.Result(), &scope{c.AccuVar(), begin.add(step), in})
}
