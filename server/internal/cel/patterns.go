package cel

import (
	"regexp/syntax"

	"github.com/google/cel-go/common/ast"
)

// patternWork is the work of compiling one step of a regular expression, in copies: of 3 MB of text such as a{1000}
// the library makes 400,000,000 steps, and keeps each with 40 bytes.
const patternWork = 20

// patternFunctions are those that take a regular expression. One that is a literal is compiled with the expression.
var patternFunctions = map[string]bool{"matches": true, "find": true, "findAll": true}

// literalPatterns returns the steps of the regular expressions in a call that are compiled with it.
func literalPatterns(call ast.CallExpr) (steps int) {
	if !patternFunctions[call.FunctionName()] {
		return 0
	}
	for _, arg := range call.Args() {
		if arg.Kind() != ast.LiteralKind {
			continue
		}
		if text, ok := arg.AsLiteral().Value().(string); ok {
			steps += PatternSize(text)
		}
	}
	return steps
}

// PatternSize returns about how many steps the compiled form of a regular expression has. One that does not compile
// has none.
func PatternSize(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return stepsOf(parsed)
}

// stepsOf counts as the parser of package regexp does, which refuses 3,000,000 steps and a depth of 1,000.
func stepsOf(re *syntax.Regexp) int {
	steps := 1
	switch re.Op {
	case syntax.OpLiteral:
		steps = len(re.Rune)
	case syntax.OpCharClass:
		steps += len(re.Rune) / 16 // four bytes each, in one step
	}
	for _, part := range re.Sub {
		steps += stepsOf(part)
	}
	if re.Op != syntax.OpRepeat {
		return steps
	}
	if re.Max < 0 {
		return steps * max(1, re.Min)
	}
	return steps * max(1, re.Max)
}
