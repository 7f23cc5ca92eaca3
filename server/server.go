package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/internal/filelock"
	"github.com/levelwire/levelwire/server/internal/admission"
	"github.com/levelwire/levelwire/server/internal/admission/pluginconfig"
	"github.com/levelwire/levelwire/server/internal/apiserver/audit"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/customresource"
	"github.com/levelwire/levelwire/server/internal/flowcontrol"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/server/internal/ui"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/caches"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/epoch"
)

// Server is an API server. Listen makes one and binds its socket, Run serves.
type Server struct {
	config   Config
	lock     io.Closer
	listener net.Listener
	identity *identity
	ready    chan struct{}
	once     sync.Once
	leaving  chan struct{} // closed when the shutdown begins

	plugins pluginconfig.Config
	page    *ui.UI          // nil unless Config.UI is set
	tracer  *tracing.Tracer // nil unless Config.TracingConfigFile is set; set by Run
}

// Listen checks the configuration, prepares the data directory and takes the
// port. It opens no storage yet. An error is one line that names the flag or
// the file; it is a *ConfigError if the configuration itself is wrong.
func Listen(config Config) (*Server, error) {
	if err := config.ensureDefaults(); err != nil {
		return nil, &ConfigError{err}
	}
	plugins, err := pluginconfig.Read(config.AdmissionConfigFile)
	if err != nil {
		return nil, &ConfigError{fmt.Errorf("--admission-control-config-file: %w", err)}
	}
	if slices.Contains(config.EnableAdmissionPlugins, admission.EventRateLimit) && plugins.Events == nil {
		return nil, &ConfigError{errors.New("--enable-admission-plugins: EventRateLimit has no default: write its limits to --admission-control-config-file")}
	}
	var page *ui.UI
	if config.UI {
		if page, err = ui.New(config.Logger); err != nil {
			return nil, err
		}
	}
	lock, err := lockDir(config.DataDir)
	if err != nil {
		return nil, err
	}
	listener, err := config.listen()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	identity, err := config.prepareIdentity(listener.Addr().(*net.TCPAddr), time.Now)
	if err != nil {
		return nil, errors.Join(err, listener.Close(), lock.Close())
	}
	return &Server{
		config: config, lock: lock, listener: listener, identity: identity, plugins: plugins, page: page,
		ready: make(chan struct{}), leaving: make(chan struct{}),
	}, nil
}

// lockName is the file in the data directory that a running server locks. The lock
// counts, not the existence of the file.
const lockName = "server.lock"

// lockDir makes the data directory, checks that it can be written to, and locks it
// until the result is closed: a second server on the same directory would overwrite
// the kubeconfig of the first.
func lockDir(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("--data-dir %s is in use by another process; stop it, or choose another directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("--data-dir %s cannot be written: %w", dir, err)
	}
	return filelock.Hold(lock.File), nil
}

func (c *Config) listen() (net.Listener, error) {
	if c.Listener != nil {
		if _, ok := c.Listener.Addr().(*net.TCPAddr); !ok {
			return nil, &ConfigError{fmt.Errorf("the address of Config.Listener is a %T: it must be a *net.TCPAddr", c.Listener.Addr())}
		}
		return c.Listener, nil
	}
	port := max(c.SecurePort, 0)
	address := net.JoinHostPort(c.BindAddress, strconv.Itoa(port))
	listener, err := net.Listen("tcp", address) //nolint:noctx // Binding a socket does not block.
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--secure-port: %s is in use by another process; choose another port", address)
	case err != nil:
		return nil, fmt.Errorf("--bind-address and --secure-port: %w", err)
	}
	return listener, nil
}

// URL is the URL of the server for clients on the same machine.
func (s *Server) URL() string { return urlOf(s.listener.Addr().(*net.TCPAddr)) }

// SignInLink returns the URL of the page at /ui/ with a secret that signs a browser on this
// machine in as the administrator, once, within an hour; "" unless Config.UI is set.
func (s *Server) SignInLink() string {
	if s.page == nil {
		return ""
	}
	return s.URL() + ui.Path + "#link=" + s.page.Link(auth.User{Name: adminUser, Groups: []string{auth.Masters}})
}

// Kubeconfig is the path of the admin's kubeconfig.
func (s *Server) Kubeconfig() string {
	if path, err := filepath.Abs(s.config.kubeconfigPath()); err == nil {
		return path
	}
	return s.config.kubeconfigPath()
}

// Ready is closed when everything is served. Until then /readyz fails, and
// reads wait.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run serves until ctx ends, and Config.ShutdownDelay longer, and then drains: it
// ends watches, lets running requests finish, and closes the storage. It may be
// called once. It returns nil after an orderly shutdown.
func (s *Server) Run(ctx context.Context) error {
	defer s.identity.close()
	closeTracer, err := s.openTracer(ctx)
	if err != nil {
		return errors.Join(err, s.listener.Close(), s.lock.Close())
	}
	defer closeTracer()
	if s.config.Relay != nil {
		return errors.Join(ignoreCanceled(ctx, s.serveRelay(ctx)), s.lock.Close())
	}
	store, err := s.config.openStore(ctx)
	if err != nil {
		return errors.Join(ignoreCanceled(ctx, err), s.listener.Close(), s.lock.Close())
	}
	seen, tracker, err := s.config.enterEpoch(ctx, store)
	if err != nil {
		return errors.Join(ignoreCanceled(ctx, err), s.listener.Close(), store.Close(), s.lock.Close())
	}
	encrypted, err := s.config.encrypt(seen)
	if err != nil {
		return errors.Join(err, s.listener.Close(), seen.Close(), s.lock.Close())
	}
	err = s.serve(ctx, encrypted, tracker)
	return errors.Join(ignoreCanceled(ctx, err), encrypted.Close(), s.lock.Close())
}

// ignoreCanceled returns nil for the error that the end of ctx causes.
func ignoreCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// serve wires the parts together and runs them until one fails or ctx ends. tracker is
// nil if the store has no epochs.
func (s *Server) serve(ctx context.Context, store storage.Store, tracker *epoch.Tracker) error {
	table := builtin.Table()
	meter := s.config.meter()
	caches := caches.New(table, meter.Counting(store), watchcache.Options{
		ExactHistory: s.config.ExactHistory, Now: s.config.Now, Applied: s.eventApplied(),
		Tombstones: s.config.TombstoneLimit, TombstoneBytes: s.config.TombstoneBytes, TombstoneAge: s.config.TombstoneAge,
		CompressObjects: s.config.CompressObjects,
	}, feed.Options{
		Prefix: resourcePrefix, Logger: s.config.Logger, CheckInterval: s.config.SelfCheckInterval, Now: s.config.Now,
		Tombstones: s.config.TombstoneLimit, TombstoneBytes: s.config.TombstoneBytes, TombstoneAge: s.config.TombstoneAge,
	})
	writes, err := s.newWritePath(store, table, caches)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	set := writes.set
	customs := s.newCustomResources(store, table, caches, set)
	authorization, err := s.newAuthorization(writes)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	if err := s.admit(writes, authorization); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	auditor, err := audit.New(s.config.Audit, s.config.Logger)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	defer s.closeAudit(auditor)
	fairness, err := s.newFairness(writes)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	aggregator, err := s.newAggregator(writes, table)
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	api, err := s.newAPI(store, table, caches, writes, authorization, auditor, fairness, aggregator, customs.Restored())
	if err != nil {
		return errors.Join(err, s.listener.Close())
	}
	// The feed runs until the server has drained, so that requests can be served
	// until then. The other parts stop after leave.
	feedCtx, stopFeed := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFeed()
	running, stopRunning := context.WithCancel(feedCtx)
	defer stopRunning()
	group, groupCtx := errgroup.WithContext(running)
	serveCtx, stopServing := context.WithCancel(feedCtx)
	defer stopServing()
	if err := s.watchEncryption(groupCtx, store, caches); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	group.Go(func() error {
		defer stopServing()
		defer stopRunning()
		select {
		case <-ctx.Done():
		case <-groupCtx.Done():
		}
		s.leave(groupCtx, writes, store, caches)
		return nil
	})
	group.Go(func() error {
		defer stopFeed()
		defer aggregator.Close()
		return api.Serve(serveCtx, s.listener, s.serving())
	})
	group.Go(func() error {
		s.identity.certificates.run(groupCtx, s.config.Logger)
		return nil
	})
	group.Go(func() error {
		s.identity.files.Run(groupCtx)
		return nil
	})
	group.Go(func() error { return ignoreCanceled(feedCtx, caches.Feed.Run(feedCtx)) })
	defer caches.LimitMemory()()
	group.Go(func() error { return customs.Run(groupCtx) })
	group.Go(func() error { return authorization.run(groupCtx) })
	group.Go(func() error { return writes.policies.run(groupCtx) })
	group.Go(func() error {
		writes.webhooks.Run(groupCtx)
		return nil
	})
	group.Go(func() error { return runFairness(groupCtx, fairness) })
	if !s.config.ReadOnly {
		group.Go(func() error { aggregator.Run(groupCtx); return nil })
		group.Go(func() error { writes.apiServices.Run(groupCtx); return nil })
		group.Go(func() error { return s.onceReady(groupCtx, writes.endpoint.Keep) })
		group.Go(func() error { return s.keepAuthentication(groupCtx, set) })
	}
	group.Go(func() error { return s.prepare(groupCtx, writes, caches, customs, authorization, fairness) })
	group.Go(func() error {
		select {
		case <-s.ready:
			api.MakeDocuments(groupCtx, table.Changed)
		case <-groupCtx.Done():
		}
		return nil
	})
	if writes.lease != nil {
		group.Go(func() error { return s.onceReady(groupCtx, writes.lease.Keep) })
	}
	if keeper := writes.keeper; keeper != nil && !s.config.ReadOnly {
		group.Go(func() error { return ignoreCanceled(groupCtx, keeper.Run(groupCtx)) })
	}
	if writes.tracking != nil {
		group.Go(func() error { return s.runTracking(groupCtx, writes.tracking) })
	}
	failure := make(chan error, 1)
	group.Go(func() error {
		err := awaitFailure(groupCtx, store)
		failure <- err
		return err
	})
	if tracker != nil {
		group.Go(func() error { return tracker.Run(groupCtx) })
	}
	if s.config.CompactionInterval > 0 {
		group.Go(func() error { return s.compact(groupCtx, store, caches, meter) })
	}
	return awaitEnd(group.Wait, failure)
}

// prepare creates the objects that every cluster has, waits for the caches and
// closes ready.
func (s *Server) prepare(ctx context.Context, writes *writePath, caches *caches.Set, customs *customresource.Lifecycle, authorization *authorization, fairness *flowcontrol.Controller) error {
	begin := time.Now()
	bootstrapped := func() error { return s.bootstrap(ctx, writes, authorization, fairness) }
	err := s.retryWhileUnavailable(ctx, bootstrapped)
	unwritten := writesLater(err)
	if unwritten != nil {
		s.config.Logger.Error("not all that every cluster has can be written: the server serves what there is, and tries again", "error", err)
		err = nil
	}
	if err == nil {
		err = waitRestored(ctx, customs)
	}
	if err == nil {
		err = caches.WaitFilled(ctx, s.config.Logger)
	}
	switch {
	case ctx.Err() != nil:
		return nil // the shutdown is the reason, or the error that another part has returned
	case err != nil:
		return err
	}
	if !s.config.ReadOnly {
		s.publishAuthentication(ctx, writes.set)
	}
	s.once.Do(func() { close(s.ready) })
	s.config.Logger.Info("ready", "url", s.URL(), "storage", s.config.Storage, "took", time.Since(begin).Round(time.Millisecond))
	if unwritten != nil {
		return s.retryUntilWritten(ctx, bootstrapped, unwritten)
	}
	return nil
}

// bootstrap writes the objects that every cluster has. It may be called again if it fails.
func (s *Server) bootstrap(ctx context.Context, writes *writePath, authorization *authorization, fairness *flowcontrol.Controller) error {
	if s.config.ReadOnly {
		return authorization.bootstrap(ctx, writes.set)
	}
	var refused *bootstrap.RefusedError
	if err := bootstrap.Run(ctx, writes.set, writes.services, writes.endpoint, writes.contents...); err != nil && !errors.As(err, &refused) {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return writes.apiServices.Ensure(ctx) })
	group.Go(func() error {
		if err := authorization.bootstrap(ctx, writes.set); err != nil || fairness == nil {
			return err
		}
		return fairness.Ensure(ctx)
	})
	if err := group.Wait(); err != nil || refused == nil {
		return err
	}
	return refused
}

// startRetryInterval is how often a start is tried that storage has stopped, which is full or
// does not answer.
const startRetryInterval = time.Second

// retryWhileUnavailable calls f until the storage has answered all of it. A disk may be busy, or
// a cluster of etcd without a leader, for longer than a write waits; embedded storage that has
// failed for good ends the server elsewhere.
func (s *Server) retryWhileUnavailable(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) {
			return err
		}
		s.config.Logger.Warn("what every cluster has is not written: the server tries again", "error", err)
		select {
		case <-time.After(startRetryInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// refusedRetryInterval is how often it is tried again to write what objects of users stand in the way
// of, as in kube-apiserver.
const refusedRetryInterval = 10 * time.Second

// writesLater returns how long the server waits before it writes what has failed to be written again,
// while it serves what there is; nil: it cannot serve, or nothing has failed. No object that a user can
// make keeps a server from its start.
func writesLater(err error) *time.Duration {
	var refused *bootstrap.RefusedError
	switch {
	case status.IsInsufficientStorage(err):
		return new(startRetryInterval)
	case errors.As(err, &refused):
		return new(refusedRetryInterval)
	}
	return nil
}

// retryUntilWritten calls f, after a pause, until it has written everything.
func (s *Server) retryUntilWritten(ctx context.Context, f func() error, pause *time.Duration) error {
	for {
		select {
		case <-time.After(*pause):
		case <-ctx.Done():
			return nil
		}
		err := f()
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if pause = writesLater(err); pause == nil {
			if !apierrors.IsServiceUnavailable(err) && !apierrors.IsTimeout(err) {
				return err
			}
			pause = new(startRetryInterval)
		}
		s.config.Logger.Debug("not all that every cluster has can be written yet", "error", err)
	}
}

// waitRestored waits until all custom resources that are defined are served.
func waitRestored(ctx context.Context, customs *customresource.Lifecycle) error {
	select {
	case <-customs.Restored():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newCustomResources makes the lifecycle that serves custom resources as they are
// defined.
func (s *Server) newCustomResources(store storage.Store, table *resource.Table, caches *caches.Set, set *registry.Set) *customresource.Lifecycle {
	definitions := table.Lookup(apiextensionsv1.GroupName, "v1", "customresourcedefinitions")
	customs := customresource.New(customresource.Options{
		Registry: set, Table: table, Caches: caches, Store: store,
		Definitions: definitions, DefinitionCache: caches.Of(definitions), Logger: s.config.Logger,
		Webhooks: customresource.Webhooks{Resolve: service.NewResolver(set).Resolve},
	})
	set.Admit(customs.Admit)
	return customs
}

// endpoint is the address of this server in default/kubernetes.
func (s *Server) endpoint() netip.AddrPort {
	address := s.listener.Addr().(*net.TCPAddr).AddrPort()
	ip := address.Addr().Unmap()
	if ip.IsUnspecified() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrPortFrom(ip, address.Port())
}
