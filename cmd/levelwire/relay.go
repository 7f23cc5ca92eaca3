package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/server"
)

// relayFlags are the flags of levelwire relay.
type relayFlags struct {
	config    server.Config
	relay     server.Relay
	coalesced bool
	audit     auditLogFlags
}

func (f *relayFlags) register(cmd *cobra.Command) {
	flags, c, r := cmd.Flags(), &f.config, &f.relay
	flags.StringVar(&r.Kubeconfig, "kubeconfig", "", "kubeconfig of the upstream, the API server to stand in front of (default: as kubectl finds it, or the pod's service account)")
	flags.StringVar(&r.Context, "context", "", "context of the kubeconfig (default: its current one)")
	flags.DurationVar(&r.MaxStaleness, "max-staleness", 0, "how old the caches may be, because the upstream does not answer, while /readyz succeeds (default 1m)")
	flags.DurationVar(&r.IdleTimeout, "idle-timeout", 0, "for how long the cache of a resource is kept that no client uses (default 30m)")
	flags.StringVar(&r.Shard, "shard", "", "the part of each collection to keep, so that several relays share it: i/n, counted from 0, or a shard selector (KEP-5866); other lists and watches are passed on (default: the whole)")
	flags.BoolVar(&r.Deltas, "deltas", false, "for links with little bandwidth: have the upstream send compressed lists and, if it is levelwire too, changes as differences from what the relay has; costs both processor time")
	flags.DurationVar(&r.AllowedTTL, "authorization-cache-ttl", 0, "for how long a permission that the upstream has given is cached (default 10s)")
	flags.DurationVar(&r.DeniedTTL, "authorization-cache-denied-ttl", 0, "for how long a refusal of the upstream is cached (default 5s)")
	flags.DurationVar(&r.TokenTTL, "token-cache-ttl", 0, "for how long the upstream's answer about a bearer token is cached (default 10s)")
	flags.StringVar(&c.DataDir, "data-dir", "levelwire-relay", "directory for certificates and admin.kubeconfig")
	flags.StringVar(&c.BindAddress, "bind-address", "127.0.0.1", "IP address to listen on; 0.0.0.0 is every IPv4 address of the machine")
	flags.IntVar(&c.SecurePort, "secure-port", 6443, "port for HTTPS; 0 takes any free one")
	flags.StringSliceVar(&c.Hosts, "tls-hosts", nil, "further host names and addresses that clients reach the relay by")
	flags.StringVar(&c.TLSCertFile, "tls-cert-file", "", "PEM file of the serving certificate (default: one that the relay makes)")
	flags.StringVar(&c.TLSKeyFile, "tls-private-key-file", "", "PEM file of that certificate's key")
	registerTLS(cmd, c)
	flags.StringVar(&c.ClientCAFile, "client-ca-file", "", "PEM file of the authority that certifies the upstream's users: common name is the user, organizations are the groups")
	flags.StringSliceVar(&c.APIAudiences, "api-audiences", nil, "what tokens must be for (default: what the upstream takes)")
	flags.Var(&optionalBool{&c.Authentication.Anonymous}, "anonymous-auth", "make requests without credentials as the user system:anonymous, as far as the upstream lets that user (true), or refuse them all (false) (default: only health checks and /version are answered)")
	flags.Lookup("anonymous-auth").NoOptDefVal = "true"
	flags.DurationVar(&c.ShutdownDelay, "shutdown-delay-duration", 0, "how long to go on serving after SIGTERM, while /readyz fails: as long as a load balancer needs to stop sending new connections")
	flags.IntVar(&c.MaxRequestsInFlight, "max-requests-inflight", 0, "requests at a time that read (default 800)")
	flags.IntVar(&c.MaxMutatingRequestsInFlight, "max-mutating-requests-inflight", 0, "requests at a time that write (default 400)")
	registerSharedLimits(cmd, c)
	flags.BoolVar(&c.Profiling, "profiling", false, "serve profiles of the process at /debug/pprof/")
	registerCoalescedHistory(cmd, c, &f.coalesced)
	registerMemory(cmd, c)
	registerHTTP2Server(cmd, c)
	f.audit.register(cmd, c)
}

// complete makes the configuration of the server.
func (f *relayFlags) complete(cmd *cobra.Command) (server.Config, error) {
	c := f.config
	if cmd.Flags().Changed("secure-port") && c.SecurePort == 0 {
		c.SecurePort = server.AnyPort
	} else if c.SecurePort < 0 {
		return c, cli.Usage(fmt.Errorf("--secure-port %d is not a port number", c.SecurePort))
	}
	if err := f.audit.complete(&c); err != nil {
		return c, cli.Usage(err)
	}
	c.ExactHistory = !f.coalesced
	c.Relay = &f.relay
	c.Version = cli.Version()
	return c, nil
}

func newRelay() *cobra.Command {
	var flags relayFlags
	var log cli.Logging
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Serve another API server's API from watch caches",
		Long: `Run a relay in front of any Kubernetes API server: kube-apiserver, levelwire, or
another relay. It answers lists and watches from caches, at the upstream's
resourceVersions, with one stream for each resource whatever the number of its
clients. Everything else is passed on. Users are authenticated, and their
requests authorized, by the upstream. admin.kubeconfig in the data directory
acts with the upstream credentials of the relay.`,
		Example: `  levelwire relay --kubeconfig ~/.kube/config
  levelwire relay --kubeconfig upstream.kubeconfig --client-ca-file ca.crt --bind-address 0.0.0.0`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := flags.complete(cmd)
			if err != nil {
				return err
			}
			return listenAndServe(cmd, config, &log, "The relay is ready at ")
		},
	}
	flags.register(cmd)
	log.Register(cmd, "info")
	return cmd
}
