package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/levelwire/levelwire/benchmarks/measure"
)

// stopTimeout is how long a child process may take to end when it is asked to.
const stopTimeout = 20 * time.Second

// child is a process that this one has started: this program in one of its
// roles, or another program. It is killed when the context ends that it was
// started with, and dies with this process whatever happens.
type child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *json.Decoder // what a role sends
	log   *tail
	ended chan struct{} // closed when the process has ended; err is how
	err   error
	asked func() bool // whether it was asked to end
}

// start begins a child process in a role and gives it its task. If it ends
// without being asked to, what waits for it gets an error with its last words.
func (b *bench) start(ctx context.Context, role string, task any) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, stdout, err := b.execute(ctx, role, exec.CommandContext(ctx, self, asRole, role))
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(stdout)
	return c, c.send(task)
}

// execute begins a child process, and returns what it writes to standard output.
func (b *bench) execute(ctx context.Context, name string, cmd *exec.Cmd) (*child, io.Reader, error) {
	c := &child{name: name, cmd: cmd, log: &tail{}, ended: make(chan struct{})}
	cmd.Stderr = c.log
	cmd.Dir = b.dir
	// A signal from the terminal is for this process alone, which then ends them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	// Not cmd.StdoutPipe, which would be closed while a reader may still read.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdout = write
	err = cmd.Start()
	_ = write.Close() // the child has its own
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", name, err), read.Close())
	}
	asked := make(chan struct{})
	var once sync.Once
	c.asked = func() bool { once.Do(func() { close(asked) }); return true }
	go func() {
		err := cmd.Wait()
		select {
		case <-asked:
		default:
			if err == nil {
				err = errors.New("it ended without being asked to")
			}
		}
		if err != nil {
			c.err = fmt.Errorf("%s: %w%s", name, err, c.log)
		}
		close(c.ended)
	}()
	return c, read, nil
}

// send gives the child a value.
func (c *child) send(v any) error {
	if err := json.NewEncoder(c.stdin).Encode(v); err != nil {
		return c.because(err)
	}
	return nil
}

// receive waits for a value from the child.
func (c *child) receive(into any) error {
	if err := c.out.Decode(into); err != nil {
		return c.because(err)
	}
	return nil
}

// because is why the child does not answer, which is hardly ever what its pipe
// says.
func (c *child) because(err error) error {
	select {
	case <-c.ended:
		if c.err != nil {
			return c.err
		}
	case <-time.After(time.Second):
	}
	return fmt.Errorf("%s: %w%s", c.name, err, c.log)
}

// stop asks the child to end, by the end of its input or, if it is not one of
// our roles, by SIGTERM, and waits until it has.
func (c *child) stop() error {
	c.asked()
	_ = c.stdin.Close()
	if c.out == nil {
		_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	}
	select {
	case <-c.ended:
		return c.err
	case <-time.After(stopTimeout):
		_ = c.cmd.Process.Kill()
		<-c.ended
		return fmt.Errorf("%s did not end within %v%s", c.name, stopTimeout, c.log)
	}
}

// kill ends the child at once, without waiting for how it ends.
func (c *child) kill() {
	c.asked()
	_ = c.cmd.Process.Kill() // it may have ended by itself
	<-c.ended
}

// cpu is the processor time that the child has used.
func (c *child) cpu() (time.Duration, error) {
	d, err := measure.CPU(c.cmd.Process.Pid)
	if err != nil {
		return 0, c.because(err)
	}
	return d, nil
}

// runChild has a child do its task and receives its one result.
func (b *bench) runChild(ctx context.Context, role string, task, result any) error {
	c, err := b.start(ctx, role, task)
	if c == nil {
		return err
	}
	c.asked() // it ends by itself when it is done
	if err == nil {
		err = c.receive(result)
	}
	if err != nil {
		c.kill()
		return err
	}
	return c.stop()
}

// tail keeps the end of what a process writes.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

const tailSize = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, p...)
	if extra := len(t.bytes) - tailSize; extra > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[extra:]...)
	}
	return len(p), nil
}

// String is the last lines, each indented, after a line's end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(bytes.ToValidUTF8(t.bytes, nil)))
	if text == "" {
		return ""
	}
	return "\n\t" + strings.ReplaceAll(text, "\n", "\n\t")
}
