package levelwire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"
)

// handMade are the test files that look again and again by themselves, and why.
var handMade = map[string]string{
	"internal/testwatchdog/watchdog_test.go":     "it looks for as long as main takes, to race with it",
	"server/internal/apiserver/fanout_test.go":   "its benchmarks write at a pace, and see that connections are cut meanwhile",
	"server/internal/h2/pace_test.go":            "it counts the turns that a goroutine gets",
	"tests/relay/play_test.go":                   "it makes a fault now and then",
	"tests/peers/histories/storehistory_test.go": "it repeats a read of a store that fails on purpose",
	"tests/peers/histories/writer_test.go":       "it repeats a write of a server that fails on purpose",
	"tests/peers/informer/misbehaving_test.go":   "it reports what informers have come to, also if that is wrong",
	"tests/peers/kwok/kwok_test.go":              "it looks for a whole period, whether the cluster stays alive",
}

// TestPollsAreTestwaits: a test that waits for what other goroutines do calls package testwait. Its two
// functions ask for what stays true, and match what has happened; a loop of a test's own is where states
// are asked for that may pass between two looks.
func TestPollsAreTestwaits(t *testing.T) {
	found := map[string]bool{}
	everySource(t, func(path string, file *ast.File, at *token.FileSet) {
		if !pollsCount(path, file) || strings.HasPrefix(path, "internal/testwait/") || strings.HasPrefix(path, "benchmarks/") {
			return
		}
		tickers := tickersIn(file)
		ast.Inspect(file, func(node ast.Node) bool {
			body := loopOf(node)
			if body == nil || !polls(node, tickers) {
				return true
			}
			if found[path] = true; handMade[path] == "" {
				t.Errorf("%s looks again and again: call testwait.Stable, or testwait.Events for what may pass", at.Position(node.Pos()))
			}
			return false
		})
	})
	for path := range handMade {
		if !found[path] {
			t.Errorf("%s does not look again and again by itself any more: take it from the list", path)
		}
	}
}

// pollsCount reports whether the loops of a file are those of a test, in real time.
func pollsCount(path string, file *ast.File) bool {
	return strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "bench_test.go") && !strings.HasSuffix(path, "example_test.go") && !imports(file, "testing/synctest")
}

// loopOf returns the body of a loop, or nil.
func loopOf(node ast.Node) *ast.BlockStmt {
	switch loop := node.(type) {
	case *ast.ForStmt:
		return loop.Body
	case *ast.RangeStmt:
		return loop.Body
	}
	return nil
}

// tickersIn lists the variables that are assigned from time.NewTicker.
func tickersIn(file *ast.File) map[string]bool {
	tickers := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if assign, ok := node.(*ast.AssignStmt); ok && len(assign.Lhs) == 1 && isTime(assign.Rhs[0], "NewTicker") {
			if name, ok := assign.Lhs[0].(*ast.Ident); ok {
				tickers[name.Name] = true
			}
		}
		return true
	})
	return tickers
}

// polls reports whether a loop pauses between two looks, or gives up at a time. What it calls in other
// goroutines does not count.
func polls(loop ast.Node, tickers map[string]bool) (found bool) {
	ast.Inspect(loop, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			function, ok := node.Fun.(*ast.SelectorExpr)
			found = found || ok && (function.Sel.Name == "Gosched" || isTime(node, "Sleep") || isTime(node, "Tick") || isPause(node))
		case *ast.UnaryExpr:
			found = found || node.Op == token.ARROW && isTick(node.X, tickers)
		case *ast.IfStmt:
			found = found || calls(node.Cond, "Now", "Since") && calls(node.Body, "Fatal", "Fatalf", "FailNow")
		}
		return !found
	})
	return found
}

// isPause reports whether a call is time.After with so short a time that nothing gives up after it.
func isPause(call *ast.CallExpr) bool {
	if !isTime(call, "After") {
		return false
	}
	d, known := duration(call.Args[0], nil)
	return known && d < time.Second
}

// isTick reports whether something is the channel of a ticker.
func isTick(e ast.Expr, tickers map[string]bool) bool {
	channel, ok := e.(*ast.SelectorExpr)
	if !ok || channel.Sel.Name != "C" {
		return false
	}
	of, ok := channel.X.(*ast.Ident)
	return ok && tickers[of.Name]
}

// TestPollsGiveUp: a test that looks again and again has a limit, which package testwatchdog does not
// give it. A loop may also end by a channel. Benchmarks, and examples that are not run, do without.
func TestPollsGiveUp(t *testing.T) {
	everySource(t, func(path string, file *ast.File, at *token.FileSet) {
		if !pollsCount(path, file) {
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

// TestPollsAreFound tries the rule on loops.
func TestPollsAreFound(t *testing.T) {
	for loop, want := range map[string]bool{
		`for !is() { time.Sleep(d) }`:                                                   true,
		`for ; !is(); runtime.Gosched() { }`:                                            true,
		`ticker := time.NewTicker(d); for !is() { <-ticker.C }`:                         true,
		`ticker := time.NewTicker(d); for { select { case <-ticker.C: case <-done: } }`: true,
		`for range time.Tick(d) { look() }`:                                             true,
		`for { select { case <-time.After(20*time.Millisecond): case <-done: } }`:       true,
		`for { select { case <-changed: case <-time.After(3*time.Minute): } }`:          false,
		`for !is() { if time.Now().After(deadline) { t.Fatal("no") } }`:                 true,
		`for !is() { if time.Since(begun) > limit { break } }`:                          false,
		`for range 3 { go func() { time.Sleep(d) }() }`:                                 false,
		`for event := range events { use(event) }`:                                      false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x; func f() { "+loop+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		ast.Inspect(file, func(node ast.Node) bool {
			found = found || loopOf(node) != nil && polls(node, tickersIn(file))
			return true
		})
		if found != want {
			t.Errorf("%s: %v", loop, found)
		}
	}
}
