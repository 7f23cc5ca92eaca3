package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
)

// asRole is the first argument of a child process; the second is its role.
const asRole = "-role"

// Parent is the other end of a child process: values of JSON on standard input
// and output.
type Parent struct {
	in  *json.Decoder
	out *json.Encoder
}

// Role is the whole work of a child process in one role.
type Role func(context.Context, *Parent) error

// Main is the main function of a program whose child processes are the same program in
// one of the roles: a child does the work of its role, and any other process runs run
// until that ends or the user interrupts it. The exit code is 2 for a UsageError, and 1
// for every other error.
func Main(program string, roles map[string]Role, run func(context.Context) error) {
	klog.SetLogger(klog.Logger{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if len(os.Args) == 3 && os.Args[1] == asRole {
		run = func(ctx context.Context) error { return beRole(ctx, roles, os.Args[2]) }
	}
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		var usage *UsageError
		if errors.As(err, &usage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// UsageError is a value of a flag, or an argument, with which a program cannot begin.
type UsageError struct {
	Flag   string // its name, without a dash; empty for an argument
	Reason string
}

// Error implements error.
func (e *UsageError) Error() string {
	if e.Flag == "" {
		return e.Reason
	}
	return "-" + e.Flag + ": " + e.Reason
}

func beRole(ctx context.Context, roles map[string]Role, name string) error {
	do, ok := roles[name]
	if !ok {
		return fmt.Errorf("there is no role %q", name)
	}
	if err := do(ctx, &Parent{json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Receive waits for the next value from the parent: first the task, and later
// what the role and its row have agreed upon.
func (p *Parent) Receive(into any) error { return p.in.Decode(into) }

// Send gives the parent a value.
func (p *Parent) Send(v any) error { return p.out.Encode(v) }

// Wait returns when the parent wants the process to end, or has ended itself.
func (p *Parent) Wait() error {
	var nothing json.RawMessage
	if err := p.in.Decode(&nothing); !errors.Is(err, io.EOF) {
		return fmt.Errorf("an end was expected, not %s, %w", nothing, err)
	}
	return nil
}
