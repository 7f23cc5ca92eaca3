//go:build linux

package cluster

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/tests/workload"
)

// process is a member of etcd or a server, which ends and starts again.
type process struct {
	name    string
	host    *host
	log     string          // the file that each run appends to
	command func() []string // the program and its arguments
	readyAt string          // what it says when it is ready

	cmd   *exec.Cmd // nil: it does not run
	stdin io.WriteCloser
	ready chan struct{} // closed when it has said so
	ended chan error    // gets its end
}

func newProcess(t *testing.T, name string, h *host, readyAt string, command func() []string) *process {
	p := &process{name: name, host: h, log: filepath.Join(t.TempDir(), "log"), command: command, readyAt: readyAt}
	t.Cleanup(func() {
		if p.cmd != nil {
			p.end(t, syscall.SIGKILL)
		}
		if t.Failed() {
			log, _ := os.ReadFile(p.log)
			const most = 1 << 10
			t.Logf("the log of %s ends with\n%s", p.name, log[max(0, len(log)-most):])
			_ = os.WriteFile(filepath.Join(t.ArtifactDir(), p.name+".log"), log, 0o600) // with -artifacts
		}
	})
	return p
}

// start does not wait until it is ready, which may need others.
func (p *process) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	command := p.command()
	cmd := p.host.command(command[0], command[1:]...)
	cmd.Stderr = log
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := childprocess.Start(cmd); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	p.cmd, p.ready, p.ended = cmd, ready, ended
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if strings.Contains(lines.Text(), p.readyAt) {
				close(ready)
				break
			}
		}
		_, _ = io.Copy(io.Discard, stdout)
		err := cmd.Wait()
		_ = log.Close()
		ended <- err
	}()
}

// awaitReady waits for it.
func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-p.ready:
	case err := <-p.ended:
		p.cmd = nil
		t.Fatalf("%s ended before it was ready: %v", p.name, err)
	case <-time.After(workload.Timeout):
		t.Fatalf("%s does not get ready", p.name)
	}
}

// end sends a signal that ends the process, and waits for that.
func (p *process) end(t *testing.T, with syscall.Signal) {
	t.Helper()
	select {
	case err := <-p.ended:
		t.Errorf("%s had ended by itself: %v", p.name, err)
		p.cmd = nil
		return
	default:
	}
	p.signal(t, with)
	select {
	case err := <-p.ended:
		if err != nil && with != syscall.SIGKILL {
			t.Errorf("%s, which was to end, ended with %v", p.name, err)
		}
	case <-time.After(workload.Timeout):
		t.Errorf("%s does not end", p.name)
	}
	p.cmd = nil
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
}

// pause stops the process, or lets it go on.
func (p *process) pause(t *testing.T, on bool) {
	t.Helper()
	p.signal(t, map[bool]syscall.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[on])
}

// slowDisk delays each sync of an etcd member's files.
func (p *process) slowDisk(t *testing.T, by time.Duration) {
	t.Helper()
	if _, err := fmt.Fprintf(p.stdin, "fsync %v\n", by); err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
}

// checkRunning fails the test if the process has ended by itself.
func (p *process) checkRunning(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.ended:
		p.cmd = nil
		t.Fatalf("%s has ended by itself: %v", p.name, err)
	default:
	}
}
