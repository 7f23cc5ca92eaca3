package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/levelwire/levelwire/server"
)

// serverFlags are the flags of the commands that run an API server.
type serverFlags struct {
	config      server.Config
	storage     string
	serviceCIDR string
	coalesced   bool
}

func (f *serverFlags) register(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.StringVar(&c.DataDir, "data-dir", "levelwire-data", "directory for certificates, admin.kubeconfig and, with embedded storage, all objects")
	flags.StringVar(&c.BindAddress, "bind-address", "127.0.0.1", "IP address to listen on; 0.0.0.0 is every IPv4 address of the machine")
	flags.IntVar(&c.SecurePort, "secure-port", 6443, "port for HTTPS; 0 takes any free one")
	flags.StringSliceVar(&c.Hosts, "tls-hosts", nil, "further host names and addresses that clients reach the server by")
	flags.StringVar(&f.storage, "storage", string(server.Embedded), "where objects live: embedded (etcd in this process, durable), memory (gone at exit) or etcd (an etcd cluster)")
	flags.StringSliceVar(&c.EtcdServers, "etcd-servers", nil, "URLs of the etcd cluster, with --storage=etcd, which they imply")
	flags.StringVar(&c.EtcdCAFile, "etcd-cafile", "", "PEM file of the authority that signed etcd's certificates")
	flags.StringVar(&c.EtcdCertFile, "etcd-certfile", "", "PEM file of the certificate to show etcd")
	flags.StringVar(&c.EtcdKeyFile, "etcd-keyfile", "", "PEM file of that certificate's key")
	f.registerHistory(cmd)
	flags.DurationVar(&c.SelfCheckInterval, "self-check-interval", 0, "how often the caches are compared with the store; negative: never (default 10m)")
	flags.DurationVar(&c.ShutdownDelay, "shutdown-delay-duration", 0, "how long to go on serving after SIGTERM, while /readyz fails: as long as a load balancer needs to stop sending new connections")
	flags.StringVar((*string)(&c.HTTP2Server), "http2-server", string(server.HTTP2Levelwire), "what answers over HTTP/2: levelwire (made for many watches on a connection) or net/http (Go's own: events cost six times the processor time)")
	flags.BoolVar(&c.Profiling, "profiling", false, "serve profiles of the process at /debug/pprof/: kubectl get --raw '/debug/pprof/profile?seconds=10' > cpu.pprof")
	f.registerIdentity(cmd)
	flags.StringVar(&f.serviceCIDR, "service-cidr", "10.96.0.0/16", "network that Services get their addresses from")
}

// registerHistory adds the flags about what is kept of the past: docs/operators/history.md.
func (f *serverFlags) registerHistory(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.DurationVar(&c.CompactionInterval, "compaction-interval", 0, "how often old versions are forgotten; negative: never (default 5m)")
	flags.DurationVar(&c.CompactionRetention, "compaction-retention", 0, "for how long old versions are kept at least (default 5m)")
	flags.IntVar(&c.CompactionRevisions, "compaction-revisions", 0, "how many old versions are kept at least, whatever their age; negative: none (default 32768 with embedded storage, unless --compaction-retention is set)")
	flags.Var((*byteSize)(&c.CompactionBytes), "compaction-bytes", "how large they may be together, whatever the other two ask for; negative: no limit (default 1Gi with embedded storage, 256Mi in memory, none with etcd)")
	flags.BoolVar(&f.coalesced, "coalesced-history", true, "answer a watch from before the kept events with the latest change of each object since, and the deletions; false: refuse it with 410, as kube-apiserver does")
	flags.IntVar(&c.TombstoneLimit, "tombstone-limit", 0, "how many deletions of each resource are remembered for that (default 50000)")
	flags.Var((*byteSize)(&c.TombstoneBytes), "tombstone-bytes", "how many bytes these may take (default 32Mi)")
	flags.DurationVar(&c.TombstoneAge, "tombstone-age", 0, "for how long they are remembered (default 24h)")
}

// registerIdentity adds the flags of authentication and authorization, under the
// names that Kubernetes gives them.
func (f *serverFlags) registerIdentity(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.StringVar(&c.TLSCertFile, "tls-cert-file", "", "PEM file of the serving certificate (default: one that the server makes)")
	flags.StringVar(&c.TLSKeyFile, "tls-private-key-file", "", "PEM file of that certificate's key")
	flags.StringVar(&c.ClientCAFile, "client-ca-file", "", "PEM file of a further authority that certifies users: common name is the user, organizations are the groups")
	flags.StringVar(&c.TokenAuthFile, "token-auth-file", "", "file of bearer tokens: lines of token,user,uid and, quoted, groups")
	flags.StringArrayVar(&c.ServiceAccountIssuers, "service-account-issuer", nil, "issuer of the tokens of service accounts; several are accepted, the first is in new tokens (default https://kubernetes.default.svc.cluster.local)")
	flags.StringVar(&c.ServiceAccountSigningKeyFile, "service-account-signing-key-file", "", "PEM file of the private key that signs these tokens (default: a key that the server makes)")
	flags.StringSliceVar(&c.ServiceAccountKeyFiles, "service-account-key-file", nil, "PEM files of further keys or certificates that verify these tokens")
	flags.StringSliceVar(&c.APIAudiences, "api-audiences", nil, "what the server calls itself in tokens (default: the first issuer)")
	flags.StringSliceVar(&c.AuthorizationModes, "authorization-mode", []string{"AlwaysAllow"}, "what decides which requests users may make; AlwaysAllow is the only one")
	flags.StringSliceVar(&c.DisableAdmissionPlugins, "disable-admission-plugins", nil, "admission plugins that have no say: "+strings.Join(server.AdmissionPlugins(), ", "))
}

// complete checks what the server does not see.
func (f *serverFlags) complete(cmd *cobra.Command) (server.Config, error) {
	c := f.config
	c.Storage = server.Storage(f.storage)
	if len(c.EtcdServers) > 0 && !cmd.Flags().Changed("storage") {
		c.Storage = server.Etcd
	}
	if cmd.Flags().Changed("secure-port") && c.SecurePort == 0 {
		c.SecurePort = server.AnyPort
	} else if c.SecurePort < 0 {
		return c, usageError{fmt.Errorf("--secure-port %d is not a port number", c.SecurePort)}
	}
	cidr, err := netip.ParsePrefix(f.serviceCIDR)
	if err != nil {
		return c, usageError{fmt.Errorf("--service-cidr %q is not a network such as 10.96.0.0/16", f.serviceCIDR)}
	}
	c.ServiceCIDR = cidr
	c.ExactHistory = !f.coalesced
	c.Version = version()
	return c, nil
}

func newServe() *cobra.Command {
	var flags serverFlags
	var log logging
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the API server",
		Long: `Run the API server alone. Certificates and admin.kubeconfig are made in the data
directory at the first start. With --storage=etcd the server waits for the
cluster. SIGTERM ends watches, lets requests finish and closes the storage.`,
		Example: `  levelwire serve
  levelwire serve --storage=memory --secure-port=0
  levelwire serve --etcd-servers=https://10.0.0.1:2379 --etcd-cafile=ca.crt --etcd-certfile=c.crt --etcd-keyfile=c.key`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			go func() {
				select {
				case <-s.Ready():
					announce(cmd.OutOrStdout(), s, "The API server is ready at "+s.URL())
					trim(cmd.Context())
				case <-cmd.Context().Done():
				}
			}()
			return s.Run(cmd.Context())
		},
	}
	flags.register(cmd)
	log.register(cmd, "info")
	return cmd
}

// announce says where the server is and how to reach it.
func announce(w io.Writer, s *server.Server, headline string, more ...string) {
	lines := append([]string{headline, "", "  export KUBECONFIG=" + shellQuote(s.Kubeconfig())}, more...)
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// shellQuote quotes a path that a shell would take apart.
func shellQuote(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// errStopped is the end of a part that should have gone on.
var errStopped = errors.New("ended without being asked to")
