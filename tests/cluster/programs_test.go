//go:build linux

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// former is the release of etcd that a cluster is upgraded from.
const former = "v3.6.16"

// programs are the files of those that processes run.
type programs struct {
	dir       string
	levelwire string
	etcd      string
}

// builtDir is where programs are, for all tests of the process.
var builtDir string

func TestMain(m *testing.M) {
	var err error
	if builtDir, err = os.MkdirTemp("", "levelwire-cluster-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(builtDir)
		os.Exit(code)
	}))
}

// build compiles the server, and etcd in the version of go.mod, once.
var build = sync.OnceValues(func() (programs, error) {
	p := programs{dir: builtDir, levelwire: filepath.Join(builtDir, "levelwire"), etcd: filepath.Join(builtDir, "etcd")}
	for path, source := range map[string]string{p.levelwire: "../../cmd/levelwire", p.etcd: "./etcdmember"} {
		if out, err := goCommand(".", "build", "-trimpath", "-o", path, source); err != nil {
			return p, fmt.Errorf("go build %s: %w\n%s", source, err, out)
		}
	}
	return p, nil
})

func buildPrograms(t *testing.T) programs {
	t.Helper()
	p, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// buildFormer compiles etcd in the release before, from a module of its own, which needs
// the module proxy.
func (p programs) buildFormer(t *testing.T) (path string) {
	t.Helper()
	dir := filepath.Join(p.dir, "former")
	if err := os.CopyFS(dir, os.DirFS("etcdmember")); err != nil {
		t.Fatal(err)
	}
	module := "module etcdmember\n\ngo 1.26\n\nrequire go.etcd.io/etcd/server/v3 " + former + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := goCommand(dir, "mod", "tidy"); err != nil {
		t.Skipf("etcd %s is not to be had: %v: %s", former, err, lastLine(out))
	}
	path = filepath.Join(p.dir, "etcd-former")
	if out, err := goCommand(dir, "build", "-o", path, "."); err != nil {
		t.Fatalf("go build of etcd %s: %v\n%s", former, err, out)
	}
	return path
}

func goCommand(dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if dir != "." {
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false -trimpath")
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
