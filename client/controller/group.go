package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
)

// Runnable is what the function [Run] runs: a TypedController of any type of
// key, or another part of a program, a webhook server for instance.
type Runnable interface {
	// Name stands in errors.
	Name() string
	// Run blocks until ctx ends, and returns an error only for another reason.
	Run(ctx context.Context) error
}

// LeaderElectionRunnable is a Runnable that says whether it needs to lead; a
// controller is one. A Runnable that does not say needs to.
type LeaderElectionRunnable interface {
	Runnable
	// NeedLeaderElection returns false for what runs in all processes at once,
	// from the start.
	NeedLeaderElection() bool
}

// RunnableFunc returns a Runnable that calls run. Among controllers that elect a
// leader it runs where they do.
func RunnableFunc(name string, run func(ctx context.Context) error) Runnable {
	return runnableFunc{name, run}
}

type runnableFunc struct {
	name string
	run  func(ctx context.Context) error
}

// Name implements Runnable.
func (r runnableFunc) Name() string { return r.name }

// Run implements Runnable.
func (r runnableFunc) Run(ctx context.Context) error { return r.run(ctx) }

// RunOptions says what controllers that run together have in common.
type RunOptions struct {
	// Factory makes their informers. It is started at once and shut down at the
	// end. Default: the caller starts and stops the informers.
	Factory *informer.Factory
	// Factories are further ones, treated as Factory is: those of other
	// clusters, say.
	Factories []*informer.Factory
	// Leader, if there are several processes of which one at a time must act.
	// Those that wait keep their caches up to date, and stand for election only
	// once these are complete. With several clusters the Lease is in one of
	// them. Consistent counts what the leader before has written; see RequireResourceVersion.
	// Default: no election. Options.SyncTimeout of the controllers bounds this
	// wait, too: the shortest one counts.
	Leader *leader.Elector
	// Logger receives what Run waits for, if that takes long, before it stands for
	// election. Default: slog.Default().
	Logger *slog.Logger
}

// Run runs controllers until ctx ends or one of them fails, which ends the
// others. It blocks, also if there is nothing to run, and leaves nothing running. The error is nil if ctx has
// ended. If it is [leader.ErrLost], another process leads: this one should
// end then and be started again, because its in-memory state may be out of
// date.
func Run(ctx context.Context, opts RunOptions, runnables ...Runnable) error {
	if err := opts.check(runnables); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factories := opts.factories()
	for _, f := range factories {
		f.Start(ctx)
		defer f.Shutdown()
	}
	elected, always := runnables, []Runnable(nil)
	if opts.Leader != nil {
		elected, always = splitByElection(runnables)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, r := range always {
		group.Go(func() error { return runOne(groupCtx, r) })
	}
	group.Go(func() error { return runElected(groupCtx, opts, elected) })
	group.Go(func() error {
		<-groupCtx.Done() // a program without runnables is one of informers
		return nil
	})
	err := group.Wait()
	if errors.Is(err, leader.ErrLost) {
		return err
	}
	return unlessEnded(ctx, err)
}

func (o RunOptions) check(runnables []Runnable) error {
	if slices.Contains(o.Factories, nil) {
		return errors.New("controllers: one of RunOptions.Factories is nil")
	}
	if n := slices.Index(runnables, nil); n >= 0 {
		return fmt.Errorf("controllers: what is to be run as number %d is nil", n+1)
	}
	return nil
}

func (o RunOptions) factories() []*informer.Factory {
	if o.Factory == nil {
		return o.Factories
	}
	return append([]*informer.Factory{o.Factory}, o.Factories...)
}

func splitByElection(runnables []Runnable) (elected, always []Runnable) {
	for _, r := range runnables {
		if l, ok := r.(LeaderElectionRunnable); ok && !l.NeedLeaderElection() {
			always = append(always, r)
		} else {
			elected = append(elected, r)
		}
	}
	return elected, always
}

// runElected runs what needs to lead, as soon as this process does.
func runElected(ctx context.Context, opts RunOptions, runnables []Runnable) error {
	if opts.Leader == nil {
		return runAll(ctx, runnables)
	}
	if err := opts.awaitInformers(ctx, shortestSyncTimeout(runnables)); err != nil {
		return err
	}
	return opts.Leader.Run(ctx, func(ctx context.Context) error { return runAll(ctx, runnables) })
}

// awaitInformers waits until the informers hold complete lists. The error names those
// that do not after timeout, unless that is 0.
func (o RunOptions) awaitInformers(ctx context.Context, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("SyncTimeout of %v is over before the election", timeout))
		defer cancel()
	}
	for _, f := range o.factories() {
		if err := o.awaitFactory(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// syncReport is how often Run logs which informers it waits for.
const syncReport = 30 * time.Second

// errNoElectionYet says in the log what waits for informers.
var errNoElectionYet = errors.New("this process does not stand for election before")

func (o RunOptions) awaitFactory(ctx context.Context, f *informer.Factory) error {
	log := o.Logger
	if log == nil {
		log = slog.Default()
	}
	for {
		round, cancel := context.WithTimeoutCause(ctx, syncReport, errNoElectionYet)
		err := f.WaitForSync(round)
		cancel()
		if err == nil || !errors.Is(err, errNoElectionYet) {
			return err
		}
		if ctx.Err() != nil { // it ended at the same moment, and its cause is the one to tell
			return f.WaitForSync(ctx)
		}
		log.Warn("waiting for informers", "error", err)
	}
}

// shortestSyncTimeout returns 0 if no controller has a SyncTimeout.
func shortestSyncTimeout(runnables []Runnable) (shortest time.Duration) {
	for _, r := range runnables {
		c, ok := r.(interface{ syncTimeout() time.Duration })
		if !ok {
			continue
		}
		if d := c.syncTimeout(); d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// errStopped means that a controller ended before its context.
var errStopped = errors.New("ended without being asked to")

func runAll(ctx context.Context, runnables []Runnable) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, r := range runnables {
		group.Go(func() error { return runOne(groupCtx, r) })
	}
	return unlessEnded(ctx, group.Wait())
}

func runOne(ctx context.Context, r Runnable) error {
	if err := r.Run(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%s: %w", r.Name(), errStopped)
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
