package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/levelwire/levelwire/internal/childprocess"
)

// process is levelwire as a process of its own.
type process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	ended   chan struct{} // closed when it has ended and its output is read
	err     error         // how; read it after ended

	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and replaced with every line of output
	asked   bool          // the test has asked it to end
}

// startProcess runs `levelwire args...`; its log goes to dir. It is killed at
// the latest when the test ends, and its log is shown if the test failed.
func startProcess(t *testing.T, dir, name string, args ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, dir, name, binary, args...)
}

// startProgram is startProcess for this program under another name.
func startProgram(t *testing.T, dir, name, binary string, args ...string) *process {
	t.Helper()
	log, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: name, logPath: log.Name(), ended: make(chan struct{}), changed: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = append(os.Environ(), asCommand+"=1", "KUBECONFIG=")
	p.cmd.Dir = dir
	p.cmd.Stderr = log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := childprocess.Start(p.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.read(stdout)
		p.err = errors.Join(p.cmd.Wait(), log.Close())
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the log of %s, %s:\n%s", name, filepath.Base(p.logPath), p.logTail())
		}
	})
	return p
}

func (p *process) read(stdout io.Reader) {
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, scanner.Text())
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
}

// output returns the lines so far, and a channel that is closed when there
// are more.
func (p *process) output() ([]string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[:len(p.lines):len(p.lines)], p.changed
}

// awaitLine waits for a line of output that contains text.
func (p *process) awaitLine(ctx context.Context, text string) error {
	for {
		lines, changed := p.output()
		for _, line := range lines {
			if strings.Contains(line, text) {
				return nil
			}
		}
		select {
		case <-changed:
		case <-p.ended:
			return fmt.Errorf("%s ended before it said %q: %v\n%s", p.name, text, p.err, p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s did not say %q: %w", p.name, text, context.Cause(ctx))
		}
	}
}

// kill ends the process as a power cut would, with signal 9.
func (p *process) kill() {
	p.end(syscall.SIGKILL)
	<-p.ended
}

// terminate asks the process to end, and returns how it did.
func (p *process) terminate(ctx context.Context) error {
	p.end(syscall.SIGTERM)
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("%s does not end: %w", p.name, context.Cause(ctx))
	}
}

func (p *process) end(signal syscall.Signal) {
	p.mu.Lock()
	p.asked = true
	p.mu.Unlock()
	// It fails for a process that has ended already, which is the aim.
	_ = p.cmd.Process.Signal(signal)
}

// endedByItself returns an error if the process has ended without being asked
// to.
func (p *process) endedByItself() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		if !p.asked {
			return fmt.Errorf("%s ended by itself: %v", p.name, p.err)
		}
	default:
	}
	return nil
}

// logTail is the last of what the process has logged.
func (p *process) logTail() string {
	const most = 4 << 10
	log, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-most):])
}

// logged returns an error unless the log contains text.
func (p *process) logged(text string) error {
	log, err := os.ReadFile(p.logPath)
	if err == nil && !strings.Contains(string(log), text) {
		err = fmt.Errorf("%s does not log %q", p.name, text)
	}
	return err
}
