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
	// ClientFor returns the client with which a controller reads and writes, apart from
	// its informers and its events, for the name of its service account in kube-system,
	// such as deployment-controller: so each needs no more than the role
	// system:controller:NAME. It is called while the manager is made, once for each name.
	//
	// Default: the manager's own client, which then needs the rights of all controllers.
	// That client has the informers, which all controllers share, and the events in any
	// case. With ClientFor, the role system:kube-controller-manager is enough for it.
	ClientFor func(serviceAccount string) (*client.Client, error)
	// Controllers says which controllers run, as kube-controller-manager's --controllers
	// does: "*" is all of them, a name is that one, and a name after "-" is not that one,
	// whatever else says so. Names are those of kube-controller-manager; see Names.
	// Default: all.
	Controllers []string
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
	if opts.ClientFor == nil {
		opts.ClientFor = func(string) (*client.Client, error) { return cl, nil }
	}
	s := &shared{
		factory: factory, pods: source, revisions: revisions, log: opts.Logger,
		recorder: events.New(cl, "controller-manager", events.Options{Logger: opts.Logger}),
	}
	m := &Manager{factory: factory, recorder: s.recorder, log: opts.Logger}
	chosen, err := choose(opts.Controllers)
	if err != nil {
		return nil, err
	}
	for _, c := range chosen {
		clients := make([]*client.Client, len(c.accounts))
		for i, account := range c.accounts {
			if clients[i], err = opts.ClientFor(account); err != nil {
				return nil, fmt.Errorf("controller %s: client of %s: %w", c.name, account, err)
			}
		}
		made, err := c.make(s, clients)
		if err != nil {
			return nil, fmt.Errorf("controller %s: %w", c.name, err)
		}
		m.running = append(m.running, running{c.name, made})
	}
	return m, nil
}

var errStopped = errors.New("stopped by itself")

// Run runs the controllers until parent ends or one of them fails, which ends
// the others. It blocks, waits for an API server that is not there yet, and
// leaves nothing running. The error is nil if parent has ended. A manager runs once.
func (m *Manager) Run(parent context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	background.Go(func() { _ = m.recorder.Run(ctx) })

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
	err := group.Wait()
	if parent.Err() != nil { // it ends before the informers do, and groupCtx perhaps after them
		return nil
	}
	return err
}
