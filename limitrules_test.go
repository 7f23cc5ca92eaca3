package levelwire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// passes marks, with a reason, a limit that a test wants to pass.
const passes = "//passes: "

// TestLimitsAreGenerous: how long a test waits before it fails is a minute at least, which costs
// nothing while it passes, and is not reached because the machine has much else to do. A
// shorter time is one that the test waits for, and is marked as such. The same is true of the time
// that a test finds has gone by, and of the time of a watch in its path, also if it has a name. In
// bubbles of synctest, time is free.
func TestLimitsAreGenerous(t *testing.T) {
	rules := newLimitRules()
	everySource(t, func(path string, file *ast.File, _ *token.FileSet) {
		rules.declare(path, file)
	})
	everySource(t, func(path string, file *ast.File, at *token.FileSet) {
		if !isTestCode(path) {
			return
		}
		marked := map[int]bool{}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				marked[at.Position(comment.Pos()).Line] = strings.HasPrefix(comment.Text, passes)
			}
		}
		for limit := range rules.limitsIn(path, file) {
			if limit.d < time.Minute && !marked[at.Position(limit.at).Line] {
				t.Errorf("%s gives up after %v: take a minute or more, or end the line with %s and why the time passes", at.Position(limit.at), limit.d, strings.TrimSpace(passes))
			}
		}
	})
}

// isTestCode reports whether a file is for tests alone.
func isTestCode(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "storage/storagetest/") || strings.HasPrefix(path, "tests/workload/")
}

// limitRules is what limits of time may be called in any package, and what makes time free.
type limitRules struct {
	named      namedDurations
	parameters limitParameters
	bubbles    map[string][]string // the functions that run others in bubbles of synctest: by folder
}

func newLimitRules() limitRules {
	return limitRules{named: namedDurations{}, parameters: limitParameters{}, bubbles: map[string][]string{}}
}

// declare adds what a file declares.
func (r limitRules) declare(path string, file *ast.File) {
	r.named.declare(path, file)
	r.parameters.declare(path, file)
	if !imports(file, "testing/synctest") {
		return
	}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && calls(function, "Test") {
			r.bubbles[folderOf(path)] = append(r.bubbles[folderOf(path)], function.Name.Name)
		}
	}
}

// limit is how long something waits, and where.
type limit struct {
	d  time.Duration
	at token.Pos
}

// limitsIn returns the limits of a file that are of real time. Of a file that has bubbles of synctest
// these are those of the tests without one: what is called in which of them is not known of the others.
func (r limitRules) limitsIn(path string, file *ast.File) iter.Seq[limit] {
	bubbles, top := imports(file, "testing/synctest"), r.named.seenBy(path, file)
	return func(yield func(limit) bool) {
		for _, declaration := range file.Decls {
			function, isFunction := declaration.(*ast.FuncDecl)
			if bubbles && !isFunction || isFunction && (bubbles && !strings.HasPrefix(function.Name.Name, "Test") || r.inBubble(path, function)) {
				continue
			}
			named := top
			if isFunction {
				named = maps.Clone(top)
				addAssigned(named, function)
			}
			elapsed, parameters, goesOn := elapsedIn(declaration), r.parameters[folderOf(path)], true
			ast.Inspect(declaration, func(node ast.Node) bool {
				d, ok := limitOf(node, elapsed, named)
				if !ok {
					d, ok = parameters.limitOf(node, named)
				}
				if goesOn = goesOn && (!ok || yield(limit{d, node.Pos()})); !goesOn {
					return false
				}
				return true
			})
		}
	}
}

// watchTime is how long a watch lasts, as a path says it.
var watchTime = regexp.MustCompile("[?&\"`]timeoutSeconds=([0-9]+)")

// limitOf returns for how long a node waits, or how long it finds that something may have taken.
// elapsed are the variables that have such a time, and named are durations by their names.
func limitOf(node ast.Node, elapsed map[string]bool, named map[string]time.Duration) (limit time.Duration, ok bool) {
	switch node := node.(type) {
	case *ast.CallExpr:
		if len(node.Args) == 0 {
			return 0, false
		}
		limit, known := duration(node.Args[limitArgument(node)], named)
		return limit, known && isLimit(node, limit)
	case *ast.CompositeLit: // http.Client{Timeout: limit}
		return clientTimeout(node, named)
	case *ast.BinaryExpr: // took > limit
		name, isVariable := node.X.(*ast.Ident)
		limit, known := duration(node.Y, named)
		return limit, known && (node.Op == token.GTR || node.Op == token.GEQ) && (isVariable && elapsed[name.Name] || isSince(node.X))
	case *ast.ForStmt: // time.Since(begun) < limit
		if node.Cond == nil {
			return 0, false
		}
		ast.Inspect(node.Cond, func(in ast.Node) bool {
			if goesOn, isBinary := in.(*ast.BinaryExpr); isBinary && (goesOn.Op == token.LSS || goesOn.Op == token.LEQ) && isSince(goesOn.X) {
				limit, ok = duration(goesOn.Y, named)
			}
			return !ok
		})
		return limit, ok
	case *ast.BasicLit:
		if found := watchTime.FindStringSubmatch(node.Value); node.Kind == token.STRING && found != nil {
			seconds, err := strconv.Atoi(found[1])
			return time.Duration(seconds) * time.Second, err == nil && seconds > 0
		}
	}
	return 0, false
}

// inBubble reports whether a function is one that runs others in bubbles, or calls one.
func (r limitRules) inBubble(path string, function *ast.FuncDecl) bool {
	return slices.ContainsFunc(r.bubbles[folderOf(path)], func(name string) bool {
		return name == function.Name.Name || mentions(function, name)
	})
}

// limitArgument is the index of the argument of a call that may be a limit.
func limitArgument(call *ast.CallExpr) int {
	if function, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) > 1 {
		switch function.Sel.Name {
		case "WithTimeoutCause":
			return 1
		case "AfterFunc":
			return 0
		}
	}
	return len(call.Args) - 1
}

// clientTimeout returns the limit of an http.Client.
func clientTimeout(literal *ast.CompositeLit, named map[string]time.Duration) (limit time.Duration, ok bool) {
	of, isSelector := literal.Type.(*ast.SelectorExpr)
	if !isSelector || of.Sel.Name != "Client" {
		return 0, false
	}
	for _, element := range literal.Elts {
		if field, isField := element.(*ast.KeyValueExpr); isField {
			if key, isName := field.Key.(*ast.Ident); isName && key.Name == "Timeout" {
				return duration(field.Value, named)
			}
		}
	}
	return 0, false
}

// elapsedIn lists the variables that are assigned from time.Since.
func elapsedIn(in ast.Node) map[string]bool {
	elapsed := map[string]bool{}
	ast.Inspect(in, func(node ast.Node) bool {
		if assign, ok := node.(*ast.AssignStmt); ok && len(assign.Lhs) == 1 && isSince(assign.Rhs[0]) {
			if name, ok := assign.Lhs[0].(*ast.Ident); ok {
				elapsed[name.Name] = true
			}
		}
		return true
	})
	return elapsed
}

func isSince(e ast.Expr) bool { return isTime(e, "Since") }

// isTime reports whether an expression calls a function of package time.
func isTime(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != name {
		return false
	}
	of, ok := function.X.(*ast.Ident)
	return ok && of.Name == "time"
}

// isLimit reports whether an argument of a call, d, is for how long something is waited for.
// Less than a second of time.After is the pause before something is looked at again.
func isLimit(call *ast.CallExpr, d time.Duration) bool {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch function.Sel.Name {
	case "WithTimeout", "WithTimeoutCause":
		of, ok := function.X.(*ast.Ident)
		return ok && of.Name == "context"
	case "After", "NewTimer":
		of, ok := function.X.(*ast.Ident)
		return ok && of.Name == "time" && d >= time.Second
	case "AfterFunc": // a context's end, or that of a process; other functions are what happens meanwhile
		end, ok := call.Args[len(call.Args)-1].(*ast.Ident)
		return ok && (end.Name == "cancel" || end.Name == "stop")
	case "Add": // time.Now().Add, the deadline of a connection or a loop
		now, ok := function.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		of, ok := now.Fun.(*ast.SelectorExpr)
		return ok && of.Sel.Name == "Now" && len(now.Args) == 0
	}
	return false
}

// namedDurations are the constants and variables of all packages that begin as durations: by the
// folder of the package, and by their names.
type namedDurations map[string]map[string]time.Duration

// declare adds what a file declares at its top level.
func (n namedDurations) declare(path string, file *ast.File) {
	folder := folderOf(path)
	if n[folder] == nil {
		n[folder] = map[string]time.Duration{}
	}
	for _, declaration := range file.Decls {
		if list, ok := declaration.(*ast.GenDecl); ok {
			addDurations(n[folder], list)
		}
	}
}

// addDurations adds what a list of constants or variables has.
func addDurations(to map[string]time.Duration, list *ast.GenDecl) {
	for _, spec := range list.Specs {
		values, ok := spec.(*ast.ValueSpec)
		if !ok || len(values.Names) != len(values.Values) {
			continue
		}
		for i, name := range values.Names {
			if d, known := duration(values.Values[i], to); known && d >= time.Microsecond { // less is a number
				to[name.Name] = d
			}
		}
	}
}

// seenBy returns the durations by the names that a file has for them, those within functions included.
func (n namedDurations) seenBy(file string, source *ast.File) map[string]time.Duration {
	seen := map[string]time.Duration{}
	maps.Copy(seen, n[folderOf(file)])
	for _, spec := range source.Imports {
		folder := strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
		for name, d := range n[folder] {
			seen[path.Base(folder)+"."+name] = d
		}
	}
	ast.Inspect(source, func(node ast.Node) bool {
		if list, ok := node.(*ast.GenDecl); ok {
			addDurations(seen, list)
		}
		return true
	})
	return seen
}

func folderOf(path string) string { return filepath.ToSlash(filepath.Dir(path)) }

// addAssigned adds the variables of a function that are only ever given one duration.
func addAssigned(to map[string]time.Duration, function *ast.FuncDecl) {
	times := map[string]int{}
	ast.Inspect(function, func(node ast.Node) bool {
		assign, ok := node.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range assign.Lhs {
			name, isName := left.(*ast.Ident)
			if !isName {
				continue
			}
			times[name.Name]++
			delete(to, name.Name)
			if assign.Tok != token.DEFINE || len(assign.Lhs) != len(assign.Rhs) || times[name.Name] > 1 {
				continue
			}
			if d, known := duration(assign.Rhs[i], to); known && d >= time.Microsecond { // less is a number
				to[name.Name] = d
			}
		}
		return true
	})
}

// limitParameters are the functions and methods of test code that take a limit, after which they fail the
// test: by folder.
type limitParameters map[string]functionLimits

// functionLimits has the index of the parameter that is a limit, by the function's name.
type functionLimits map[string]int

// declare adds the functions of a file that pass a parameter on as a limit.
func (l limitParameters) declare(path string, file *ast.File) {
	if !isTestCode(path) {
		return
	}
	folder := folderOf(path)
	if l[folder] == nil {
		l[folder] = functionLimits{}
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil || !calls(function.Body, "Fatal", "Fatalf", "FailNow", "Error", "Errorf") {
			continue
		}
		index := 0
		for _, field := range function.Type.Params.List {
			for _, name := range field.Names {
				if isDuration(field.Type) && limits(function.Body, name.Name) {
					l[folder][function.Name.Name] = index
				}
				index++
			}
		}
	}
}

func isDuration(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Duration"
}

// limits reports whether what has a name is a limit in a body.
func limits(body *ast.BlockStmt, name string) (found bool) {
	named := map[string]time.Duration{name: time.Second}
	ast.Inspect(body, func(node ast.Node) bool {
		if _, ok := node.(*ast.BasicLit); !ok {
			_, is := limitOf(node, nil, named)
			found = found || is && mentions(node, name)
		}
		return !found
	})
	return found
}

// mentions reports whether a name is in a node.
func mentions(in ast.Node, name string) (found bool) {
	ast.Inspect(in, func(node ast.Node) bool {
		ident, ok := node.(*ast.Ident)
		found = found || ok && ident.Name == name
		return !found
	})
	return found
}

// limitOf returns the limit that a call gives to a function of the folder.
func (l functionLimits) limitOf(node ast.Node, named map[string]time.Duration) (limit time.Duration, ok bool) {
	call, isCall := node.(*ast.CallExpr)
	if !isCall {
		return 0, false
	}
	name := ""
	switch function := call.Fun.(type) {
	case *ast.Ident:
		name = function.Name
	case *ast.SelectorExpr:
		name = function.Sel.Name
	}
	index, takes := l[name]
	if !takes || index >= len(call.Args) {
		return 0, false
	}
	return duration(call.Args[index], named)
}

// duration evaluates n*time.Second and the like, and the durations that have names.
func duration(e ast.Expr, named map[string]time.Duration) (d time.Duration, known bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return duration(e.X, named)
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return time.Duration(n), e.Kind == token.INT && err == nil
	case *ast.Ident:
		d, known = named[e.Name]
		return d, known
	case *ast.SelectorExpr:
		of, ok := e.X.(*ast.Ident)
		if !ok {
			return 0, false
		}
		if of.Name != "time" {
			d, known = named[of.Name+"."+e.Sel.Name]
			return d, known
		}
		d, known = map[string]time.Duration{
			"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
			"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
		}[e.Sel.Name]
		return d, known
	case *ast.BinaryExpr:
		x, knownX := duration(e.X, named)
		y, knownY := duration(e.Y, named)
		if !knownX || !knownY {
			return 0, false
		}
		switch e.Op {
		case token.MUL:
			return x * y, true
		case token.ADD:
			return x + y, true
		case token.SUB:
			return x - y, true
		case token.QUO:
			return x / max(y, 1), true
		}
	}
	return 0, false
}

// TestLimitsAreFound tries the rule on sources: after each, the seconds of the limits that it finds.
func TestLimitsAreFound(t *testing.T) {
	for source, want := range map[string][]int{
		`func TestX() { context.WithTimeout(ctx, 2*time.Second) }`:                                                                                    {2},
		`func TestX() { limit := 5*time.Second; context.WithTimeout(ctx, limit) }`:                                                                    {5},
		`func TestX() { limit := 5*time.Second; limit = other(); context.WithTimeout(ctx, limit) }`:                                                   nil,
		`func TestX() { context.WithTimeoutCause(ctx, 7*time.Second, err) }`:                                                                          {7},
		`func TestX() { time.AfterFunc(3*time.Second, cancel) }`:                                                                                      {3},
		`func TestX() { time.AfterFunc(3*time.Second, func() { x() }) }`:                                                                              nil,
		`func TestX() { use(http.Client{Timeout: 4*time.Second}) }`:                                                                                   {4},
		`func TestX() { use(&http.Client{Transport: x}) }`:                                                                                            nil,
		`func TestX() { waitFor(9*time.Second, x) }; func waitFor(d time.Duration, x int) { <-time.After(d); t.Fatal(x) }`:                            {9},
		`func TestX() { pause(9*time.Second) }; func pause(d time.Duration) { time.Sleep(d) }`:                                                        nil,
		`import "testing/synctest"; func TestX() { synctest.Test(t, f); context.WithTimeout(ctx, time.Second) }`:                                      nil,
		`import "testing/synctest"; func f() { context.WithTimeout(ctx, time.Second) }`:                                                               nil,
		`import "testing/synctest"; func TestX() { context.WithTimeout(ctx, time.Second) }`:                                                           {1},
		`import "testing/synctest"; func TestX() { run(time.Second) }; func run(d time.Duration) { synctest.Test(t, f); <-time.After(d); t.Fatal() }`: nil,
		`func TestX() { if took := time.Since(begun); took > 8*time.Second { } }`:                                                                     {8},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x; "+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		rules, got := newLimitRules(), []int(nil)
		rules.declare("x_test.go", file)
		for limit := range rules.limitsIn("x_test.go", file) {
			got = append(got, int(limit.d/time.Second))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", source, got, want)
		}
	}
}
