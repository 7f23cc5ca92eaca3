package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// asRole, as the first argument, makes this program a child process; the second
// is its role.
const asRole = "-role"

// parent is the other end of a child process: values of JSON on standard input
// and output.
type parent struct {
	in  *json.Decoder
	out *json.Encoder
}

// beRole is the main function of a child process.
func beRole(ctx context.Context, name string) error {
	do, ok := roles[name]
	if !ok {
		return fmt.Errorf("there is no role %q", name)
	}
	if err := do(ctx, &parent{json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// receive waits for the next value from the parent: first the task, and later
// what the role and its row have agreed upon.
func (p *parent) receive(into any) error { return p.in.Decode(into) }

// send gives the parent a value.
func (p *parent) send(v any) error { return p.out.Encode(v) }

// wait returns when the parent wants the process to end, or has ended itself.
func (p *parent) wait() error {
	var nothing json.RawMessage
	if err := p.in.Decode(&nothing); !errors.Is(err, io.EOF) {
		return fmt.Errorf("an end was expected, not %s, %w", nothing, err)
	}
	return nil
}
