package levelwire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestEvaluationIsOrdered: no return or assignment has a variable as one value, and passes its address to a call for
// another one, as "return form, fill(&form)" does. Go orders the calls of a statement, but not the reads of variables
// beside them, so the next compiler may return the form from before the call.
func TestEvaluationIsOrdered(t *testing.T) {
	everySource(t, func(_ string, file *ast.File, at *token.FileSet) {
		for _, found := range unorderedReads(file) {
			t.Errorf("%s reads %s, whose address a call in the same statement has: Go does not say which comes first; put the call in a statement of its own",
				at.Position(found.pos), found.path)
		}
	})
}

// TestUnorderedReads: what TestEvaluationIsOrdered finds, and what it allows.
func TestUnorderedReads(t *testing.T) {
	for statement, want := range map[string]string{
		"return form, fill(&form)":                    "form",
		"return fill(&form), form":                    "form",
		"return form.Media, fill(&form)":              "form.Media",
		"return form, fill(&form.Media)":              "form",
		"return form[1], fill(&form)":                 "form",
		"return *n, wrap(fill(&n))":                   "n",
		"return pair{first: n}, fill(&n)":             "n",
		"return n, count > 0 && fill(&n)":             "n",
		"return n + fill(&n)":                         "n",
		"return n == fill(&n)":                        "n",
		"a, b := n, fill(&n)":                         "n",
		"n += fill(&n)":                               "n",
		"list[n] = fill(&n)":                          "n",
		"var a, b = n, fill(&n)":                      "n",
		"func() { _, _ = n, fill(&n) }()":             "n",
		"return fill(&n)":                             "",
		"return twice(n), fill(&n)":                   "", // n is read before its call, and the calls are in order
		"return both(n, &n), nil":                     "",
		"return fill(&n) && n > 0":                    "", // the right side is evaluated after the left one
		"return n > 0 || fill(&n)":                    "",
		"return form.Media, fill(&form.Shape)":        "",
		"return other, fill(&form)":                   "",
		"return pair{n: other}, fill(&n)":             "",
		"return &n, fill(&n)":                         "",
		"return func() int { return n }, fill(&n)":    "",
		"n = fill(&n)":                                "",
		"n, err = fill(&n)":                           "",
		"form.Media = fill(&form)":                    "",
		"ok := fill(&n); return n, ok":                "",
		"if err := fill(&n); n > 0 { return n, err }": "",
		"return n, func() int { return fill(&n) }":    "",
	} {
		source := "package p\nfunc f() {\n" + statement + "\n}"
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(statement, err)
		}
		var got []string
		for _, found := range unorderedReads(file) {
			got = append(got, found.path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: found %q, want %q", statement, got, want)
		}
	}
}

// variable is a variable, or a field of one, in an expression.
type variable struct {
	path string
	pos  token.Pos
}

// unorderedReads returns the variables in a file that Go may read before or after a call that can change them.
func unorderedReads(file *ast.File) (found []variable) {
	ast.Inspect(file, func(node ast.Node) bool {
		values := valuesOf(node)
		for i, value := range values {
			for _, read := range readsOf(value) {
				for j, other := range values {
					if i != j && passesAddress(other, read.path) {
						found = append(found, read)
					}
				}
			}
		}
		return true
	})
	return found
}

// valuesOf returns what a return or an assignment evaluates, in any order as far as its variables are concerned.
func valuesOf(node ast.Node) (list []ast.Expr) {
	var values []ast.Expr
	switch node := node.(type) {
	case *ast.ReturnStmt:
		values = node.Results
	case *ast.ValueSpec:
		values = node.Values
	case *ast.AssignStmt:
		values = slices.Concat(assigned(node), node.Rhs)
	}
	for _, value := range values {
		list = append(list, sides(value)...)
	}
	return list
}

// assigned are the parts of an assignment's left side that are read.
func assigned(node *ast.AssignStmt) (list []ast.Expr) {
	for _, left := range node.Lhs {
		switch element, indexed := left.(*ast.IndexExpr); {
		case node.Tok != token.ASSIGN && node.Tok != token.DEFINE:
			list = append(list, left)
		case indexed:
			list = append(list, element.Index)
		}
	}
	return list
}

// sides returns both sides of an arithmetic expression or a comparison. Those of && and || are in order.
func sides(value ast.Expr) []ast.Expr {
	if both, ok := value.(*ast.BinaryExpr); ok && both.Op != token.LAND && both.Op != token.LOR {
		return append(sides(both.X), sides(both.Y)...)
	}
	return []ast.Expr{value}
}

// readsOf returns the variables that a value reads by itself, and not for a call.
func readsOf(value ast.Expr) (list []variable) {
	ast.Inspect(value, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr, *ast.FuncLit:
			return false
		case *ast.UnaryExpr:
			return node.Op != token.AND || pathOf(node.X) == ""
		case *ast.KeyValueExpr:
			list = append(list, readsOf(node.Value)...)
			return false // the key is the name of a field, mostly
		case ast.Expr:
			if path := pathOf(node); path != "" {
				list = append(list, variable{path, node.Pos()})
				return false
			}
		}
		return true
	})
	return list
}

// passesAddress reports whether a value passes the address of a variable, of a field of it, or of what it is a field of, to a
// call.
func passesAddress(value ast.Expr, path string) (found bool) {
	ast.Inspect(value, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			found = found || slices.ContainsFunc(node.Args, func(arg ast.Expr) bool {
				address, ok := arg.(*ast.UnaryExpr)
				return ok && address.Op == token.AND && overlap(pathOf(address.X), path)
			})
		}
		return !found
	})
	return found
}

// overlap reports whether one path is the other, or a field below it.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || a != "" && strings.HasPrefix(b, a+".")
}

// pathOf returns a variable, or a field of one, as it is written; "" for other expressions.
func pathOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if of := pathOf(e.X); of != "" {
			return of + "." + e.Sel.Name
		}
	}
	return ""
}
