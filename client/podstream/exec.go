package podstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"

	"github.com/levelwire/levelwire/client"
)

// Streams are the standard streams of a process in a container. At least one of
// Stdin, Stdout and Stderr must be there.
type Streams struct {
	// Stdin is copied to the process until it ends; nil: the process has none. A Read
	// that does not return when the process has ended leaves a goroutine behind until
	// it does.
	Stdin io.Reader
	// Stdout and Stderr receive what the process writes; nil: it is discarded.
	Stdout, Stderr io.Writer
	// TTY gives the process a terminal. Its output is all in Stdout then, and Stderr
	// is not used.
	TTY bool
	// Resize sends the size of the terminal, first and when it changes; nil: the
	// process has the default size. It is used only with TTY.
	Resize <-chan TerminalSize
}

// TerminalSize is a number of columns and lines.
type TerminalSize struct{ Width, Height uint16 }

// ExecOptions say what to run and where.
type ExecOptions struct {
	// Container is in which container; empty: the only one, or the default one.
	Container string
	// Command is the program and its arguments. There is no shell around it.
	Command []string
	Streams
}

// AttachOptions say to which container to attach.
type AttachOptions struct {
	Container string // empty: the only one, or the default one
	Streams
}

// ExitError is the end of a command with an exit code other than 0.
type ExitError struct {
	Code int
	err  error
}

func (e *ExitError) Error() string { return e.err.Error() }

// Unwrap returns client-go's error.
func (e *ExitError) Unwrap() error { return e.err }

// Exec runs a command in a container and copies its streams until it ends. The error
// is an *ExitError if the command ran and failed. When ctx ends, Exec returns and the
// connection is closed; most container runtimes leave the command running.
func Exec(ctx context.Context, c *client.Client, namespace, pod string, opts ExecOptions) error {
	if len(opts.Command) == 0 {
		return fmt.Errorf("exec in pod %s/%s: the command is empty", namespace, pod)
	}
	return opts.run(ctx, c, "exec", namespace, pod, &corev1.PodExecOptions{
		Container: opts.Container, Command: opts.Command, TTY: opts.TTY,
		Stdin: opts.Stdin != nil, Stdout: opts.Stdout != nil, Stderr: opts.Stderr != nil && !opts.TTY,
	})
}

// Attach connects to the streams of a container's first process, until that ends or
// ctx does.
func Attach(ctx context.Context, c *client.Client, namespace, pod string, opts AttachOptions) error {
	return opts.run(ctx, c, "attach", namespace, pod, &corev1.PodAttachOptions{
		Container: opts.Container, TTY: opts.TTY,
		Stdin: opts.Stdin != nil, Stdout: opts.Stdout != nil, Stderr: opts.Stderr != nil && !opts.TTY,
	})
}

// run connects to a subresource and copies streams.
func (s Streams) run(ctx context.Context, c *client.Client, subresource, namespace, pod string, options any) error {
	u := &upgrade{ctx: ctx}
	what := subresource + " in"
	if s.Stdin == nil && s.Stdout == nil && (s.Stderr == nil || s.TTY) {
		return u.failed(what, namespace, pod, errors.New("set at least one of Stdin, Stdout and Stderr (with a TTY, of Stdin and Stdout)"))
	}
	address, err := streamURL(c, namespace, pod, subresource, options)
	if err != nil {
		return u.failed(what, namespace, pod, err)
	}
	executor, err := newExecutor(u.config(c), address)
	if err != nil {
		return u.failed(what, namespace, pod, err)
	}
	// The errors that client-go would only log are those of copying.
	streaming, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	defer cancel() // ends the queue of sizes
	copying := new(copyError)
	streams := remotecommand.StreamOptions{Stdin: copying.reader(s.Stdin), Stdout: copying.writer(s.Stdout), Tty: s.TTY}
	if !s.TTY {
		streams.Stderr = copying.writer(s.Stderr)
	} else if s.Resize != nil {
		streams.TerminalSizeQueue = sizes{streaming, s.Resize}
	}
	err = executor.StreamWithContext(streaming, streams)
	if err == nil {
		err = copying.first()
	}
	var exit exec.CodeExitError
	if errors.As(err, &exit) {
		err = &ExitError{exit.Code, err}
	}
	if err == nil {
		return nil
	}
	return u.failed(what, namespace, pod, err)
}

// streamURL is where a subresource of a pod is, with its options.
func streamURL(c *client.Client, namespace, pod, subresource string, options any) (*url.URL, error) {
	r, err := pods(c, namespace)
	if err != nil {
		return nil, err
	}
	if pod == "" {
		return nil, errors.New("the pod's name is empty")
	}
	u, err := r.URL(pod, subresource)
	if err != nil || options == nil {
		return u, err
	}
	query, err := queryparams.Convert(options)
	if err != nil {
		return nil, err
	}
	u.RawQuery = query.Encode()
	return u, nil
}

// newExecutor tries WebSocket and then SPDY, as kubectl does.
func newExecutor(cfg *rest.Config, u *url.URL) (remotecommand.Executor, error) {
	socket, err := remotecommand.NewWebSocketExecutor(cfg, "GET", u.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(cfg, "POST", u)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, needsSPDY)
}

// sizes is client-go's queue of terminal sizes on a channel.
type sizes struct {
	ctx context.Context // ends Next, which has no argument for it
	ch  <-chan TerminalSize
}

// Next returns nil when there will be no size any more.
func (s sizes) Next() *remotecommand.TerminalSize {
	select {
	case size, ok := <-s.ch:
		if ok {
			return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
		}
	case <-s.ctx.Done():
	}
	return nil
}
