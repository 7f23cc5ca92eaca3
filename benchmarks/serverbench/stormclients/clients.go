package stormclients

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
	"github.com/levelwire/levelwire/benchmarks/workload"
)

// The clients of storms are a herd, in a process of its own, and an informer of
// all pods of each library, likewise.
const (
	ClientGo   = "client-go"
	OurLibrary = "our library"
)

// Libraries are the libraries whose informers are measured.
var Libraries = []string{ClientGo, OurLibrary}

// Limits of a storm; calm is how long all clients must have held what they should.
const (
	stormLimit  = 10 * time.Minute
	calm        = 2 * time.Second
	memoryLimit = 15e9 // bytes that all processes of a server may have resident
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

// RunHerd is the process of many informers.
func RunHerd(ctx context.Context, p *process.Parent) error {
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

// Clients is all clients of a storm.
type Clients struct {
	herd      *process.Child
	libraries map[string]*process.Child
}

// Seen is how they are.
type Seen struct {
	Herd      herd.Report
	HerdCPU   time.Duration
	Libraries map[string]LibraryReport
}

// Options are how many informers a herd has.
type Options struct {
	Informers, Everything int // all, and those that watch all pods
	Pods                  int // that the server holds
}

// Start starts all clients, and returns when all watch.
func Start(ctx context.Context, dir string, access tested.Access, o Options) (f *Clients, err error) {
	f = &Clients{libraries: map[string]*process.Child{}}
	defer func() {
		if err != nil {
			f.Kill()
		}
	}()
	for _, name := range Libraries {
		c, err := process.Start(ctx, dir, "library", libraryTask{Access: access, Library: name})
		if c == nil {
			return f, err
		}
		f.libraries[name] = c
		var synced LibraryReport
		if err := errors.Join(err, c.Receive(&synced)); err != nil {
			return f, err
		}
	}
	everything := min(o.Everything, o.Informers)
	options := herd.Options{Nodes: NodesOf(o.Informers-everything, o.Pods), Everything: everything}
	f.herd, err = process.Start(ctx, dir, "herd", herdTask{access, options})
	if f.herd == nil {
		return f, err
	}
	var watching int
	return f, errors.Join(err, f.herd.Receive(&watching), f.CatchUp(ctx))
}

// Kill ends all clients.
func (f *Clients) Kill() {
	if f.herd != nil {
		f.herd.Kill()
	}
	for _, l := range f.libraries {
		l.Kill()
	}
}

// give gives all clients an order, and returns how they are then. The herd gets it
// first; what the herd learned is what libraries are to expect.
func (f *Clients) give(do string) (s Seen, err error) {
	var r herdReport
	if err := errors.Join(f.herd.Send(order{Do: do}), f.herd.Receive(&r)); err != nil {
		return s, err
	}
	s = Seen{Herd: r.Report, HerdCPU: r.CPU, Libraries: map[string]LibraryReport{}}
	for name, c := range f.libraries {
		var l LibraryReport
		if err := errors.Join(c.Send(order{Do: do, Want: r.Everything}), c.Receive(&l)); err != nil {
			return s, err
		}
		s.Libraries[name] = l
	}
	return s, nil
}

// Look returns how all clients are now.
func (f *Clients) Look() (Seen, error) { return f.give("look") }

// Cut cuts all clients off from the server.
func (f *Clients) Cut() error { _, err := f.give("cut"); return err }

// Expect has the herd read what the server holds now, which all clients are to hold.
func (f *Clients) Expect() error { _, err := f.give("expect"); return err }

// Open lets all clients go at once, the herd last.
func (f *Clients) Open() error {
	for _, c := range f.libraries {
		var l LibraryReport
		if err := errors.Join(c.Send(order{Do: "open"}), c.Receive(&l)); err != nil {
			return err
		}
	}
	var r herdReport
	return errors.Join(f.herd.Send(order{Do: "open"}), f.herd.Receive(&r))
}

// Done: all clients hold what they should, and have for a while.
func (s Seen) Done() bool {
	for _, l := range s.Libraries {
		if !l.Equal {
			return false
		}
	}
	return s.Herd.Converged == s.Herd.Informers && s.Herd.Calm >= calm
}

// Late says which clients have not caught up.
func (s Seen) Late() string {
	text := fmt.Sprintf("%d of %d informers", s.Herd.Informers-s.Herd.Converged, s.Herd.Informers)
	for _, name := range Libraries {
		if !s.Libraries[name].Equal {
			text += ", " + name
		}
	}
	return text
}

// CatchUp waits until all clients hold what there is. No client may write meanwhile.
func (f *Clients) CatchUp(ctx context.Context) error {
	if err := f.Expect(); err != nil {
		return err
	}
	const limit = 3 * time.Minute
	for begun := time.Now(); ; {
		s, err := f.Look()
		if err != nil || s.Done() {
			return err
		}
		if time.Since(begun) > limit {
			return fmt.Errorf("%s do not hold what they should after %v; errors: %v", s.Late(), limit, s.Herd.Errors)
		}
		if err := tested.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// Watch looks at a storm until it is over, and ends it if it takes too long or
// the server too much memory; the note is why.
func (f *Clients) Watch(ctx context.Context, t *tested.Server) (s Seen, note string, err error) {
	for begun := time.Now(); ; {
		if s, err = f.Look(); err != nil || s.Done() {
			return s, "", err
		}
		m, err := t.Memory()
		switch {
		case err != nil:
			return s, "", err
		case m.Resident > memoryLimit:
			return s, fmt.Sprintf("it was ended after %.0f s, when the server had %.1f GB: %s had not caught up", time.Since(begun).Seconds(), float64(m.Resident)/1e9, s.Late()), nil
		case time.Since(begun) > stormLimit:
			return s, fmt.Sprintf("after %v %s had not caught up", stormLimit, s.Late()), nil
		}
		if err := tested.Pause(ctx, 200*time.Millisecond); err != nil {
			return s, "", err
		}
	}
}

// NodesOf are the nodes that so many informers watch: each is watched before one
// is watched twice.
func NodesOf(informers, pods int) (names []string) {
	var all []string
	seen := map[string]bool{}
	for i := 0; i < pods && !seen[workload.Node(i)]; i++ {
		seen[workload.Node(i)] = true
		all = append(all, workload.Node(i))
	}
	for i := range informers {
		names = append(names, all[i%len(all)])
	}
	return names
}
