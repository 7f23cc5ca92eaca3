package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// testPackage is a package with tests that link envtest.
type testPackage struct {
	name   string // relative to the module, as in "./pkg/controller"
	path   string
	folder string
	ginkgo bool // its tests take the flags of ginkgo
}

const (
	envtestPackage = "sigs.k8s.io/controller-runtime/pkg/envtest"
	ginkgoPackage  = "github.com/onsi/ginkgo/v2"
)

// packages lists the packages of a suite that are run. The go command fetches what their tests
// import.
func (r *runner) packages(ctx context.Context, s *suite, folder string) (run []testPackage, err error) {
	args := []string{"list", "-test", "-json=ImportPath,Dir,Deps,ForTest"}
	if s.Tags != "" {
		args = append(args, "-tags="+s.Tags)
	}
	output, err := r.goCommand(ctx, folder, append(args, s.Packages...)...)
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n  %s", folder, err, whatToDo(err.Error()))
	}
	all, err := parseList(bytes.NewReader(output), s.Module)
	if err != nil {
		return nil, err
	}
	for _, l := range s.LeftOut {
		if !slices.ContainsFunc(all, func(p testPackage) bool { return p.name == l.Package }) {
			return nil, fmt.Errorf("suites.yaml leaves out something of %s, which %s %s does not have, or not with envtest", l.Package, s.Module, s.Version)
		}
	}
	run = slices.DeleteFunc(all, func(p testPackage) bool {
		_, _, whole := s.leavesOut(p.name)
		return whole
	})
	if len(run) == 0 {
		return nil, fmt.Errorf("no package of %s has tests that link envtest: correct the packages in suites.yaml", strings.Join(s.Packages, " "))
	}
	return run, nil
}

// parseList reads what go list -test -json says.
func parseList(list io.Reader, module string) (found []testPackage, err error) {
	for decoder := json.NewDecoder(list); ; {
		var listed struct {
			ImportPath, Dir, ForTest string
			Deps                     []string
		}
		switch err := decoder.Decode(&listed); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("reading the answer of go list: %w", err)
		}
		// The main package of a test binary depends on all that is in it.
		path, isTest := strings.CutSuffix(listed.ImportPath, ".test")
		if !isTest || listed.ForTest != "" || !slices.ContainsFunc(listed.Deps, isPackage(envtestPackage)) {
			continue
		}
		found = append(found, testPackage{
			name: "." + strings.TrimPrefix(path, module), path: path, folder: listed.Dir,
			ginkgo: slices.ContainsFunc(listed.Deps, isPackage(ginkgoPackage)),
		})
	}
}

// isPackage tells whether a dependency is a package, also if it is compiled for a test:
// then its import path ends with "[X.test]".
func isPackage(path string) func(dependency string) bool {
	return func(dependency string) bool {
		dependency, _, _ = strings.Cut(dependency, " ")
		return dependency == path
	}
}
