package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/apiserver/audit"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/encryption"
)

// Storage names where objects are kept.
type Storage string

// The kinds of storage.
const (
	// Embedded is etcd in this process, durable in the data directory.
	Embedded Storage = "embedded"
	// Memory is a store in this process that is lost when the server stops.
	Memory Storage = "memory"
	// Etcd is a cluster of etcd servers.
	Etcd Storage = "etcd"
)

// Storages lists all kinds.
var Storages = []Storage{Embedded, Memory, Etcd}

// AdmissionPlugins lists the names of the admission plugins of this server, in
// the order in which they run.
func AdmissionPlugins() []string { return admission.Names() }

// Config configures a server. The zero value of every member but DataDir means
// its documented default.
type Config struct {
	// DataDir holds certificates, the admin's kubeconfig and, with embedded
	// storage, the objects. It is made if it does not exist. Required.
	DataDir string
	// BindAddress is the IP address to listen on. Default 127.0.0.1.
	BindAddress string
	// SecurePort is the HTTPS port; AnyPort lets the system choose. Default
	// 6443.
	SecurePort int
	// Listener, if not nil, takes the connections in place of a port: the server
	// closes it. Its address must be a *net.TCPAddr. It is for tests that open no
	// port, and for programs that are given their socket.
	Listener net.Listener
	// Hosts are further names and addresses that the serving certificate is
	// valid for.
	Hosts []string

	// Relay, if not nil, makes the server a relay: it has no storage, and answers from
	// caches of another API server, its upstream. The members about storage, history in
	// storage, admission, service accounts and authorization are then not used: the
	// upstream decides. Default nil.
	Relay *Relay

	// Storage is where objects are kept. Default Embedded.
	Storage Storage
	// OpenStore, if not nil, opens the storage in place of what Storage names,
	// once, when the server runs; the server closes it. It is for programs that
	// fill a store, or wrap one, themselves.
	OpenStore func(ctx context.Context) (storage.Store, error)
	// ReadOnly serves what is in the storage and writes nothing: neither what clients ask
	// for, which get 405, nor what a server adds to its storage by itself, such as the
	// namespace default or default roles. It is for storage that shows a recording or a
	// snapshot of another server, and needs OpenStore. Priority and fairness, aggregated
	// servers, compaction and self-checks are off.
	ReadOnly bool
	// EtcdServers are the URLs of an etcd cluster, for Storage Etcd.
	EtcdServers []string
	// EtcdCAFile, EtcdCertFile and EtcdKeyFile are for etcd over TLS.
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string
	// AcceptOtherStorage serves an etcd cluster that is another one than DataDir
	// remembers, although it may have servers of its own: they end, and have to be
	// started again, because the versions of all objects begin above those that clients
	// of either cluster know. Without it, Run refuses such a cluster. Embedded storage
	// has no other servers, and is always accepted.
	AcceptOtherStorage bool

	// EncryptionProviderConfig is a file with an EncryptionConfiguration of Kubernetes
	// (apiserver.config.k8s.io/v1): which objects are encrypted in the storage, and with
	// which keys. The first provider of a resource writes, all read. Default: nothing is
	// encrypted.
	EncryptionProviderConfig string
	// EncryptionProviderConfigAutomaticReload reads that file again when it changes.
	EncryptionProviderConfigAutomaticReload bool

	// Audit says which requests are written to an audit log, and where that is. Default:
	// none.
	Audit AuditConfig

	// TracingConfigFile is a file with a TracingConfiguration of Kubernetes
	// (apiserver.config.k8s.io/v1): where spans of requests and of events are sent by OTLP, and
	// of how many requests. It is read at the start. Default: nothing is traced, at no cost.
	// See docs/operators/tracing.md and KEP-647.
	TracingConfigFile string

	// QuotaBytes bounds the database of embedded storage: writes that make it larger
	// are refused beyond it. Default 8 GiB.
	QuotaBytes int64
	// DiskReserveBytes is how much of the disk embedded storage leaves free: writes
	// are refused when there is less. Default 256 MiB; negative: nothing is kept
	// free, and the process ends when the disk is full.
	DiskReserveBytes int64

	// CompactionInterval is how often the store is compacted; negative: never.
	// Default 5 min.
	CompactionInterval time.Duration
	// CompactionRetention is how much history is kept at least. Default 5 min.
	CompactionRetention time.Duration
	// CompactionRevisions is how many revisions of history are kept beyond that,
	// whatever their age; negative: none. Default with embedded storage, if
	// CompactionRetention is not set, 32768: as many events as the cache of one
	// resource keeps. Otherwise none.
	CompactionRevisions int
	// CompactionBytes is how many bytes of history are kept at most, whatever the
	// other two ask for: the keys and values of all objects that were written. 1
	// MiB at least; negative: no limit. Default 1 GiB with embedded storage, 256 MiB
	// in memory, which never keeps more. An etcd cluster has none: its operator decides
	// how much room it has.
	CompactionBytes int64
	// ExactHistory refuses watches from before the events that are kept, as
	// kube-apiserver does (410 Expired). By default they get coalesced history: the
	// latest change of each object, and the deletions.
	ExactHistory bool
	// TombstoneLimit is how many deletions of each resource the caches keep for
	// coalesced history, and how many of all resources are kept in the store when it
	// is compacted. Default 50000.
	TombstoneLimit int
	// TombstoneBytes is how many bytes these may take, in memory as in the store.
	// Default 32 MiB.
	TombstoneBytes int64
	// TombstoneAge is for how long they are kept. Default 24 h.
	TombstoneAge time.Duration
	// CompressObjects has the caches hold objects compressed that were not written lately:
	// less memory, and some microseconds for each object that is read.
	CompressObjects bool
	// Now is the clock by which history and tombstones age. Default
	// time.Now.
	Now func() time.Time
	// SelfCheckInterval is how often the caches are compared with the store.
	// Default 10 min; negative: never.
	SelfCheckInterval time.Duration

	// ServiceCIDR is where Services get their cluster IPs from. Default
	// 10.96.0.0/16.
	ServiceCIDR netip.Prefix

	// TLSCertFile and TLSKeyFile are a serving certificate in place of the one
	// that the server makes for itself. They go together.
	TLSCertFile, TLSKeyFile string
	// TLSMinVersion is the oldest version of TLS that is accepted, VersionTLS12 or VersionTLS13.
	// Default VersionTLS12.
	TLSMinVersion string
	// TLSCipherSuites are those that are accepted with TLS 1.2, by the names of crypto/tls.
	// Default: Go's.
	TLSCipherSuites []string
	// ClientCAFile is a further authority, in PEM, that certifies users.
	ClientCAFile string
	// Authentication are further ways to be authenticated. Default: none.
	Authentication Authentication
	// TokenAuthFile has bearer tokens: lines of token, user, uid and, quoted,
	// groups.
	TokenAuthFile string
	// ServiceAccountIssuers are issuers of service account tokens: the first is in
	// new tokens, all are accepted. Default
	// https://kubernetes.default.svc.cluster.local.
	ServiceAccountIssuers []string
	// ServiceAccountSigningKeyFile is the private key that signs these tokens.
	// Default: a key that the server makes and keeps in DataDir.
	ServiceAccountSigningKeyFile string
	// ServiceAccountKeyFiles are further keys, or certificates, that verify
	// them.
	ServiceAccountKeyFiles []string
	// ServiceAccountMaxTokenExpiration bounds the lifetime of new tokens, an hour at least: a
	// request for more gets as much, and a warning. Default: 2^32 seconds, and a request for
	// more is refused.
	ServiceAccountMaxTokenExpiration time.Duration
	// ServiceAccountExtendTokenExpiration has the tokens that pods get without asking end after a
	// year, as kube-apiserver does unless it is told not to, for programs that read their
	// token once. Default: after an hour.
	ServiceAccountExtendTokenExpiration bool
	// ServiceAccountJWKSURI is the https URL of the keys that verify tokens, in
	// /.well-known/openid-configuration. Default: /openid/v1/jwks of the server itself.
	ServiceAccountJWKSURI string
	// APIAudiences are the audiences of the server: a token must be for one of them.
	// Default: the first issuer.
	APIAudiences []string

	// AuthorizationModes name the authorizers (see the function of that name), which
	// are asked in this order until one allows or denies. The group system:masters may
	// do everything, whatever they say; admin.kubeconfig is one of them. Default Node and
	// RBAC, with Kubernetes' default roles: other users may do what roles and bindings
	// give them, and at first little more than discovery. AlwaysAllow allows every
	// authenticated user everything. Source:
	// https://kubernetes.io/docs/reference/access-authn-authz/authorization/.
	AuthorizationModes []string
	// AuthorizationWebhook is for the mode Webhook.
	AuthorizationWebhook AuthorizationWebhook
	// AuthorizationConfigFile is a file of the kind AuthorizationConfiguration
	// (apiserver.config.k8s.io/v1): a list of authorizers, webhooks with conditions in CEL
	// among them. It takes the place of the two above, which must be empty then. It is read
	// again when it changes, and open watches are decided about again; the authorizers
	// other than webhooks must stay. Source: KEP-3221.
	AuthorizationConfigFile string
	// FilteredLists lets users ask for what they may see of a resource in all namespaces,
	// instead of everything or nothing: by lists and watches with the parameter
	// levelwireVisible, and by informers. Only roles and bindings count, so RBAC must be
	// among the AuthorizationModes, or in the AuthorizationConfigFile, before every webhook.
	// Default: the parameter is ignored, as Kubernetes ignores it. See
	// docs/users/filtered-lists.md.
	FilteredLists bool
	// DisableAdmissionPlugins names admission plugins that do not run, for any
	// request. Without ServiceAccount, the server creates no accounts either.
	DisableAdmissionPlugins []string
	// EnableAdmissionPlugins names admission plugins that run although they are off by
	// default, as in Kubernetes. Those that are on by default need not be named. Of a
	// plugin that is both enabled and disabled, disabling counts.
	EnableAdmissionPlugins []string
	// AdmissionConfigFile is an AdmissionConfiguration of apiserver.config.k8s.io/v1. Of
	// the plugins, PodSecurity can be configured (its defaults, and what is exempt:
	// PodSecurityConfiguration), EventRateLimit, which needs its limits, PodNodeSelector,
	// PodTolerationRestriction, ResourceQuota (limitedResources), and the users as which MutatingAdmissionWebhook and
	// ValidatingAdmissionWebhook call webhooks (WebhookAdmissionConfiguration). It is
	// read at the start. Default: Kubernetes' defaults, by which labels and annotations
	// of namespaces alone count.
	AdmissionConfigFile string

	// Components are components of the control plane that run in this process, for component
	// statuses (kubectl get componentstatuses): each returns what is wrong with it, or nil, soon
	// after its context has ended at the latest. controller-manager and scheduler are otherwise asked
	// at /healthz of their ports on this machine, 10257 and 10259, as kube-apiserver does. Default:
	// none.
	Components map[string]func(context.Context) error

	// CatchUpTimeout is how long a watch waits, without an event, for a version that
	// another server on the same store has sent and this one has not reached, before
	// it ends with 429 (try again). Default 5 s.
	CatchUpTimeout time.Duration
	// ShutdownDelay is how long the server goes on serving after the shutdown has
	// begun and /readyz fails: as long as a load balancer needs to notice.
	// Default 0.
	ShutdownDelay time.Duration
	// ShutdownTimeout is how long running requests, and connections that clients keep
	// open, may delay the shutdown. Default 10 s.
	ShutdownTimeout time.Duration

	// DisablePriorityAndFairness leaves FlowSchemas and PriorityLevelConfigurations without
	// effect: each user has a share of the requests at a time, and none waits in a queue.
	DisablePriorityAndFairness bool
	// MaxRequestsInFlight and MaxMutatingRequestsInFlight are together how many requests
	// the server works on at a time: the seats of all priority levels. Without priority
	// and fairness, the first bounds the reads and the second the writes. Defaults 800 and
	// 400.
	MaxRequestsInFlight, MaxMutatingRequestsInFlight int

	// MaxWatches bounds the open watches: each user has a share, administrators have as
	// many for themselves. Default 1,000,000.
	MaxWatches int
	// MaxWatchesPerUser bounds those of each user but administrators, if its share is not
	// less. Default: only the share does.
	MaxWatchesPerUser int
	// MaxConnections bounds the open connections: each user has a share, and some are kept for
	// administrators, nodes and components of the control plane, and for clients that have yet
	// to say who they are. Default: what the limit of open files (RLIMIT_NOFILE) leaves beside
	// what the store needs.
	MaxConnections int
	// MaxConnectionsPerUser bounds those of each user, and of the service accounts of each
	// namespace but kube-system together; not those of administrators, nodes, components of the
	// control plane, and proxies that name users in headers. Default: only the share does.
	MaxConnectionsPerUser int

	// MaxBodyBytesInFlight bounds the bodies of requests that are in memory at the same time, and
	// MaxSelectorBytes the selectors of open watches: each user has a share, administrators
	// have as much for themselves. Defaults 255 MiB and 16 MiB.
	MaxBodyBytesInFlight, MaxSelectorBytes int64

	// HTTP2Server is the implementation of HTTP/2. Default HTTP2Levelwire, which is
	// made for many watches on a connection. HTTP2NetHTTP is Go's own: widely used, at
	// six times the processor time for events.
	HTTP2Server HTTP2Server
	// Profiling serves profiles of the whole process at /debug/pprof/, as
	// Kubernetes' servers do, to users that may read that path.
	Profiling bool
	// UI serves a page that shows the server at work, at /ui/. Its files are public; what it
	// shows, its user may get from the API.
	UI bool
	// Version is reported by /version.
	Version string
	// Logger receives what operators should see. Default: slog.Default().
	Logger *slog.Logger

	tls        *tls.Config        // of the listener, without certificates
	encryption *encryption.Config // the content of EncryptionProviderConfig
	tracing    *tracing.Config    // the content of TracingConfigFile
}

// AuditConfig configures the audit log.
type AuditConfig = audit.Config

// AuditDelivery configures how the audit log, or its webhook, gets events.
type AuditDelivery = audit.Delivery

// AnyPort as SecurePort lets the system choose a free port.
const AnyPort = -1

const (
	defaultPort       = 6443
	defaultSelfCheck  = 10 * time.Minute
	defaultBind       = "127.0.0.1"
	defaultServiceNet = "10.96.0.0/16"
	defaultIssuer     = "https://kubernetes.default.svc.cluster.local"
	// minServiceBits leaves two addresses between a network's first and last.
	minServiceBits = 2
)

// HTTP2Server names an implementation of HTTP/2.
type HTTP2Server = apiserver.HTTP2Server

// The servers of HTTP/2 for Config.HTTP2Server.
const (
	HTTP2Levelwire = apiserver.HTTP2Levelwire
	HTTP2NetHTTP   = apiserver.HTTP2NetHTTP
)

// ConfigError is an error of the configuration itself: the command line is wrong,
// not the machine.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ConfigError) Unwrap() error { return e.Err }

// ensureDefaults fills absent members and refuses impossible ones. Its errors name
// the flags of the command, because most users set those.
func (c *Config) ensureDefaults() error {
	if c.DataDir == "" {
		return errors.New("--data-dir must not be empty")
	}
	if c.BindAddress == "" {
		c.BindAddress = defaultBind
	}
	if net.ParseIP(c.BindAddress) == nil {
		return fmt.Errorf("--bind-address %q is not an IP address", c.BindAddress)
	}
	if c.SecurePort == 0 {
		c.SecurePort = defaultPort
	}
	if c.SecurePort < AnyPort || c.SecurePort > 65535 {
		return fmt.Errorf("--secure-port %d is not a port number", c.SecurePort)
	}
	if c.Storage == "" {
		c.Storage = Embedded
	}
	if !c.ServiceCIDR.IsValid() {
		c.ServiceCIDR = netip.MustParsePrefix(defaultServiceNet)
	}
	if c.ServiceCIDR.Addr().BitLen()-c.ServiceCIDR.Bits() < minServiceBits {
		return fmt.Errorf("--service-cidr %s has no room for services", c.ServiceCIDR)
	}
	switch c.HTTP2Server {
	case "":
		c.HTTP2Server = HTTP2Levelwire
	case HTTP2Levelwire, HTTP2NetHTTP:
	default:
		return fmt.Errorf("--http2-server %q is neither %s nor %s", c.HTTP2Server, HTTP2Levelwire, HTTP2NetHTTP)
	}
	if err := c.checkLimits(); err != nil {
		return err
	}
	if c.ReadOnly {
		if c.OpenStore == nil {
			return errors.New("Config.ReadOnly needs Config.OpenStore: other storage must be written to")
		}
		c.DisablePriorityAndFairness, c.CompactionInterval, c.SelfCheckInterval = true, -1, -1
	}
	setDefault(&c.SelfCheckInterval, defaultSelfCheck)
	if c.ShutdownDelay < 0 {
		return fmt.Errorf("--shutdown-delay-duration %s is negative", c.ShutdownDelay)
	}
	if c.ShutdownTimeout < 0 {
		return fmt.Errorf("the time to shut down, %s, is negative", c.ShutdownTimeout)
	}
	if err := c.completeHistory(); err != nil {
		return err
	}
	if err := c.Relay.complete(); err != nil {
		return err
	}
	if err := c.checkUpstream(); err != nil {
		return err
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if err := c.validateStorage(); err != nil {
		return err
	}
	if err := c.readEncryption(); err != nil {
		return err
	}
	if err := c.readTracing(); err != nil {
		return err
	}
	if err := c.Audit.Validate(); err != nil {
		return err
	}
	return c.completeIdentity()
}

// checkLimits refuses limits of users that leave nothing.
func (c *Config) checkLimits() error {
	if c.MaxWatches < 0 || c.MaxConnections < 0 {
		return fmt.Errorf("--max-watches %d and --max-connections %d must not be negative; 0 is the default", c.MaxWatches, c.MaxConnections)
	}
	if err := checkPerUser("watches", cmp.Or(c.MaxWatches, apiserver.DefaultMaxWatches), c.MaxWatchesPerUser); err != nil {
		return err
	}
	if err := checkPerUser("connections", cmp.Or(c.MaxConnections, listen.DefaultLimit()), c.MaxConnectionsPerUser); err != nil {
		return err
	}
	if c.MaxRequestsInFlight < 0 || c.MaxMutatingRequestsInFlight < 0 {
		return fmt.Errorf("--max-requests-inflight %d and --max-mutating-requests-inflight %d must not be negative; 0 is the default",
			c.MaxRequestsInFlight, c.MaxMutatingRequestsInFlight)
	}
	// A single user's share has to have room for the largest body, and for long selectors.
	const leastBodies, leastSelectors = 16 << 20, 1 << 20
	if n := c.MaxBodyBytesInFlight; n != 0 && n < leastBodies {
		return fmt.Errorf("--max-body-bytes-inflight %d must be %d (16Mi) at least", n, leastBodies)
	}
	if n := c.MaxSelectorBytes; n != 0 && n < leastSelectors {
		return fmt.Errorf("--max-selector-bytes %d must be %d (1Mi) at least", n, leastSelectors)
	}
	return nil
}

// checkPerUser refuses a limit of each user that is none. most is that of all users, or its
// default; 0 means that there is none.
func checkPerUser(what string, most, perUser int) error {
	switch {
	case perUser < 0:
		return fmt.Errorf("--max-%s-per-user %d must not be negative; 0 is the default", what, perUser)
	case most > 0 && perUser > most:
		return fmt.Errorf("--max-%s-per-user %d is more than --max-%s %d: no user can have so many", what, perUser, what, most)
	}
	return nil
}

// readEncryption reads the encryption configuration, if there is one.
func (c *Config) readEncryption() (err error) {
	if c.EncryptionProviderConfig == "" {
		if c.EncryptionProviderConfigAutomaticReload {
			return errors.New("--encryption-provider-config-automatic-reload needs --encryption-provider-config")
		}
		return nil
	}
	if c.encryption, err = encryption.ReadConfig(c.EncryptionProviderConfig, c.EncryptionProviderConfigAutomaticReload); err != nil {
		return fmt.Errorf("--encryption-provider-config: %w", err)
	}
	return nil
}

// checkTokens refuses what makes no sense for the tokens of service accounts.
func (c *Config) checkTokens() error {
	const least, most = time.Hour, (1 << 32) * time.Second
	if limit := c.ServiceAccountMaxTokenExpiration; limit != 0 && (limit < least || limit > most) {
		return fmt.Errorf("--service-account-max-token-expiration %v must be between 1 hour and 2^32 seconds", limit)
	}
	if uri := c.ServiceAccountJWKSURI; uri != "" {
		if parsed, err := url.Parse(uri); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
			return fmt.Errorf("--service-account-jwks-uri %q is not an https URL", uri)
		}
	}
	return nil
}

// completeIdentity is the part of ensureDefaults for authentication and
// authorization.
func (c *Config) completeIdentity() error {
	if len(c.ServiceAccountIssuers) == 0 {
		c.ServiceAccountIssuers = []string{defaultIssuer}
	}
	if slices.Contains(c.ServiceAccountIssuers, "") {
		return errors.New("--service-account-issuer must not be empty")
	}
	if err := c.checkTokens(); err != nil {
		return err
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file go together")
	}
	var err error
	if c.tls, err = c.tlsConfig(); err != nil {
		return err
	}
	if err := c.completeAuthorization(); err != nil {
		return err
	}
	if err := c.Authentication.complete(c.AuthorizationModes); err != nil {
		return err
	}
	if err := admission.CheckNames(c.DisableAdmissionPlugins); err != nil {
		return fmt.Errorf("--disable-admission-plugins: %w", err)
	}
	if err := admission.CheckEnabled(c.EnableAdmissionPlugins); err != nil {
		return fmt.Errorf("--enable-admission-plugins: %w", err)
	}
	return nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

func (c *Config) validateStorage() error {
	switch {
	case !slices.Contains(Storages, c.Storage):
		return fmt.Errorf("--storage %q is unknown: it is embedded, memory or etcd", c.Storage)
	case c.Storage == Etcd && len(c.EtcdServers) == 0:
		return errors.New("--storage=etcd needs --etcd-servers")
	case c.Storage != Etcd && len(c.EtcdServers) > 0:
		return fmt.Errorf("--etcd-servers goes with --storage=etcd, not with %s", c.Storage)
	case (c.EtcdCertFile == "") != (c.EtcdKeyFile == ""):
		return errors.New("--etcd-certfile and --etcd-keyfile go together")
	}
	for _, url := range c.EtcdServers {
		if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
			return fmt.Errorf("--etcd-servers: %q must start with http:// or https://", url)
		}
	}
	files := []struct{ flag, path string }{
		{"--etcd-cafile", c.EtcdCAFile}, {"--etcd-certfile", c.EtcdCertFile}, {"--etcd-keyfile", c.EtcdKeyFile},
	}
	for _, file := range files {
		if file.path == "" {
			continue
		}
		if _, err := os.ReadFile(file.path); err != nil {
			return fmt.Errorf("%s: %w", file.flag, err)
		}
	}
	return nil
}
