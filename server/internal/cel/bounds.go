package cel

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
)

// What makes an expression or its type several times as large when it is nested in itself:
// a map literal whose keys have the type of its values, and optMap and optFlatMap, which
// the parser expands to two copies of what they are called on. 30 of them in 400 bytes
// would keep the compiler busy for hours, and it cannot be interrupted.
const (
	maxComputedMaps = 8
	maxOptionalMaps = 7
)

// compile is env.Compile for expressions of bounded size. It returns the work of that, too.
func compile(env *cel.Env, expression string) (checked *cel.Ast, work int, issues *cel.Issues) {
	if err := checkOptionals(expression); err != nil {
		return nil, 0, err.issues(expression)
	}
	work = byteWork * len(expression)
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil, work, issues
	}
	n, tooComplex := checkParsed(env, parsed)
	if tooComplex != nil {
		return nil, work, tooComplex.issues(expression)
	}
	checked, issues = env.Check(parsed)
	if issues.Err() != nil {
		return nil, work + n, issues
	}
	return checked, work + n, nil
}

// checkParsed is for expressions that are not type-checked yet. It returns the copies of that.
func checkParsed(env *cel.Env, parsed *cel.Ast) (n int, err *complexityError) {
	if err := checkMaps(parsed); err != nil {
		return 0, err
	}
	if n = copies(env, parsed); n > maxCopies {
		return 0, &complexityError{"copies of types to compare", n, maxCopies}
	}
	return n, nil
}

// checkOptionals is for expressions that are not parsed yet.
func checkOptionals(expression string) *complexityError {
	if n := strings.Count(expression, "optMap") + strings.Count(expression, "optFlatMap"); n > maxOptionalMaps {
		return &complexityError{"uses of optMap and optFlatMap", n, maxOptionalMaps}
	}
	return nil
}

// checkMaps counts maps with computed keys.
func checkMaps(parsed *cel.Ast) *complexityError {
	n := 0
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.MapKind && hasComputedKey(e.AsMap()) {
			n++
		}
	}))
	if n > maxComputedMaps {
		return &complexityError{"maps with computed keys", n, maxComputedMaps}
	}
	return nil
}

func hasComputedKey(m ast.MapExpr) bool {
	for _, entry := range m.Entries() {
		if entry.AsMapEntry().Key().Kind() != ast.LiteralKind {
			return true
		}
	}
	return false
}

// complexityError is the error of an expression whose compilation would not end.
type complexityError struct {
	what     string
	n, limit int
}

// Error implements error.
func (e *complexityError) Error() string {
	return fmt.Sprintf("the expression is too complex: it has %d %s, and may have %d", e.n, e.what, e.limit)
}

func (e *complexityError) issues(expression string) *cel.Issues {
	errs := common.NewErrors(common.NewTextSource(expression))
	errs.ReportErrorString(common.NoLocation, e.Error()+": declare variables for parts of it")
	return cel.NewIssues(errs)
}
