package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/levelwire/levelwire/controller"
	"github.com/levelwire/levelwire/kubelet"
	"github.com/levelwire/levelwire/proxy"
	"github.com/levelwire/levelwire/scheduler"
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
HTTPS like everybody else. Objects survive a restart, unless --storage=memory.`,
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

// component is a part that runs beside the server.
type component struct {
	name string
	run  func(context.Context) error
}

// up runs the server and the components. When it is asked to end, the
// components go first, so that the server does not drain against them.
func up(cmd *cobra.Command, s *server.Server, nodes int, log *slog.Logger) error {
	begin := time.Now()
	serverCtx, stopServer := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer stopServer()
	served := make(chan error, 1)
	go func() { served <- s.Run(serverCtx) }()

	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	group, groupCtx := errgroup.WithContext(ctx)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	case <-s.Ready():
		components, err := newComponents(s.Kubeconfig(), nodes, log)
		if err != nil {
			return err
		}
		for _, c := range components {
			group.Go(func() error { return c.keepRunning(groupCtx) })
		}
		announce(cmd.OutOrStdout(), s,
			fmt.Sprintf("Levelwire is ready at %s after %s, with %d nodes.", s.URL(), time.Since(begin).Round(time.Millisecond), nodes),
			"  kubectl get nodes", "", "Ctrl-C stops it.")
	}
	select {
	case err := <-served: // the server failed on its own
		stop()
		_ = group.Wait()
		return err
	case <-groupCtx.Done():
	}
	err := group.Wait()
	stopServer()
	if serverErr := <-served; err == nil {
		err = serverErr
	}
	return err
}

// keepRunning runs the component; that it ends before ctx is a failure.
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
	client, err := newClient(kubeconfig, "controllers")
	if err != nil {
		return nil, err
	}
	manager, err := controller.NewManager(client, controller.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	if client, err = newClient(kubeconfig, "scheduler"); err != nil {
		return nil, err
	}
	sched, err := scheduler.New(client, scheduler.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	if client, err = newClient(kubeconfig, "proxy"); err != nil {
		return nil, err
	}
	table, err := proxy.New(client, proxy.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	components := []component{{"controllers", manager.Run}, {"scheduler", sched.Run}, {"proxy", table.Run}}
	for i := range nodes {
		if client, err = newClient(kubeconfig, "kubelet"); err != nil {
			return nil, err
		}
		node, err := kubelet.New(client, kubelet.Options{
			NodeName: fmt.Sprintf("node-%d", i+1),
			PodCIDR:  netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i + 1), 0}), 24),
			NodeIP:   netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}),
			Logger:   log,
		})
		if err != nil {
			return nil, err
		}
		components = append(components, component{node.Name(), node.Run})
	}
	return components, nil
}
