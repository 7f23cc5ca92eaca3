package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/levelwire/levelwire/server/internal/customresource"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
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
}

// Listen checks the configuration, prepares the data directory and takes the
// port. It opens no storage yet. An error is one line that names the flag or
// the file; it is a *ConfigError if the configuration itself is wrong.
func Listen(config Config) (*Server, error) {
	if err := config.ensureDefaults(); err != nil {
		return nil, &ConfigError{err}
	}
	lock, err := lockDir(config.DataDir)
	if err != nil {
		return nil, err
	}
	listener, err := config.listen()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	identity, err := config.prepareIdentity(listener.Addr().(*net.TCPAddr))
	if err != nil {
		return nil, errors.Join(err, listener.Close(), lock.Close())
	}
	return &Server{config: config, lock: lock, listener: listener, identity: identity, ready: make(chan struct{}), leaving: make(chan struct{})}, nil
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
	return lock, nil
}

func (c *Config) listen() (net.Listener, error) {
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
	store, err := s.config.openStore(ctx)
	if err != nil {
		return errors.Join(ignoreCanceled(ctx, err), s.listener.Close(), s.lock.Close())
	}
	err = s.serve(ctx, store)
	return errors.Join(ignoreCanceled(ctx, err), store.Close(), s.lock.Close())
}

// ignoreCanceled returns nil for the error that the end of ctx causes.
func ignoreCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// serve wires the parts together and runs them until one fails or ctx ends.
func (s *Server) serve(ctx context.Context, store storage.Store) error {
	table := builtin.Table()
	meter := s.config.meter()
	caches := newCaches(table, meter.Counting(store), watchcache.Options{
		ExactHistory: s.config.ExactHistory, Now: s.config.Now,
		Tombstones: s.config.TombstoneLimit, TombstoneBytes: s.config.TombstoneBytes, TombstoneAge: s.config.TombstoneAge,
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
	api, err := s.newAPI(store, table, caches, writes)
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
	group.Go(func() error {
		defer stopServing()
		defer stopRunning()
		select {
		case <-ctx.Done():
		case <-groupCtx.Done():
		}
		s.leave(groupCtx, set, store, caches)
		return nil
	})
	group.Go(func() error {
		defer stopFeed()
		return api.Serve(serveCtx, s.listener, &tls.Config{Certificates: []tls.Certificate{s.identity.serving}, MinVersion: tls.VersionTLS12})
	})
	group.Go(func() error { return ignoreCanceled(feedCtx, caches.feed.Run(feedCtx)) })
	group.Go(func() error { return customs.Run(groupCtx) })
	group.Go(func() error { return s.prepare(groupCtx, writes, caches, customs) })
	if keeper := writes.keeper; keeper != nil {
		group.Go(func() error { return ignoreCanceled(groupCtx, keeper.Run(groupCtx)) })
	}
	if s.config.CompactionInterval > 0 {
		group.Go(func() error { return s.compact(groupCtx, store, caches, meter) })
	}
	return group.Wait()
}

// prepare creates the objects that every cluster has, waits for the caches and
// closes ready.
func (s *Server) prepare(ctx context.Context, writes *writePath, caches *caches, customs *customresource.Lifecycle) error {
	begin := time.Now()
	err := bootstrap.Run(ctx, writes.set, writes.services, s.endpoint(), writes.contents...)
	if err == nil {
		err = waitRestored(ctx, customs)
	}
	if err == nil {
		err = caches.waitFilled(ctx, s.config.Logger)
	}
	switch {
	case ctx.Err() != nil:
		return nil // the shutdown is the reason, or the error that another part has returned
	case err != nil:
		return err
	}
	s.once.Do(func() { close(s.ready) })
	s.config.Logger.Info("ready", "url", s.URL(), "storage", s.config.Storage, "took", time.Since(begin).Round(time.Millisecond))
	return nil
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
func (s *Server) newCustomResources(store storage.Store, table *resource.Table, caches *caches, set *registry.Set) *customresource.Lifecycle {
	definitions := table.Lookup(apiextensionsv1.GroupName, "v1", "customresourcedefinitions")
	customs := customresource.New(customresource.Options{
		Registry: set, Table: table, Caches: caches, Store: store,
		Definitions: definitions, DefinitionCache: caches.Of(definitions), Logger: s.config.Logger,
		Webhooks: customresource.Webhooks{Resolve: serviceAddresses{table, caches}.Resolve},
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
