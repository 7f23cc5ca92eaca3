package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// testTimeout is how long a server may take to become ready, and to end.
const testTimeout = 3 * time.Minute

// Build builds the levelwire command into the test's own folder and returns its
// path. Call it once in a test: it links the whole program.
func Build(t testing.TB) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/levelwire/levelwire").Output()
	if err != nil {
		t.Fatalf("where the product's module is: %v", err)
	}
	path := filepath.Join(t.TempDir(), "levelwire")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "./cmd/levelwire")
	build.Dir = strings.TrimSpace(string(dir))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build levelwire: %v\n%s", err, out)
	}
	return path
}

// Server is a levelwire that serves.
type Server struct {
	// Kubeconfig is an administrator's.
	Kubeconfig string
	// Took is how long it was from the start of the process until it said that
	// it is ready.
	Took time.Duration

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended; err is how
	err   error
}

// Start runs `levelwire args...`, where args begin with serve or up, on a free
// port and with a new data directory, and waits until it is ready. It ends with
// the test at the latest, by SIGTERM.
func Start(t testing.TB, binary string, args ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	// Not of the test's context, which ends before it is asked to stop.
	cmd := exec.CommandContext(context.Background(), binary, append(args, "--secure-port=0", "--data-dir="+dir, "--log-level=error")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=")
	s := Run(t, cmd)
	s.Kubeconfig = filepath.Join(dir, "admin.kubeconfig")
	return s
}

// Run is Start for any command that says "... is ready at ..." and ends well
// after SIGTERM. It leaves Kubeconfig empty.
func Run(t testing.TB, cmd *exec.Cmd) *Server {
	t.Helper()
	s := &Server{cmd: cmd, ended: make(chan struct{})}
	s.cmd.Stderr = os.Stderr
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := childprocess.Start(s.cmd); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() && !strings.Contains(lines.Text(), " is ready at ") {
		}
		s.Took = time.Since(begin)
		close(ready)
		for lines.Scan() { // a pipe without a reader would block the process
		}
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("%s: %v", strings.Join(cmd.Args, " "), err)
		}
	})
	select {
	case <-ready:
	case <-time.After(testTimeout):
		t.Fatalf("%s is not ready after %v", strings.Join(cmd.Args, " "), testTimeout)
	}
	return s
}

// Stop asks it to end and waits until it has. Calls after the first do nothing.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
		return s.err
	case <-time.After(testTimeout):
		return errors.Join(fmt.Errorf("it does not end %v after SIGTERM", testTimeout), s.cmd.Process.Kill())
	}
}

// CPU is the processor time that it used until Stop.
func (s *Server) CPU() time.Duration {
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
}
