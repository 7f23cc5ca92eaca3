package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
	"golang.org/x/sys/unix"
)

// plan is what is to be measured.
type plan struct {
	pods, repeat                      int
	informers, everything             int // in storms: all, and those that watch all pods
	sides, groups                     []string
	report, data, levelwire, profiles string
}

// bench is a plan while it is carried out.
type bench struct {
	plan    *plan
	dir     string // scratch, on a disk
	servers tested.Launcher
	now     struct {
		repetition int // from 0
	}
}

const defaultLimit = 2 * time.Minute

// run measures everything and reports.
func (p *plan) run(ctx context.Context) (err error) {
	chosen, err := p.chosen()
	if err != nil {
		return err
	}
	if p.levelwire, err = tested.Program(p.levelwire); err != nil && slices.Contains(p.sides, tested.Ours) {
		return err
	}
	if p.profiles != "" {
		if p.profiles, err = filepath.Abs(p.profiles); err != nil {
			return err
		}
		if err := os.MkdirAll(p.profiles, 0o755); err != nil {
			return err
		}
	}
	b := &bench{plan: p}
	if b.dir, err = scratch(); err != nil {
		return err
	}
	b.servers = tested.Launcher{Dir: b.dir, Levelwire: p.levelwire, Profiling: p.profiles != ""}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills what is left
	begun := time.Now()
	for b.now.repetition = range p.repeat {
		if err := b.repetition(ctx, chosen); err != nil {
			return err
		}
	}
	for b.now.repetition = range p.repeat {
		if err := b.last(ctx, chosen); err != nil {
			return err
		}
	}
	b.progress("measured in %v", time.Since(begun).Round(time.Second))
	return p.write(ctx, chosen)
}

// chosen are the groups that were asked for.
func (p *plan) chosen() (chosen []*group, err error) {
	var names []string
	for _, g := range groups(p) {
		names = append(names, g.name)
		if len(p.groups) == 0 && !g.apart || slices.Contains(p.groups, g.name) {
			chosen = append(chosen, g)
		}
	}
	for _, name := range p.groups {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("there is no group %q among %s", name, strings.Join(names, ", "))
		}
	}
	if p.repeat < 1 || p.pods < 1 || len(p.sides) == 0 {
		return nil, errors.New("there is nothing to measure: -repeat, -pods and -sides must not be empty")
	}
	return chosen, nil
}

// scratch makes a folder for data. It must be on a disk: in memory, writes that
// are to be durable would cost nothing.
func scratch() (string, error) {
	dir, err := os.MkdirTemp("", "serverbench")
	if err != nil {
		return "", err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "", err
	}
	if fs.Type == unix.TMPFS_MAGIC {
		return "", errors.Join(fmt.Errorf("%s is in memory: name a folder on a disk in TMPDIR", dir), os.Remove(dir))
	}
	return dir, nil
}

// repetition measures every row once on each side, unless it has been measured
// often enough. The sides take turns, so that whatever changes on the machine
// meanwhile changes for both.
func (b *bench) repetition(ctx context.Context, chosen []*group) error {
	var full []*group
	for _, g := range chosen {
		if g.servers == filled && b.due(g) {
			full = append(full, g)
		}
	}
	for _, side := range b.plan.sides {
		if len(full) == 0 {
			break
		}
		dir, err := b.seeded(ctx, side, b.plan.pods)
		if err != nil {
			return err
		}
		if err := b.onServer(ctx, side, dir, b.plan.pods, full...); err != nil {
			return err
		}
	}
	for _, g := range chosen {
		if g.servers == empty && b.due(g) {
			for _, side := range b.plan.sides {
				if err := b.fresh(ctx, side, g); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fresh measures a group on a server of its own with nothing in it.
func (b *bench) fresh(ctx context.Context, side string, g *group) error {
	dir, err := os.MkdirTemp(b.dir, side)
	if err != nil {
		return err
	}
	return errors.Join(b.onServer(ctx, side, dir, 0, g), os.RemoveAll(dir))
}

// last measures the groups that start servers themselves, once on each side.
func (b *bench) last(ctx context.Context, chosen []*group) error {
	for _, g := range chosen {
		for _, side := range b.plan.sides {
			if g.servers != own || !b.due(g) {
				continue
			}
			if err := b.rows(ctx, &tested.Server{Side: side}, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// due reports whether there is something left to measure in a group.
func (b *bench) due(g *group) bool {
	return slices.ContainsFunc(g.rows, func(r *row) bool { return !r.once || b.now.repetition == 0 })
}

// onServer starts a server and measures groups on it.
func (b *bench) onServer(ctx context.Context, side, dir string, objects int, all ...*group) error {
	return b.withTarget(ctx, side, dir, objects, func(ctx context.Context, t *tested.Server) error {
		return b.rows(ctx, t, all...)
	})
}

// withTarget does something on a server that it starts, and ends it. If a
// process of the server ends before, so does the context, and the error is why.
func (b *bench) withTarget(ctx context.Context, side, dir string, objects int, do func(context.Context, *tested.Server) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t, err := b.servers.Start(ctx, side, dir, objects)
	if err != nil {
		return fmt.Errorf("start %s: %w", side, err)
	}
	var watching sync.WaitGroup
	for _, c := range t.Processes {
		watching.Go(func() {
			if err := c.Wait(); err != nil {
				cancel(err)
			}
		})
	}
	err = do(ctx, t)
	cause := context.Cause(ctx)
	stopped := t.Stop()
	watching.Wait()
	if cause != nil {
		return cause // the server has ended, or all shall end: what else fails says nothing
	}
	return errors.Join(err, stopped)
}

// rows measures the rows of groups on a server.
func (b *bench) rows(ctx context.Context, t *tested.Server, all ...*group) error {
	for _, g := range all {
		for _, r := range g.rows {
			if r.once && b.now.repetition > 0 || r.oursOnly && t.Side != tested.Ours {
				continue
			}
			if err := b.row(ctx, t, g, r); err != nil {
				return fmt.Errorf("%s, %s, %s: %w", g.name, r.name, t.Side, err)
			}
		}
	}
	return nil
}

// row measures a row on a server, and its limit.
func (b *bench) row(ctx context.Context, t *tested.Server, g *group, r *row) error {
	limit := r.limit
	if limit == 0 {
		limit = defaultLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := t.Settle(limited); err != nil {
		return err
	}
	begun := time.Now()
	profile := b.beginProfile(limited, t, g.name+" "+r.name)
	found, err := r.measure(limited, b, t)
	if err = errors.Join(err, profile()); err != nil {
		return err
	}
	b.progress("%s: %s, %s: %s (%v)", t.Side, g.name, r.name, found.text(r), time.Since(begun).Round(10*time.Millisecond))
	r.add(t.Side, found)
	if r.bare == nil || t.Side != b.plan.sides[0] {
		return nil
	}
	if found, err = r.bare(limited, b, found); err != nil {
		return fmt.Errorf("the limit: %w", err)
	}
	b.progress("%s: %s, %s: %s", bare, g.name, r.name, found.text(r))
	r.add(bare, found)
	return nil
}

// progress prints to the user how far the benchmark is.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %d/%d "+format+"\n", append([]any{time.Now().Format(time.TimeOnly), b.now.repetition + 1, b.plan.repeat}, args...)...)
}
