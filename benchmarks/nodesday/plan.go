package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/measure"
	"github.com/levelwire/levelwire/benchmarks/serverbench/tested"
)

// plan is what is to be measured.
type plan struct {
	day           day
	steps         int
	duration      time.Duration
	perConnection int
	sides         []string
	levelwire     string
}

// writers is how many connections carry the writes.
const writers = 16

func (p *plan) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "nodesday")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills what is left
	fmt.Printf("%s nodes, %s pods; %s\n", measure.Grouped(p.day.nodes), measure.Grouped(p.day.pods()), measure.Describe(ctx))
	for _, side := range p.sides {
		scratch := filepath.Join(dir, side)
		if err := os.MkdirAll(scratch, 0o700); err != nil {
			return err
		}
		t := &tested.Server{Side: side}
		launcher := tested.Launcher{Dir: scratch, Levelwire: p.levelwire}
		if err := launcher.Launch(ctx, t, filepath.Join(scratch, "data")); err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		if err := errors.Join(p.live(ctx, t), t.Stop()); err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
	}
	return nil
}

// live measures a server that runs, step by step, until something breaks.
func (p *plan) live(ctx context.Context, t *tested.Server) error {
	c := &clients{day: &p.day}
	config, address, err := t.Access.Reach()
	if err != nil {
		return err
	}
	for range writers {
		conn, err := load.Dial(ctx, address, config, load.Options{})
		if err != nil {
			return err
		}
		defer conn.Close()
		c.conns = append(c.conns, conn)
	}
	begun := time.Now()
	if err := c.fill(ctx); err != nil {
		return err
	}
	filled := time.Since(begun)
	begun = time.Now()
	crowds, err := p.watch(ctx, t, c.served)
	defer func() {
		for _, w := range crowds {
			w.Close()
		}
	}()
	if err != nil {
		return err
	}
	fmt.Printf("\n%s: objects written in %v, watches opened in %v\n", t.Side, filled.Round(100*time.Millisecond), time.Since(begun).Round(100*time.Millisecond))
	factor := 1.0
	for range p.steps {
		s, err := p.measure(ctx, t, c, crowds, factor)
		if err != nil {
			return err
		}
		broken := s.broken(p.duration)
		s.print(os.Stdout, p.duration, broken)
		if len(broken) > 0 {
			break
		}
		factor *= 2
	}
	return nil
}
