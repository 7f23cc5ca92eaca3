package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// binary is the test binary of a package.
type binary struct {
	pkg  string
	path string
	dir  string // of the package: go test runs it there
}

// modules are the folders from which all packages with tests can be named.
var modules = []struct {
	dir      string
	packages []string
}{
	{".", []string{"./...", "./client/...", "./internal/..."}},
	{"tests/peers", []string{"./..."}},
	{"adapters/clientgo", []string{"./..."}},
	{"benchmarks", []string{"./..."}},
}

// build builds the test binaries of packages, which are named from the current folder, or
// of all modules.
func build(ctx context.Context, folder string, race bool, packages []string) ([]binary, error) {
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if len(packages) > 0 {
		return buildIn(ctx, ".", folder, race, packages)
	}
	var all []binary
	for _, m := range modules {
		built, err := buildIn(ctx, m.dir, folder, race, m.packages)
		if err != nil {
			return nil, fmt.Errorf("in %s: %w", m.dir, err)
		}
		all = append(all, built...)
	}
	return all, nil
}

// keep has go test keep the test binaries that it would run, each under the name of its
// package's folder. So one go command links several at once, and without what a debugger
// needs; go test -c refuses two packages with one name.
const keep = `sh -c 'to="$HUNT_BINARIES/$(pwd | tr / -).test"; ln -f "$1" "$to" 2>/dev/null || cp "$1" "$to"' keep`

// buildIn builds in a module's folder.
func buildIn(ctx context.Context, dir, folder string, race bool, packages []string) ([]binary, error) {
	const withTests = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", withTests}, packages...)...)
	list.Dir, list.Stderr = dir, os.Stderr
	listed, err := list.Output()
	if err != nil {
		return nil, err
	}
	var built []binary
	args := []string{"test", "-vet=off", "-count=1", "-exec=" + keep}
	if race {
		args = append(args, "-race")
	}
	for lines := bufio.NewScanner(bytes.NewReader(listed)); lines.Scan(); {
		pkg, at, _ := strings.Cut(lines.Text(), " ")
		built = append(built, binary{pkg: pkg, path: filepath.Join(folder, strings.ReplaceAll(at, "/", "-")+".test"), dir: at})
		args = append(args, pkg)
	}
	if len(built) == 0 {
		return nil, nil
	}
	compile := exec.CommandContext(ctx, "go", args...)
	var said bytes.Buffer // "ok" of tests that were not run, unless something fails
	compile.Dir, compile.Stdout, compile.Stderr = dir, &said, os.Stderr
	compile.Env = append(os.Environ(), "HUNT_BINARIES="+folder)
	if err := compile.Run(); err != nil {
		return nil, fmt.Errorf("building the tests: %w\n%s", err, said.Bytes())
	}
	return built, nil
}

// testTimeout is how long a run may take: much longer than one takes under any load.
const testTimeout = 20 * time.Minute

// run runs all tests of the binary that are not long. As with go test, a test that ends the
// process has failed, also with 0. What it starts ends with it, also if
// ctx ends.
func (b binary) run(ctx context.Context) (output []byte, err error) {
	cmd := exec.CommandContext(ctx, b.path, "-test.paniconexit0", "-test.short", "-test.timeout="+testTimeout.String())
	cmd.Dir = b.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	cmd.WaitDelay = 10 * time.Second // for a child that keeps the output open
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = childprocess.RunTests(cmd)
	if cmd.Process != nil {
		_ = group() // none is left of a run that has ended well
	}
	return said.Bytes(), err
}
