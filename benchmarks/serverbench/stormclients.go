package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/levelwire/levelwire/benchmarks/herd"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// The clients of storms are a herd, in a process of its own, and an informer of
// all pods of each library, likewise.
const (
	clientGo   = "client-go"
	ourLibrary = "our library"
)

var libraries = []string{clientGo, ourLibrary}

// What libraries' informers are measured in.
const (
	untilCaughtUp = "s until it had caught up"
	differences   = "differences"
	receivedMB    = "received MB"
	cpuSeconds    = "CPU s"
)

// order is a command to storms' clients.
type order struct {
	Do string // cut, open, look, or expect
	// Want is what a library's informer should come to hold. A herd asks the
	// server itself.
	Want herd.Digest
}

// herdTask is what a herd watches.
type herdTask struct {
	Access  tested.Access
	Options herd.Options
}

// herdReport is how a herd is.
type herdReport struct {
	herd.Report
	CPU time.Duration // since it was let go
}

// keepHerd is the process of many informers.
func keepHerd(ctx context.Context, p *process.Parent) error {
	var task herdTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	var err error
	if task.Options.TLS, task.Options.Address, err = task.Access.Reach(); err != nil {
		return err
	}
	h, err := herd.Gather(ctx, task.Options)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := p.Send(task.Options.Everything + len(task.Options.Nodes)); err != nil {
		return err
	}
	var opened time.Duration
	return obey(p, func(o order) (any, error) {
		switch o.Do {
		case "cut":
			h.Cut()
		case "open":
			if opened, err = measure.OwnCPU(); err != nil {
				return nil, err
			}
			h.Open()
		case "expect":
			if err := h.Expect(ctx); err != nil {
				return nil, err
			}
		}
		used, err := measure.OwnCPU()
		return herdReport{h.Report(), used - opened}, err
	})
}

// obey answers orders until there are no more.
func obey(p *process.Parent, do func(order) (any, error)) error {
	for {
		var o order
		if err := p.Receive(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer, err := do(o)
		if err != nil {
			return err
		}
		if err := p.Send(answer); err != nil {
			return err
		}
	}
}

// field is all clients of a storm.
type field struct {
	herd      *process.Child
	libraries map[string]*process.Child
}

// sight is how they are.
type sight struct {
	herd      herd.Report
	herdCPU   time.Duration
	libraries map[string]libraryReport
}

// populate starts all clients, and returns when all watch.
func (b *bench) populate(ctx context.Context, t *tested.Server) (f *field, err error) {
	f = &field{libraries: map[string]*process.Child{}}
	defer func() {
		if err != nil {
			f.kill()
		}
	}()
	for _, name := range libraries {
		c, err := process.Start(ctx, b.dir, "library", libraryTask{Access: t.Access, Library: name})
		if c == nil {
			return f, err
		}
		f.libraries[name] = c
		var synced libraryReport
		if err := errors.Join(err, c.Receive(&synced)); err != nil {
			return f, err
		}
	}
	everything := min(b.plan.everything, b.plan.informers)
	o := herd.Options{Nodes: nodesOf(b.plan.informers-everything, b.plan.pods), Everything: everything}
	f.herd, err = process.Start(ctx, b.dir, "herd", herdTask{t.Access, o})
	if f.herd == nil {
		return f, err
	}
	var watching int
	return f, errors.Join(err, f.herd.Receive(&watching), f.catchUp(ctx))
}

// kill ends all clients.
func (f *field) kill() {
	if f.herd != nil {
		f.herd.Kill()
	}
	for _, l := range f.libraries {
		l.Kill()
	}
}

// give gives all clients an order, and returns how they are then. The herd gets it
// first; what the herd learned is what libraries are to expect.
func (f *field) give(do string) (s sight, err error) {
	var r herdReport
	if err := errors.Join(f.herd.Send(order{Do: do}), f.herd.Receive(&r)); err != nil {
		return s, err
	}
	s = sight{herd: r.Report, herdCPU: r.CPU, libraries: map[string]libraryReport{}}
	for name, c := range f.libraries {
		var l libraryReport
		if err := errors.Join(c.Send(order{Do: do, Want: r.Everything}), c.Receive(&l)); err != nil {
			return s, err
		}
		s.libraries[name] = l
	}
	return s, nil
}

func (f *field) look() (sight, error) { return f.give("look") }
func (f *field) cut() error           { _, err := f.give("cut"); return err }
func (f *field) expect() error        { _, err := f.give("expect"); return err }

// open lets all clients go at once, the herd last.
func (f *field) open() error {
	for _, c := range f.libraries {
		var l libraryReport
		if err := errors.Join(c.Send(order{Do: "open"}), c.Receive(&l)); err != nil {
			return err
		}
	}
	var r herdReport
	return errors.Join(f.herd.Send(order{Do: "open"}), f.herd.Receive(&r))
}

// done: all clients hold what they should, and have for a while.
func (s sight) done() bool {
	for _, l := range s.libraries {
		if !l.Equal {
			return false
		}
	}
	return s.herd.Converged == s.herd.Informers && s.herd.Calm >= calm
}

// late says which clients have not caught up.
func (s sight) late() string {
	text := fmt.Sprintf("%d of %d informers", s.herd.Informers-s.herd.Converged, s.herd.Informers)
	for _, name := range libraries {
		if !s.libraries[name].Equal {
			text += ", " + name
		}
	}
	return text
}

// catchUp waits until all clients hold what there is. No client may write meanwhile.
func (f *field) catchUp(ctx context.Context) error {
	if err := f.expect(); err != nil {
		return err
	}
	const limit = 3 * time.Minute
	for begun := time.Now(); ; {
		s, err := f.look()
		if err != nil || s.done() {
			return err
		}
		if time.Since(begun) > limit {
			return fmt.Errorf("%s do not hold what they should after %v; errors: %v", s.late(), limit, s.herd.Errors)
		}
		if err := tested.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// watch looks at a storm until it is over, and ends it if it takes too long or
// the server too much memory; the note is why.
func (f *field) watch(ctx context.Context, t *tested.Server) (s sight, note string, err error) {
	for begun := time.Now(); ; {
		if s, err = f.look(); err != nil || s.done() {
			return s, "", err
		}
		m, err := t.Memory()
		switch {
		case err != nil:
			return s, "", err
		case m.Resident > memoryLimit:
			return s, fmt.Sprintf("it was ended after %.0f s, when the server had %.1f GB: %s had not caught up", time.Since(begun).Seconds(), float64(m.Resident)/1e9, s.late()), nil
		case time.Since(begun) > stormLimit:
			return s, fmt.Sprintf("after %v %s had not caught up", stormLimit, s.late()), nil
		}
		if err := tested.Pause(ctx, 200*time.Millisecond); err != nil {
			return s, "", err
		}
	}
}
