package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/storage"
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
	// Hosts are further names and addresses that the serving certificate is
	// valid for.
	Hosts []string

	// Storage is where objects are kept. Default Embedded.
	Storage Storage
	// OpenStore, if not nil, opens the storage in place of what Storage names,
	// once, when the server runs; the server closes it. It is for programs that
	// fill a store, or wrap one, themselves.
	OpenStore func(ctx context.Context) (storage.Store, error)
	// EtcdServers are the URLs of an etcd cluster, for Storage Etcd.
	EtcdServers []string
	// EtcdCAFile, EtcdCertFile and EtcdKeyFile are for etcd over TLS.
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string

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
	// ClientCAFile is a further authority, in PEM, that certifies users.
	ClientCAFile string
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
	// APIAudiences are the audiences of the server: a token must be for one of them.
	// Default: the first issuer.
	APIAudiences []string

	// AuthorizationModes name the authorizers. Default AlwaysAllow, which allows
	// every authenticated user everything.
	AuthorizationModes []string
	// DisableAdmissionPlugins names admission plugins that do not run, for any
	// request. Without ServiceAccount, the server creates no accounts either.
	DisableAdmissionPlugins []string

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

	// HTTP2Server is the implementation of HTTP/2. Default HTTP2Levelwire, which is
	// made for many watches on a connection. HTTP2NetHTTP is Go's own: widely used, at
	// six times the processor time for events.
	HTTP2Server HTTP2Server
	// Profiling serves profiles of the whole process at /debug/pprof/, as
	// Kubernetes' servers do, to users that may read that path.
	Profiling bool
	// Version is reported by /version.
	Version string
	// Logger receives what operators should see. Default: slog.Default().
	Logger *slog.Logger
}

// AnyPort as SecurePort lets the system choose a free port.
const AnyPort = -1

const (
	defaultPort       = 6443
	defaultSelfCheck  = 10 * time.Minute
	defaultBind       = "127.0.0.1"
	defaultServiceNet = "10.96.0.0/16"
	defaultIssuer     = "https://kubernetes.default.svc.cluster.local"
	alwaysAllow       = "AlwaysAllow"
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
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if err := c.validateStorage(); err != nil {
		return err
	}
	return c.completeIdentity()
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
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file go together")
	}
	for _, mode := range c.AuthorizationModes {
		if mode != alwaysAllow {
			return fmt.Errorf("--authorization-mode %q is not available: it is %s", mode, alwaysAllow)
		}
	}
	if err := admission.CheckNames(c.DisableAdmissionPlugins); err != nil {
		return fmt.Errorf("--disable-admission-plugins: %w", err)
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
