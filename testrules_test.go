package levelwire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// everySource calls visit for each Go file of all modules, tests, peers and benchmarks included.
func everySource(t *testing.T, visit func(path string, file *ast.File, at *token.FileSet)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			visit(filepath.ToSlash(path), file, fset)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool { return strings.Trim(spec.Path.Value, `"`) == path })
}

// TestChildrenEndWithTheirParent: what starts a process and goes on without waiting for its end does so
// with package childprocess, so that the process ends when this one is killed or panics.
func TestChildrenEndWithTheirParent(t *testing.T) {
	everySource(t, func(path string, file *ast.File, at *token.FileSet) {
		// envtest starts its processes itself.
		if imports(file, "sigs.k8s.io/controller-runtime/pkg/envtest") || !imports(file, "os/exec") || strings.HasPrefix(path, "internal/childprocess/") {
			return
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && len(call.Args) == 0 {
				if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Start" {
					t.Errorf("%s calls Start: use childprocess.Start, whose process ends with this one", at.Position(call.Pos()))
				}
			}
			if name, ok := node.(*ast.Ident); ok && name.Name == "Pdeathsig" {
				t.Errorf("%s sets Pdeathsig, which is about a thread: use childprocess.Start", at.Position(name.Pos()))
			}
			return true
		})
	})
}

// passes marks, with a reason, a limit that a test wants to pass.
const passes = "//passes: "

// TestLimitsAreGenerous: how long a test waits before it fails is a minute at least, which costs
// nothing while it passes, and is not reached because the machine has much else to do. A
// shorter time is one that the test waits for, and is marked as such. The same is true of the time
// that a test finds has gone by, and of the time of a watch in its path, also if it has a name. In
// bubbles of synctest, time is free.
func TestLimitsAreGenerous(t *testing.T) {
	named := namedDurations{}
	everySource(t, func(path string, file *ast.File, _ *token.FileSet) { named.declare(path, file) })
	everySource(t, func(path string, file *ast.File, at *token.FileSet) {
		if !strings.HasSuffix(path, "_test.go") || imports(file, "testing/synctest") || strings.HasPrefix(path, "benchmarks/") {
			return
		}
		marked := map[int]bool{}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				marked[at.Position(comment.Pos()).Line] = strings.HasPrefix(comment.Text, passes)
			}
		}
		elapsed, durations := elapsedIn(file), named.seenBy(path, file)
		ast.Inspect(file, func(node ast.Node) bool {
			if limit, ok := limitOf(node, elapsed, durations); ok && limit < time.Minute && !marked[at.Position(node.Pos()).Line] {
				t.Errorf("%s gives up after %v: take a minute or more, or end the line with %s and why the time passes", at.Position(node.Pos()), limit, strings.TrimSpace(passes))
			}
			return true
		})
	})
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
		limit, known := duration(node.Args[len(node.Args)-1], named)
		return limit, known && isLimit(node, limit)
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

// elapsedIn lists the variables of a file that are assigned from time.Since.
func elapsedIn(file *ast.File) map[string]bool {
	elapsed := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if assign, ok := node.(*ast.AssignStmt); ok && len(assign.Lhs) == 1 && isSince(assign.Rhs[0]) {
			if name, ok := assign.Lhs[0].(*ast.Ident); ok {
				elapsed[name.Name] = true
			}
		}
		return true
	})
	return elapsed
}

func isSince(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != "Since" {
		return false
	}
	of, ok := function.X.(*ast.Ident)
	return ok && of.Name == "time"
}

// isLimit reports whether a call's last argument, d, is for how long something is waited for.
// Less than a second of time.After is the pause before something is looked at again.
func isLimit(call *ast.CallExpr, d time.Duration) bool {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch function.Sel.Name {
	case "WithTimeout":
		of, ok := function.X.(*ast.Ident)
		return ok && of.Name == "context"
	case "After", "NewTimer":
		of, ok := function.X.(*ast.Ident)
		return ok && of.Name == "time" && d >= time.Second
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
	folder := filepath.ToSlash(filepath.Dir(path))
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
	maps.Copy(seen, n[filepath.ToSlash(filepath.Dir(file))])
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

// TestPollsGiveUp: a test that looks again and again has a limit, which package testwatchdog does not
// give it. A loop may also end by a channel. Benchmarks, and examples that are not run, do without.
func TestPollsGiveUp(t *testing.T) {
	everySource(t, func(path string, file *ast.File, at *token.FileSet) {
		isTest := strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "bench_test.go") && !strings.HasSuffix(path, "example_test.go")
		if !isTest || imports(file, "testing/synctest") {
			return
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if loop, ok := node.(*ast.ForStmt); ok && calls(loop, "Gosched", "Sleep") && !calls(loop, "Now", "Since", "Err") && !selects(loop) {
				t.Errorf("%s looks again and again, and never gives up: end it at a deadline, or with a context that has one", at.Position(loop.Pos()))
			}
			return true
		})
	})
}

// selects reports whether there is a select in a node.
func selects(in ast.Node) (found bool) {
	ast.Inspect(in, func(node ast.Node) bool {
		_, isSelect := node.(*ast.SelectStmt)
		found = found || isSelect
		return !found
	})
	return found
}

// calls reports whether there is a call of one of some functions or methods in a node.
func calls(in ast.Node, names ...string) (found bool) {
	ast.Inspect(in, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			function, ok := call.Fun.(*ast.SelectorExpr)
			found = found || ok && slices.Contains(names, function.Sel.Name)
		}
		return !found
	})
	return found
}

// TestTestsThatWaitAreWatched: a package whose tests wait for goroutines imports package
// testwatchdog, which ends the test binary when one of them hangs. Nothing else links it. Examples
// do without: whoever copies one cannot import it.
func TestTestsThatWaitAreWatched(t *testing.T) {
	const watchdog = module + "/internal/testwatchdog"
	waits, watched := map[string]string{}, map[string]bool{}
	everySource(t, func(file string, source *ast.File, at *token.FileSet) {
		folder := filepath.ToSlash(filepath.Dir(file))
		if !strings.HasSuffix(file, "_test.go") {
			if imports(source, watchdog) {
				t.Errorf("%s imports testwatchdog, which is for tests", file)
			}
			return
		}
		watched[folder] = watched[folder] || imports(source, watchdog) || module+"/"+folder == watchdog
		ast.Inspect(source, func(node ast.Node) bool {
			if isWait(node) && !strings.HasPrefix(folder, "examples/") {
				waits[folder] = at.Position(node.Pos()).String()
			}
			return waits[folder] == ""
		})
	})
	for folder, position := range waits {
		if !watched[folder] {
			t.Errorf("%s waits: import _ %q in a test of the package", position, watchdog)
		}
	}
}

// isWait reports whether a node receives from a channel, or calls Wait without arguments: of a
// sync.WaitGroup, a sync.Cond, and others.
func isWait(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.UnaryExpr:
		return node.Op == token.ARROW
	case *ast.CallExpr:
		method, ok := node.Fun.(*ast.SelectorExpr)
		return ok && method.Sel.Name == "Wait" && len(node.Args) == 0
	}
	return false
}

// TestTestsCheckInvariants: every target of the Makefile that runs tests builds them with the tag
// invariants, and none that builds or measures does.
func TestTestsCheckInvariants(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var checked []string
	recipes, target := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "CHECKED := "); ok {
			checked = strings.Fields(list)
		}
		if recipe, ok := strings.CutPrefix(line, "\t"); ok {
			recipes[target] += recipe
		} else if name, _, ok := strings.Cut(line, ":"); ok {
			target = name
		}
	}
	if !strings.Contains(string(text), "\n$(CHECKED): export GOFLAGS += -tags=invariants\n") || len(checked) == 0 {
		t.Error("the Makefile does not give the tag invariants to the targets of CHECKED")
	}
	for _, name := range checked {
		if recipes[name] == "" {
			t.Errorf("CHECKED names %s, which is no target", name)
		}
	}
	for name, recipe := range recipes {
		measures := strings.Contains(recipe, " -bench ")
		tests := !measures && (strings.Contains(recipe, "$(TEST)") || strings.Contains(recipe, "$(GO) test") || strings.Contains(recipe, "./tests/hunt"))
		if is := slices.Contains(checked, name); is != tests {
			t.Errorf("the Makefile's target %s runs tests: %v; it is in CHECKED: %v", name, tests, is)
		}
	}
	// -tags replaces those of GOFLAGS.
	for flag := range strings.FieldsSeq(string(text)) {
		if tags, ok := strings.CutPrefix(flag, "-tags="); ok && !slices.Contains(strings.Split(tags, ","), "invariants") {
			t.Errorf("the Makefile has %s without the tag invariants", flag)
		}
	}
}

// TestLogsAreNotDiscarded: who gives no logger gets slog.Default(), everywhere. Only what tests and
// benchmarks run discards a log.
func TestLogsAreNotDiscarded(t *testing.T) {
	discard := regexp.MustCompile(`^(levelwiretest|recording|tests|benchmarks)/|_test\.go$`)
	everySource(t, func(path string, file *ast.File, at *token.FileSet) {
		if discard.MatchString(path) {
			return
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if s, ok := node.(*ast.SelectorExpr); ok && s.Sel.Name == "DiscardHandler" {
				t.Errorf("%s: a logger that discards: nil is slog.Default()", at.Position(s.Pos()))
			}
			return true
		})
	})
}
