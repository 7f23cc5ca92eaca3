package levelwire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
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
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
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
