package controller

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
)

// RunOptions says what controllers that run together have in common.
type RunOptions struct {
	// Factory makes their informers. It is started at once and shut down at the
	// end. Default: another client starts and stops the informers.
	Factory *informer.Factory
	// Leader, if there are several processes of which one at a time must act.
	// Those that wait keep their caches up to date, and stand for election only
	// once these are complete. Default: no election.
	Leader *leader.Elector
}

// Run runs controllers until ctx ends or one of them fails, which ends the
// others. It blocks, and leaves nothing running. The error is nil if ctx has
// ended. If it is [leader.ErrLost], another client leads: the process should
// end then and be started again, because its in-memory state may be out of
// date.
func Run(ctx context.Context, opts RunOptions, controllers ...*Controller) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if opts.Factory != nil {
		opts.Factory.Start(ctx)
		defer opts.Factory.Shutdown()
	}
	if opts.Leader == nil {
		return runAll(ctx, controllers)
	}
	if opts.Factory != nil {
		if err := opts.Factory.WaitForSync(ctx); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	err := opts.Leader.Run(ctx, func(ctx context.Context) error { return runAll(ctx, controllers) })
	if errors.Is(err, leader.ErrLost) {
		return err
	}
	return unlessEnded(ctx, err)
}

// errStopped means that a controller ended before its context.
var errStopped = errors.New("ended without being asked to")

func runAll(ctx context.Context, controllers []*Controller) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, c := range controllers {
		group.Go(func() error {
			if err := c.Run(groupCtx); err != nil || groupCtx.Err() != nil {
				return err
			}
			return fmt.Errorf("controller %s: %w", c.opts.Name, errStopped)
		})
	}
	return unlessEnded(ctx, group.Wait())
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
