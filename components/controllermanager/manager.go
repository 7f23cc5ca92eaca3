package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/components/controllermanager/internal/revisionhistory"
)

// Options configures a Manager.
type Options struct {
	// Logger receives what operators should see. Default slog.Default().
	Logger *slog.Logger
}

// Manager runs all controllers against one API server.
type Manager struct {
	factory  *informer.Factory
	recorder *events.Recorder
	log      *slog.Logger
	running  []running
}

type running struct {
	name string
	runner
}

// NewManager makes a manager. It sends nothing yet.
func NewManager(cl *client.Client, opts Options) (*Manager, error) {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	factory := informer.NewFactory(cl, informer.Options{Logger: opts.Logger})
	source, err := pods.NewSource(factory)
	if err != nil {
		return nil, err
	}
	revisions, err := revisionhistory.New(cl, factory)
	if err != nil {
		return nil, err
	}
	s := &shared{
		client: cl, factory: factory, pods: source, revisions: revisions, log: opts.Logger,
		recorder: events.New(cl, "controller-manager", "", opts.Logger),
	}
	m := &Manager{factory: factory, recorder: s.recorder, log: opts.Logger}
	for _, c := range controllers {
		made, err := c.make(s)
		if err != nil {
			return nil, fmt.Errorf("controller %s: %w", c.name, err)
		}
		m.running = append(m.running, running{c.name, made})
	}
	return m, nil
}

var errStopped = errors.New("stopped by itself")

// Run runs the controllers until ctx ends or one of them fails, which ends
// the others. It blocks, waits for an API server that is not there yet, and
// leaves nothing running. A manager runs once.
func (m *Manager) Run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	background.Go(func() { m.recorder.Run(ctx) })

	m.factory.Start(ctx)
	defer m.factory.Shutdown()
	group, groupCtx := errgroup.WithContext(ctx)
	for _, c := range m.running {
		group.Go(func() error {
			err := c.Run(groupCtx)
			if groupCtx.Err() != nil {
				return nil
			}
			if err == nil {
				err = errStopped
			}
			return fmt.Errorf("controller %s: %w", c.name, err)
		})
	}
	m.log.Info("controllers are running", "count", len(m.running))
	return group.Wait()
}
