package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/runtimelimits"
	controller "github.com/levelwire/levelwire/components/controllermanager"
	"github.com/levelwire/levelwire/components/metrics"
	"github.com/levelwire/levelwire/components/proxy"
	"github.com/levelwire/levelwire/components/scheduler"
	"github.com/levelwire/levelwire/server"
)

func newUp() *cobra.Command {
	var flags serverFlags
	var log cli.Logging
	var parts upParts
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a whole cluster in this process",
		Long: `Run the API server, the controllers, the scheduler, a service proxy and a number
of simulated nodes in this process. The components talk to the server over
HTTPS like any other client. Objects survive a restart, unless --storage=memory.`,
		Example: `  levelwire up
  levelwire up --nodes 10 --storage=memory
  levelwire up --without scheduler,kubelets
  levelwire up --secure-port=0 --data-dir /tmp/cluster`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			if err := parts.complete(cmd); err != nil {
				return cli.Usage(err)
			}
			config, err := flags.complete(cmd)
			if err != nil {
				return err
			}
			if config.Logger, err = log.Logger(cmd.ErrOrStderr()); err != nil {
				return err
			}
			config.Components = parts.running.checks(&parts)
			s, err := server.Listen(config)
			if err != nil {
				return err
			}
			return up(cmd, s, parts, config.Logger, began)
		},
	}
	flags.register(cmd)
	explainUpstreamFlags(cmd)
	log.Register(cmd, "warn")
	parts.register(cmd)
	return cmd
}

// component is a part that is not the server. It runs for as long as its process.
type component struct {
	name string
	// closeIdle closes the connections to the server that no request uses.
	closeIdle func()
	run       func(context.Context) error
}

// up runs the server and the components until the command's context ends or
// one of them fails. The components end first, so that the server does not
// drain against them. When it is ready, it says how long that took since the command began.
func up(cmd *cobra.Command, s *server.Server, parts upParts, log *slog.Logger, began time.Time) error {
	serverCtx, stopServer := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer stopServer()
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	served := make(chan error, 1)
	go func() {
		defer stop() // a server that failed takes the components with it
		served <- s.Run(serverCtx)
	}()
	components, err := newComponents(s, parts, log)
	if err == nil {
		err = runComponents(ctx, s, components, func() {
			announce(cmd.OutOrStdout(), s,
				fmt.Sprintf("Levelwire is ready at %s after %s, with %s.", s.URL(), time.Since(began).Round(time.Millisecond), parts),
				append(append([]string{"  kubectl get nodes", ""}, signIn(s)...), "Ctrl-C stops it.")...)
		})
	}
	stopServer()
	return errors.Join(err, awaitDrain(served, components))
}

// signIn returns the lines about the page, if there is one.
func signIn(s *server.Server) []string {
	link := s.SignInLink()
	if link == "" {
		return nil
	}
	return []string{"See it at work in a browser on this machine; the link works once, within an hour:", "", "  " + link, ""}
}

// runComponents waits for the server and runs the components until ctx ends.
func runComponents(ctx context.Context, s *server.Server, components []component, ready func()) error {
	select {
	case <-s.Ready():
	case <-ctx.Done():
		return nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, c := range components {
		group.Go(func() error { return c.keepRunning(groupCtx) })
	}
	ready()
	group.Go(func() error { runtimelimits.Trim(groupCtx); return nil })
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
			c.closeIdle()
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

// newComponents makes the components, each with the identity that Kubernetes gives it, so
// that it can do what its default roles allow, and no more.
func newComponents(s *server.Server, parts upParts, log *slog.Logger) ([]component, error) {
	var components []component
	add := func(name, agent string, as user, make func(*client.Client, *identities) (runner, error)) error {
		if parts.leavesOut(name) {
			return nil
		}
		ids := &identities{server: s, agent: agent}
		c, err := ids.client(as)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		made, err := make(c, ids)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		components = append(components, component{name, ids.closeIdle, parts.running.note(name, made.Run)})
		return nil
	}
	err := errors.Join(
		add(partControllers, "controllers", user{"system:kube-controller-manager", nil}, func(c *client.Client, ids *identities) (runner, error) {
			return controller.NewManager(c, controller.Options{Logger: log, ClientFor: ids.serviceAccount, Controllers: parts.controllers})
		}),
		add(partScheduler, "scheduler", user{"system:kube-scheduler", nil}, func(c *client.Client, _ *identities) (runner, error) {
			return scheduler.New(c, scheduler.Options{Logger: log})
		}),
		add(partProxy, "proxy", user{"system:kube-proxy", nil}, func(c *client.Client, _ *identities) (runner, error) {
			return proxy.New(c, proxy.Options{Logger: log})
		}),
		add(partMetrics, "metrics", serviceAccount("metrics-server"), func(c *client.Client, ids *identities) (runner, error) {
			return metrics.New(c, metrics.Options{Installer: ids.administrator, Logger: log})
		}))
	starting := make(chan struct{}, startingNodes)
	for first := 0; first < parts.nodes; first += nodesPerConnection {
		group, groupErr := newNodes(s, first, min(nodesPerConnection, parts.nodes-first), parts.nodes, starting, log)
		components = append(components, group)
		err = errors.Join(err, groupErr)
	}
	return components, err
}

// user is what a client certificate of a component says.
type user struct {
	name   string
	groups []string
}

// installerAgent is the agent of the only requests of `up` that an administrator makes.
const installerAgent = "installer"

// identities makes the clients of a component, and remembers them.
type identities struct {
	server  *server.Server
	agent   string
	clients []*client.Client
	// installer is the administrator's client that was made last.
	installer *client.Client
}

func (i *identities) client(as user) (*client.Client, error) {
	config, err := i.server.UserConfig(as.name, as.groups...)
	if err != nil {
		return nil, err
	}
	c, err := newComponentClient(config, clientOptions(i.agent))
	if err == nil {
		i.clients = append(i.clients, c)
	}
	return c, err
}

// serviceAccount returns the client of a service account in kube-system. It is
// authenticated by a certificate, so that no token has to be made and renewed.
func (i *identities) serviceAccount(name string) (*client.Client, error) {
	return i.client(serviceAccount(name))
}

func serviceAccount(name string) user {
	return user{
		name:   "system:serviceaccount:" + metav1.NamespaceSystem + ":" + name,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + metav1.NamespaceSystem},
	}
}

// administrator returns a new client of the cluster's administrator, who the program's user
// is, for what is installed and not run.
func (i *identities) administrator() (*client.Client, error) {
	c, err := client.FromKubeconfig(i.server.Kubeconfig(), client.Options{UserAgent: clientOptions(installerAgent).UserAgent})
	if err == nil {
		i.installer = c
	}
	return c, err
}

// closeIdle closes the connections that no request uses. The component must have ended.
func (i *identities) closeIdle() {
	for _, c := range i.clients {
		c.CloseIdleConnections()
	}
	if i.installer != nil {
		i.installer.CloseIdleConnections()
	}
}

// runner is what all components are.
type runner interface{ Run(context.Context) error }
