package process

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
	"github.com/levelwire/levelwire/internal/childprocess"
)

// stopTimeout is how long a child process may take to end when it is asked to.
const stopTimeout = 20 * time.Second

// Child is a process that this one has started: this program in one of its
// roles, or another program. It is killed when the context ends that it was
// started with, and dies with this process whatever happens.
type Child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *json.Decoder // what a role sends
	log   *tail
	ended chan struct{} // closed when the process has ended; err is how
	err   error
	asked func() bool // whether it was asked to end
}

// Start starts this program as a child process, in a role and with a folder to
// work in, and sends it its task. If the child ends without being asked to, the
// next receive returns an error with the last lines that it logged.
func Start(ctx context.Context, dir, role string, task any) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, stdout, err := Execute(ctx, dir, role, exec.CommandContext(ctx, self, asRole, role))
	if err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(stdout)
	return c, c.Send(task)
}

// Execute starts another program as a child process in a folder, and returns what
// it writes to standard output.
func Execute(ctx context.Context, dir, name string, cmd *exec.Cmd) (*Child, io.Reader, error) {
	c := &Child{name: name, cmd: cmd, log: &tail{}, ended: make(chan struct{})}
	cmd.Stderr = c.log
	cmd.Dir = dir
	// A signal from the terminal is for this process alone, which then ends them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
	err = childprocess.Start(cmd)
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

// Send gives the child a value.
func (c *Child) Send(v any) error {
	if err := json.NewEncoder(c.stdin).Encode(v); err != nil {
		return c.Because(err)
	}
	return nil
}

// Receive waits for a value from the child.
func (c *Child) Receive(into any) error {
	if err := c.out.Decode(into); err != nil {
		return c.Because(err)
	}
	return nil
}

// Because is the reason why the child does not answer, which is hardly ever what its pipe
// says.
func (c *Child) Because(err error) error {
	select {
	case <-c.ended:
		if c.err != nil {
			return c.err
		}
	case <-time.After(time.Second):
	}
	return fmt.Errorf("%s: %w%s", c.name, err, c.log)
}

// Stop asks the child to end, by the end of its input or, if it is not one of
// our roles, by SIGTERM, and waits until it has.
func (c *Child) Stop() error {
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

// Wait blocks until the child has ended, and returns an error if it did so without
// being asked to.
func (c *Child) Wait() error {
	<-c.ended
	return c.err
}

// Kill ends the child at once, without waiting for how it ends.
func (c *Child) Kill() {
	c.asked()
	_ = c.cmd.Process.Kill() // it may have ended by itself
	<-c.ended
}

// CPU is the processor time that the child has used.
func (c *Child) CPU() (time.Duration, error) {
	d, err := measure.CPU(c.cmd.Process.Pid)
	if err != nil {
		return 0, c.Because(err)
	}
	return d, nil
}

// Run starts a child process, receives the one result of its task and waits
// for its end.
func Run(ctx context.Context, dir, role string, task, result any) error {
	c, err := Start(ctx, dir, role, task)
	if c == nil {
		return err
	}
	c.asked() // it ends by itself when it is done
	if err == nil {
		err = c.Receive(result)
	}
	if err != nil {
		c.Kill()
		return err
	}
	return c.Stop()
}

// Memory is what the child has resident.
func (c *Child) Memory() (measure.Memory, error) {
	m, err := measure.MemoryOf(c.cmd.Process.Pid)
	if err != nil {
		return m, c.Because(err)
	}
	return m, nil
}

// ResetPeak makes the peak of the child's memory what it has resident now.
func (c *Child) ResetPeak() error {
	if err := measure.ResetPeak(c.cmd.Process.Pid); err != nil {
		return c.Because(err)
	}
	return nil
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
