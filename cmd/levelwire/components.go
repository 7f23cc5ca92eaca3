package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/kubeconfig"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	controller "github.com/levelwire/levelwire/components/controllermanager"
	"github.com/levelwire/levelwire/components/kubelet"
	"github.com/levelwire/levelwire/components/proxy"
	"github.com/levelwire/levelwire/components/scheduler"
)

// clientFlags are the flags of the commands that talk to an API server.
type clientFlags struct {
	kubeconfig string
	log        cli.Logging
}

func (f *clientFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the API server (default: $KUBECONFIG, then levelwire-data/admin.kubeconfig)")
	f.log.Register(cmd, "info")
}

// connect makes the client. It sends nothing yet.
func (f *clientFlags) connect(cmd *cobra.Command, component string) (*client.Client, *slog.Logger, error) {
	log, err := f.log.Logger(cmd.ErrOrStderr())
	if err != nil {
		return nil, nil, err
	}
	path, err := cli.FindKubeconfig(f.kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	c, err := newClient(path, component)
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig %s: %w", path, err)
	}
	return c, log.With("component", component), nil
}

// config returns how to reach the API server, for further clients.
func (f *clientFlags) config() (*rest.Config, error) {
	path, err := cli.FindKubeconfig(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	config, _, err := kubeconfig.Config(kubeconfig.Options{File: path})
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", path, err)
	}
	return config, nil
}

func newClient(file, component string) (*client.Client, error) {
	config, _, err := kubeconfig.Config(kubeconfig.Options{File: file})
	if err != nil {
		return nil, err
	}
	return newComponentClient(config, clientOptions(component))
}

// newComponentClient makes the client of a component. It says nothing about the server's
// warnings, as Kubernetes' components do: the controllers watch deprecated kinds, such as
// Endpoints, because somebody may use them, and who runs a component cannot change that.
func newComponentClient(config *rest.Config, opts client.Options) (*client.Client, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	return client.New(config, opts)
}

func clientOptions(component string) client.Options {
	return client.Options{UserAgent: "levelwire-" + component + "/" + cli.Version(), ContentType: client.Protobuf}
}

func newControllers() *cobra.Command {
	var flags clientFlags
	var election electionFlags
	var asAccounts bool
	var controllers []string
	cmd := &cobra.Command{
		Use:   "controllers",
		Short: "Run the controller manager against an API server",
		Long: `Run the controllers: they create and delete pods for ReplicaSets, Deployments
and the other workloads, keep EndpointSlices, collect garbage, empty deleted
namespaces and watch over nodes. All of them share one set of watches. They
wait for an API server that is not there yet, and go on after one was away.

All controllers act as the user of the kubeconfig, which then needs the rights
of all of them; see --use-service-account-credentials.

Of several such processes one at a time acts; see --leader-elect.`,
		Example: `  levelwire controllers --kubeconfig levelwire-data/admin.kubeconfig
  levelwire controllers --use-service-account-credentials --kubeconfig controllers.kubeconfig
  levelwire controllers --leader-elect-identity "$POD_NAME"`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := controller.CheckNames(controllers); err != nil {
				return cli.Usage(fmt.Errorf("--controllers: %w", err))
			}
			c, log, err := flags.connect(cmd, "controllers")
			if err != nil {
				return err
			}
			config, err := flags.config()
			if err != nil {
				return err
			}
			run, err := election.elected(c, log, func(ctx context.Context) error {
				opts := controller.Options{Logger: log, Controllers: controllers}
				if asAccounts {
					accounts := &accountClients{config: config, issuer: c, agent: "controllers", log: log}
					defer accounts.close()
					opts.ClientFor = func(account string) (*client.Client, error) { return accounts.client(ctx, account) }
				}
				manager, err := controller.NewManager(c, opts)
				if err != nil {
					return err
				}
				return manager.Run(ctx)
			})
			if err != nil {
				return err
			}
			return component{"controllers", c.CloseIdleConnections, run}.keepRunning(cmd.Context())
		},
	}
	flags.register(cmd)
	election.register(cmd, "kube-controller-manager")
	registerControllers(cmd, &controllers)
	cmd.Flags().BoolVar(&asAccounts, "use-service-account-credentials", false, "let each controller act as its own service account in kube-system, by tokens that the user of the kubeconfig creates: the role system:kube-controller-manager is enough for that user")
	return cmd
}

func newScheduler() *cobra.Command {
	var flags clientFlags
	var election electionFlags
	var opts scheduler.Options
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Run the scheduler against an API server",
		Long: `Run the scheduler: it watches pods that have no node yet and binds each to one
that is ready, has the resources they request, and agrees with their node
selectors, affinities and tolerations.

Of several such processes one at a time acts; see --leader-elect. Schedulers of
different names need leases of different names.`,
		Example: `  levelwire scheduler --kubeconfig levelwire-data/admin.kubeconfig`,
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.connect(cmd, "scheduler")
			if err != nil {
				return err
			}
			opts.Logger = log
			run, err := election.elected(c, log, func(ctx context.Context) error {
				s, err := scheduler.New(c, opts)
				if err != nil {
					return err
				}
				return s.Run(ctx)
			})
			if err != nil {
				return err
			}
			return component{"scheduler", c.CloseIdleConnections, run}.keepRunning(cmd.Context())
		},
	}
	flags.register(cmd)
	election.register(cmd, "kube-scheduler")
	cmd.Flags().StringVar(&opts.Name, "scheduler-name", "default-scheduler", "schedulerName of the pods to bind")
	return cmd
}

func newKubelet() *cobra.Command {
	var flags clientFlags
	var opts kubelet.Options
	var podCIDR string
	cmd := &cobra.Command{
		Use:   "kubelet",
		Short: "Simulate a node and its pods against an API server",
		Long: `Simulate a node: register it, keep its lease, and report the pods bound to it as
Pending, Running and, for those of Jobs, Succeeded. No container runs.`,
		Example: `  levelwire kubelet --node-name node-1
  levelwire kubelet --node-name slow --start-after 20s --pod-cidr 10.244.7.0/24`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if podCIDR != "" {
				network, err := netip.ParsePrefix(podCIDR)
				if err != nil {
					return cli.Usage(fmt.Errorf("--pod-cidr %q is not a network such as 10.244.1.0/24", podCIDR))
				}
				opts.PodCIDR = network
			}
			c, log, err := flags.connect(cmd, "kubelet")
			if err != nil {
				return err
			}
			opts.Logger = log
			k, err := kubelet.New(c, opts)
			if err != nil {
				return err
			}
			return component{k.Name(), c.CloseIdleConnections, k.Run}.keepRunning(cmd.Context())
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&opts.NodeName, "node-name", "", "name of the node (default: the host's)")
	cmd.Flags().StringVar(&podCIDR, "pod-cidr", "", "network of the pods' addresses (default: a /24 that follows from the node's name)")
	cmd.Flags().DurationVar(&opts.StartAfter, "start-after", 0, "how long containers take to start (default 500ms)")
	cmd.Flags().DurationVar(&opts.StopAfter, "stop-after", 0, "how long they take to stop, within the grace period (default 200ms)")
	cmd.Flags().DurationVar(&opts.RunFor, "run-for", 0, "how long a Job's containers run (default 2s)")
	return cmd
}

func newProxy() *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Keep a table of Services and their endpoints, and print its changes",
		Long: `Keep what a node's service proxy would program: for each address and port of a
Service, the ready endpoints behind it. Each line of the table is printed when
it appears or changes, and again after "gone: " when it goes. No packet is
forwarded.`,
		Example: `  levelwire proxy --kubeconfig levelwire-data/admin.kubeconfig`,
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, log, err := flags.connect(cmd, "proxy")
			if err != nil {
				return err
			}
			printer := newRulePrinter(func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) })
			p, err := proxy.New(c, proxy.Options{Logger: log, Changed: printer.changed})
			if err != nil {
				return err
			}
			run := func(ctx context.Context) error {
				var printing sync.WaitGroup
				defer printing.Wait()
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				printing.Go(func() { printer.run(ctx, p.Table()) })
				return p.Run(ctx)
			}
			return component{"proxy", c.CloseIdleConnections, run}.keepRunning(cmd.Context())
		},
	}
	flags.register(cmd)
	return cmd
}

// rulePrinter prints the lines of a table that have changed. Each time it makes all lines: changes that come meanwhile wait for
// the next time, together, and hold up no informer.
type rulePrinter struct {
	wake  chan struct{}
	shown map[proxy.Frontend]string
	print func(string)
}

func newRulePrinter(print func(string)) *rulePrinter {
	return &rulePrinter{wake: make(chan struct{}, 1), shown: map[proxy.Frontend]string{}, print: print}
}

// changed has run print what has changed.
func (p *rulePrinter) changed(*proxy.Table) {
	select {
	case p.wake <- struct{}{}:
	default: // it has not begun since the change before
	}
}

// run prints until ctx ends.
func (p *rulePrinter) run(ctx context.Context, table *proxy.Table) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			p.show(table)
		}
	}
}

func (p *rulePrinter) show(table *proxy.Table) {
	present := map[proxy.Frontend]string{}
	for _, rule := range table.Rules() {
		line := rule.String()
		present[rule.Frontend] = line
		if p.shown[rule.Frontend] != line {
			p.print(line)
		}
	}
	for frontend, line := range p.shown {
		if _, ok := present[frontend]; !ok {
			p.print("gone: " + line)
		}
	}
	p.shown = present
}
