package histories

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// child is this test binary as a process of its own, which is an API server or a member of etcd there. It ends with
// this process, and with its standard input.
type child struct {
	name   string
	cmd    *exec.Cmd // nil: it does not run
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// launch starts the process, with settings in a variable of its environment that says what it is.
func (c *child) launch(t *testing.T, variable string, settings any) {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := childprocess.Start(cmd); err != nil {
		t.Fatal(err)
	}
	c.cmd, c.stdout = cmd, bufio.NewReader(stdout)
}

// awaitReady returns what the process says behind "ready".
func (c *child) awaitReady(t *testing.T) string {
	t.Helper()
	line, err := c.stdout.ReadString('\n')
	rest, ready := strings.CutPrefix(strings.TrimSpace(line), "ready")
	if err != nil || !ready {
		t.Fatalf("%s said %q, %v", c.name, line, err)
	}
	return strings.TrimSpace(rest)
}

// end sends the process a signal and waits until it is gone.
func (c *child) end(t *testing.T, with syscall.Signal) {
	t.Helper()
	if c.cmd == nil {
		return
	}
	if err := c.cmd.Process.Signal(with); err != nil {
		t.Error(err)
	}
	// A killed process has an error to wait for; a stopped one must not.
	if err := c.cmd.Wait(); err != nil && with != syscall.SIGKILL {
		t.Errorf("the end of %s: %v", c.name, err)
	}
	c.cmd = nil
}
