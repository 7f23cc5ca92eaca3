package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// AsRole is the first argument of a child process; the second is its role.
const AsRole = "-role"

// Parent is the other end of a child process: values of JSON on standard input
// and output.
type Parent struct {
	in  *json.Decoder
	out *json.Encoder
}

// Role is the whole work of a child process in one role.
type Role func(context.Context, *Parent) error

// BeRole is the main function of a child process: it does the work of one of the
// roles.
func BeRole(ctx context.Context, roles map[string]Role, name string) error {
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
