package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/controllermanager"
	"github.com/levelwire/levelwire/components/kubelet"
	"github.com/levelwire/levelwire/components/proxy"
	"github.com/levelwire/levelwire/components/scheduler"
	"github.com/levelwire/levelwire/server"
)

// maxNodes is what the pod networks of `up` have room for.
const maxNodes = 250

func newUp() *cobra.Command {
	var flags serverFlags
	var log logging
	var nodes int
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a whole cluster in this process",
		Long: `Run the API server, the controllers, the scheduler, a service proxy and a number
of simulated nodes in this process. The components talk to the server over
HTTPS like any other client. Objects survive a restart, unless --storage=memory.`,
		Example: `  levelwire up
  levelwire up --nodes 10 --storage=memory
  levelwire up --secure-port=0 --data-dir /tmp/cluster`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if nodes < 0 || nodes > maxNodes {
				return usageError{fmt.Errorf("--nodes %d: it is 0 to %d", nodes, maxNodes)}
			}
			config, err := flags.complete(cmd)
			if err != nil {
				return err
			}
			if config.Logger, err = log.logger(cmd.ErrOrStderr()); err != nil {
				return err
			}
			s, err := server.Listen(config)
			if err != nil {
				return err
			}
			return up(cmd, s, nodes, config.Logger)
		},
	}
	flags.register(cmd)
	log.register(cmd, "warn")
	cmd.Flags().IntVar(&nodes, "nodes", 3, "how many nodes to simulate")
	return cmd
}

// component is a part that is not the server: a client of it that runs for as
// long as its process.
type component struct {
	name   string
	client *client.Client
	run    func(context.Context) error
}

// up runs the server and the components until the command's context ends or
// one of them fails. The components end first, so that the server does not
// drain against them.
func up(cmd *cobra.Command, s *server.Server, nodes int, log *slog.Logger) error {
	serverCtx, stopServer := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer stopServer()
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	served := make(chan error, 1)
	go func() {
		defer stop() // a server that failed takes the components with it
		served <- s.Run(serverCtx)
	}()
	components, err := newComponents(s.Kubeconfig(), nodes, log)
	if err == nil {
		err = runComponents(ctx, s, components, func(took time.Duration) {
			announce(cmd.OutOrStdout(), s,
				fmt.Sprintf("Levelwire is ready at %s after %s, with %d nodes.", s.URL(), took.Round(time.Millisecond), nodes),
				"  kubectl get nodes", "", "Ctrl-C stops it.")
		})
	}
	stopServer()
	return errors.Join(err, awaitDrain(served, components))
}

// runComponents waits for the server and runs the components until ctx ends.
func runComponents(ctx context.Context, s *server.Server, components []component, ready func(took time.Duration)) error {
	begin := time.Now()
	select {
	case <-s.Ready():
	case <-ctx.Done():
		return nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, c := range components {
		group.Go(func() error { return c.keepRunning(groupCtx) })
	}
	ready(time.Since(begin))
	group.Go(func() error { trim(groupCtx); return nil })
	return group.Wait()
}

// hangUpInterval is how often awaitDrain looks at the connections of components
// that have ended: a stream ends a moment after its reader.
const hangUpInterval = 5 * time.Millisecond

// awaitDrain waits for the server's end. Meanwhile it closes the components'
// connections: the server gives each that is open a second.
func awaitDrain(served <-chan error, components []component) error {
	ticker := time.NewTicker(hangUpInterval)
	defer ticker.Stop()
	for {
		for _, c := range components {
			c.client.CloseIdleConnections()
		}
		select {
		case err := <-served:
			return err
		case <-ticker.C:
		}
	}
}

// keepRunning runs the component; that it ends before ctx is a failure. What it
// says after the end of ctx is that it was interrupted, which is no failure.
func (c component) keepRunning(ctx context.Context) error {
	err := c.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errStopped
	}
	return fmt.Errorf("%s: %w", c.name, err)
}

func newComponents(kubeconfig string, nodes int, log *slog.Logger) ([]component, error) {
	var components []component
	add := func(name, agent string, make func(*client.Client) (runner, error)) error {
		c, err := newClient(kubeconfig, agent)
		if err != nil {
			return err
		}
		made, err := make(c)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		components = append(components, component{name, c, made.Run})
		return nil
	}
	err := errors.Join(
		add("controllers", "controllers", func(c *client.Client) (runner, error) {
			return controller.NewManager(c, controller.Options{Logger: log})
		}),
		add("scheduler", "scheduler", func(c *client.Client) (runner, error) {
			return scheduler.New(c, scheduler.Options{Logger: log})
		}),
		add("proxy", "proxy", func(c *client.Client) (runner, error) {
			return proxy.New(c, proxy.Options{Logger: log})
		}))
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i+1)
		err = errors.Join(err, add(name, "kubelet", func(c *client.Client) (runner, error) {
			return kubelet.New(c, kubelet.Options{
				NodeName: name,
				PodCIDR:  netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i + 1), 0}), 24),
				NodeIP:   netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}),
				Logger:   log,
			})
		}))
	}
	return components, err
}

// runner is what all components are.
type runner interface{ Run(context.Context) error }
