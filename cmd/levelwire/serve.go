package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/cmd/levelwire/internal/runtimelimits"
	"github.com/levelwire/levelwire/server"
)

// serverFlags are the flags of the commands that run an API server.
type serverFlags struct {
	config      server.Config
	storage     string
	serviceCIDR string
	coalesced   bool
	fairness    bool
	audit       auditLogFlags
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
	flags.BoolVar(&c.AcceptOtherStorage, "accept-other-storage", false, "serve an etcd cluster although --data-dir remembers another one and it may have servers of its own: for one start, after the cluster has taken the place of the former one; its other servers end, and have to be started again")
	registerEncryption(cmd, c)
	flags.Var((*cli.ByteSize)(&c.QuotaBytes), "quota-backend-bytes", "how large the database of embedded storage may grow; beyond it, writes are refused (default 8Gi)")
	flags.Var((*cli.ByteSize)(&c.DiskReserveBytes), "disk-reserve-bytes", "how much of the disk embedded storage leaves free, by refusing writes; negative: nothing, and the process ends when the disk is full (default 256Mi)")
	f.registerHistory(cmd)
	flags.DurationVar(&c.SelfCheckInterval, "self-check-interval", 0, "how often the caches are compared with the store; negative: never (default 10m)")
	flags.DurationVar(&c.ShutdownDelay, "shutdown-delay-duration", 0, "how long to go on serving after SIGTERM, while /readyz fails: as long as a load balancer needs to stop sending new connections")
	registerHTTP2Server(cmd, c)
	flags.BoolVar(&f.fairness, "enable-priority-and-fairness", true, "divide the requests at a time by FlowSchemas and PriorityLevelConfigurations; false: each user has a share, and none waits in a queue")
	flags.IntVar(&c.MaxRequestsInFlight, "max-requests-inflight", 0, "requests at a time, together with --max-mutating-requests-inflight; without priority and fairness: of those that read (default 800)")
	flags.IntVar(&c.MaxMutatingRequestsInFlight, "max-mutating-requests-inflight", 0, "requests at a time, together with --max-requests-inflight; without priority and fairness: of those that write (default 400)")
	registerSharedLimits(cmd, c)
	flags.BoolVar(&c.Profiling, "profiling", false, "serve profiles of the process at /debug/pprof/: kubectl get --raw '/debug/pprof/profile?seconds=10' > cpu.pprof")
	flags.BoolVar(&c.UI, "ui", true, "serve a page that shows the server at work, at /ui/; what it shows, its user may get from the API")
	f.registerIdentity(cmd)
	f.audit.register(cmd, c)
	flags.StringVar(&f.serviceCIDR, "service-cidr", "10.96.0.0/16", "network that Services get their addresses from")
}

// formerCoalescedFlag is what --coalesced-history was called at first. It is not
// marked as deprecated, because cobra would say that on standard output.
const formerCoalescedFlag = "compacted-history"

// registerHistory adds the flags about what is kept of the past: docs/operators/history.md.
func (f *serverFlags) registerHistory(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.DurationVar(&c.CompactionInterval, "compaction-interval", 0, "how often old versions are forgotten; negative: never (default 5m)")
	flags.DurationVar(&c.CompactionRetention, "compaction-retention", 0, "for how long old versions are kept at least (default 5m)")
	flags.IntVar(&c.CompactionRevisions, "compaction-revisions", 0, "how many old versions are kept at least, whatever their age; negative: none (default 32768 with embedded storage, unless --compaction-retention is set)")
	flags.Var((*cli.ByteSize)(&c.CompactionBytes), "compaction-bytes", "how large they may be together, whatever the other two ask for; negative: no limit (default 1Gi with embedded storage, 256Mi in memory, none with etcd)")
	registerCoalescedHistory(cmd, c, &f.coalesced)
	flags.BoolVar(&f.coalesced, formerCoalescedFlag, true, "the former name of --coalesced-history")
	_ = flags.MarkHidden(formerCoalescedFlag) // cannot fail: the flag exists
	registerMemory(cmd, c)
}

// registerCoalescedHistory adds the flags about what watches from before the kept events get.
func registerCoalescedHistory(cmd *cobra.Command, c *server.Config, coalesced *bool) {
	flags := cmd.Flags()
	flags.BoolVar(coalesced, "coalesced-history", true, "answer a watch from before the kept events with the latest change of each object since, and the deletions; false: refuse it with 410, as kube-apiserver does")
	flags.IntVar(&c.TombstoneLimit, "tombstone-limit", 0, "how many deletions of each resource are remembered for that (default 50000)")
	flags.Var((*cli.ByteSize)(&c.TombstoneBytes), "tombstone-bytes", "how many bytes these may take (default 32Mi)")
	flags.DurationVar(&c.TombstoneAge, "tombstone-age", 0, "for how long they are remembered (default 24h)")
}

// registerMemory adds the flags about what caches take: docs/operators/memory.md.
func registerMemory(cmd *cobra.Command, c *server.Config) {
	cmd.Flags().BoolVar(&c.CompressObjects, "compress-objects", false, "hold objects that were not written lately compressed: a third of the memory or less for many objects that are alike, and some microseconds for each that is read")
}

func registerHTTP2Server(cmd *cobra.Command, c *server.Config) {
	cmd.Flags().StringVar((*string)(&c.HTTP2Server), "http2-server", string(server.HTTP2Levelwire), "what answers over HTTP/2: levelwire (made for many watches on a connection) or net/http (Go's own: events cost six times the processor time)")
}

// registerIdentity adds the flags of authentication and authorization, under the
// names that Kubernetes gives them.
func (f *serverFlags) registerIdentity(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.StringVar(&c.TLSCertFile, "tls-cert-file", "", "PEM file of the serving certificate (default: one that the server makes)")
	flags.StringVar(&c.TLSKeyFile, "tls-private-key-file", "", "PEM file of that certificate's key")
	registerTLS(cmd, c)
	flags.StringVar(&c.ClientCAFile, "client-ca-file", "", "PEM file of a further authority that certifies users: common name is the user, organizations are the groups")
	registerAuthentication(cmd, &c.Authentication)
	flags.StringVar(&c.TokenAuthFile, "token-auth-file", "", "file of bearer tokens: lines of token,user,uid and, quoted, groups")
	flags.StringArrayVar(&c.ServiceAccountIssuers, "service-account-issuer", nil, "issuer of the tokens of service accounts; several are accepted, the first is in new tokens (default https://kubernetes.default.svc.cluster.local)")
	flags.StringVar(&c.ServiceAccountSigningKeyFile, "service-account-signing-key-file", "", "PEM file of the private key that signs these tokens (default: a key that the server makes)")
	flags.StringSliceVar(&c.ServiceAccountKeyFiles, "service-account-key-file", nil, "PEM files of further keys or certificates that verify these tokens")
	registerTokens(cmd, c)
	flags.StringSliceVar(&c.APIAudiences, "api-audiences", nil, "what the server calls itself in tokens (default: the first issuer)")
	flags.StringSliceVar(&c.AuthorizationModes, "authorization-mode", []string{"Node", "RBAC"}, "what decides which requests users may make, asked in this order until one allows or denies: "+strings.Join(server.AuthorizationModes(), ", "))
	flags.BoolVar(&c.FilteredLists, "filtered-lists", false, "lets users list and watch what they may see in all namespaces, by the parameter levelwireVisible; needs RBAC before webhooks in --authorization-mode or --authorization-config")
	registerAuthorizers(cmd, c)
	flags.StringSliceVar(&c.DisableAdmissionPlugins, "disable-admission-plugins", nil, "admission plugins that have no say: "+strings.Join(server.AdmissionPlugins(), ", "))
	flags.StringSliceVar(&c.EnableAdmissionPlugins, "enable-admission-plugins", nil, "admission plugins that run although they are off by default: see docs/operators/admission-plugins.md")
	registerAdmissionConfig(cmd, c)
}

// registerAuthorizers adds the flags of authorizers other than those of --authorization-mode alone.
func registerAuthorizers(cmd *cobra.Command, c *server.Config) {
	flags, webhook := cmd.Flags(), &c.AuthorizationWebhook
	flags.StringVar(&c.AuthorizationConfigFile, "authorization-config", "", "AuthorizationConfiguration file of Kubernetes, in place of --authorization-mode and --authorization-webhook-*: authorizers, and webhooks with conditions; read again when it changes")
	flags.StringVar(&webhook.ConfigFile, "authorization-webhook-config-file", "", "kubeconfig of the server that --authorization-mode=Webhook asks")
	flags.StringVar(&webhook.Version, "authorization-webhook-version", "v1", "version of the SubjectAccessReviews that it is sent: v1 or v1beta1")
	flags.DurationVar(&webhook.AllowedTTL, "authorization-webhook-cache-authorized-ttl", 0, "for how long its permissions are cached; negative: not at all (default 5m)")
	flags.DurationVar(&webhook.DeniedTTL, "authorization-webhook-cache-unauthorized-ttl", 0, "for how long its refusals are cached; negative: not at all (default 30s)")
}

func registerAdmissionConfig(cmd *cobra.Command, c *server.Config) {
	cmd.Flags().StringVar(&c.AdmissionConfigFile, "admission-control-config-file", "", "AdmissionConfiguration file of Kubernetes, for PodSecurity, EventRateLimit, PodNodeSelector, PodTolerationRestriction, ResourceQuota and the users as which webhooks are called")
}

// registerTokens adds the flags of what the tokens of service accounts say.
func registerTokens(cmd *cobra.Command, c *server.Config) {
	flags := cmd.Flags()
	flags.DurationVar(&c.ServiceAccountMaxTokenExpiration, "service-account-max-token-expiration", 0, "bound on the lifetime of new tokens, an hour at least; a request for more gets as much (default: 2^32 seconds, and more is refused)")
	flags.BoolVar(&c.ServiceAccountExtendTokenExpiration, "service-account-extend-token-expiration", false, "have tokens that pods get without asking end after a year, and not after an hour, for programs that read their token once")
	flags.StringVar(&c.ServiceAccountJWKSURI, "service-account-jwks-uri", "", "https URL of the keys that verify tokens, in /.well-known/openid-configuration (default: /openid/v1/jwks of the server)")
}

func registerEncryption(cmd *cobra.Command, c *server.Config) {
	flags := cmd.Flags()
	flags.StringVar(&c.EncryptionProviderConfig, "encryption-provider-config", "", "EncryptionConfiguration file of Kubernetes: which objects are encrypted in the storage, and with which keys (default: none)")
	flags.BoolVar(&c.EncryptionProviderConfigAutomaticReload, "encryption-provider-config-automatic-reload", false, "read that file again when it changes, instead of only at start")
}

// registerSharedLimits adds the flags of what users share, whatever they ask for.
func registerSharedLimits(cmd *cobra.Command, c *server.Config) {
	flags := cmd.Flags()
	flags.IntVar(&c.MaxWatches, "max-watches", 0, "open watches of all users, of which each has a share (default 1000000)")
	flags.IntVar(&c.MaxWatchesPerUser, "max-watches-per-user", 0, "open watches of one user but administrators, if its share is not less; beware of accounts that run on each node (default: only a share of --max-watches)")
	flags.IntVar(&c.MaxConnections, "max-connections", 0, "open connections of all users, of which each has a share (default: what the limit of open files leaves)")
	flags.IntVar(&c.MaxConnectionsPerUser, "max-connections-per-user", 0, "open connections of one user, or of the service accounts of one namespace; not of proxies that name users in headers, but of those that impersonate, and of accounts that run on each node (default: only a share of --max-connections)")
	flags.Var((*cli.ByteSize)(&c.MaxBodyBytesInFlight), "max-body-bytes-inflight", "bodies of requests in memory at a time, of all users, of which each has a share (default 255Mi)")
	flags.Var((*cli.ByteSize)(&c.MaxSelectorBytes), "max-selector-bytes", "selectors of the open watches of all users, of which each has a share (default 16Mi)")
}

// registerTLS adds the flags of how connections are secured.
func registerTLS(cmd *cobra.Command, c *server.Config) {
	flags := cmd.Flags()
	flags.StringVar(&c.TLSMinVersion, "tls-min-version", "", "oldest version of TLS that is accepted: VersionTLS12 or VersionTLS13 (default VersionTLS12)")
	flags.StringSliceVar(&c.TLSCipherSuites, "tls-cipher-suites", nil, "cipher suites that are accepted with TLS 1.2, by Go's names (default: Go's)")
}

// complete checks what the server does not see.
func (f *serverFlags) complete(cmd *cobra.Command) (server.Config, error) {
	c := f.config
	if cmd.Flags().Changed(formerCoalescedFlag) {
		cmd.PrintErrf("--%s is deprecated: use --coalesced-history instead, the next release does not know the old name\n", formerCoalescedFlag)
	}
	c.Storage = server.Storage(f.storage)
	if len(c.EtcdServers) > 0 && !cmd.Flags().Changed("storage") {
		c.Storage = server.Etcd
	}
	if cmd.Flags().Changed("secure-port") && c.SecurePort == 0 {
		c.SecurePort = server.AnyPort
	} else if c.SecurePort < 0 {
		return c, cli.Usage(fmt.Errorf("--secure-port %d is not a port number", c.SecurePort))
	}
	cidr, err := netip.ParsePrefix(f.serviceCIDR)
	if err != nil {
		return c, cli.Usage(fmt.Errorf("--service-cidr %q is not a network such as 10.96.0.0/16", f.serviceCIDR))
	}
	c.ServiceCIDR = cidr
	if err := f.audit.complete(&c); err != nil {
		return c, cli.Usage(err)
	}
	c.ExactHistory = !f.coalesced
	c.DisablePriorityAndFairness = !f.fairness
	c.Version = cli.Version()
	err = completeAuthorization(cmd, &c)
	return c, err
}

// completeAuthorization refuses flags whose place a file takes, and drops their defaults.
func completeAuthorization(cmd *cobra.Command, c *server.Config) (err error) {
	if c.AuthorizationConfigFile == "" {
		return nil
	}
	cmd.Flags().Visit(func(set *pflag.Flag) {
		if set.Name == "authorization-mode" || strings.HasPrefix(set.Name, "authorization-webhook-") {
			err = cli.Usage(fmt.Errorf("--authorization-config cannot be combined with --%s: name the authorizer in the file", set.Name))
		}
	})
	c.AuthorizationModes, c.AuthorizationWebhook = nil, server.AuthorizationWebhook{}
	return err
}

func newServe() *cobra.Command {
	var flags serverFlags
	var log cli.Logging
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the API server",
		Long: `Run the API server alone. Certificates and admin.kubeconfig are made in the data
directory at the first start. With --storage=etcd the server waits for the
cluster. SIGTERM ends watches, lets requests finish and closes the storage.`,
		Example: `  levelwire serve
  levelwire serve --storage=memory --secure-port=0
  levelwire serve --etcd-servers=https://10.0.0.1:2379 --etcd-cafile=ca.crt --etcd-certfile=c.crt --etcd-keyfile=c.key`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := flags.complete(cmd)
			if err != nil {
				return err
			}
			return listenAndServe(cmd, config, &log, "The API server is ready at ")
		},
	}
	flags.register(cmd)
	explainUpstreamFlags(cmd)
	log.Register(cmd, "info")
	return cmd
}

// listenAndServe serves until the command's context ends. When the server is ready, it announces it.
func listenAndServe(cmd *cobra.Command, config server.Config, log *cli.Logging, headline string) (err error) {
	if config.Logger, err = log.Logger(cmd.ErrOrStderr()); err != nil {
		return err
	}
	s, err := server.Listen(config)
	if err != nil {
		return err
	}
	started := runtimelimits.Starting()
	defer started()
	go func() {
		select {
		case <-s.Ready():
			started()
			announce(cmd.OutOrStdout(), s, headline+s.URL())
			runtimelimits.Trim(cmd.Context())
		case <-cmd.Context().Done():
		}
	}()
	return s.Run(cmd.Context())
}

// announce says where the server is and how to reach it.
func announce(w io.Writer, s *server.Server, headline string, more ...string) {
	lines := append([]string{headline, "", "  export KUBECONFIG=" + cli.ShellQuote(s.Kubeconfig())}, more...)
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// errStopped is the end of a part that should have gone on.
var errStopped = errors.New("ended without being asked to")
