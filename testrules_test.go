package levelwire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// TestTestsThatWaitAreWatched: a package whose tests wait for goroutines imports package
// testwatchdog, which ends the test binary when one of them hangs. Nothing else links it, or package
// testwait. Examples do without: they are copied to where neither can be imported.
func TestTestsThatWaitAreWatched(t *testing.T) {
	const watchdog, waiting = module + "/internal/testwatchdog", module + "/internal/testwait"
	waits, watched := map[string]string{}, map[string]bool{}
	everySource(t, func(file string, source *ast.File, at *token.FileSet) {
		folder := filepath.ToSlash(filepath.Dir(file))
		if !strings.HasSuffix(file, "_test.go") {
			for _, forTests := range []string{watchdog, waiting} {
				if imports(source, forTests) && !strings.HasPrefix(file, "tests/") {
					t.Errorf("%s imports %s, which is for tests", file, forTests)
				}
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

// withoutSeed are tests that choose at random without a seed, and why.
var withoutSeed = map[string]string{
	"tests/soak/pages_test.go": "many goroutines ask at once, in an order that no seed decides",
}

// TestRandomTestsHaveSeeds: a random test chooses by a source whose seed is constant, or is logged and can
// be given again, as package testseed does. The functions of package rand itself have none; Uint64 makes
// seeds.
func TestRandomTestsHaveSeeds(t *testing.T) {
	makesSources := []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Uint64"}
	everySource(t, func(path string, file *ast.File, at *token.FileSet) {
		if !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "bench_test.go") || !imports(file, "math/rand/v2") || withoutSeed[path] != "" {
			return
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			function, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || slices.Contains(makesSources, function.Sel.Name) {
				return true
			}
			if of, ok := function.X.(*ast.Ident); ok && of.Name == "rand" {
				t.Errorf("%s chooses without a seed: call testseed.New", at.Position(call.Pos()))
			}
			return true
		})
	})
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
		tests := !measures && (strings.Contains(recipe, "$(TEST)") || strings.Contains(strings.ReplaceAll(recipe, "$(GO) test -c ", ""), "$(GO) test") || strings.Contains(recipe, "./tests/hunt"))
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
