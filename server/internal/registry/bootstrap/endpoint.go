package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

const (
	// restorePause is the shortest time from one look at default/kubernetes to the next, so that who deletes it
	// again and again does not have the server write as fast.
	restorePause = time.Second
	// restoreRetry is when the server tries again what it could not write, as in kube-apiserver.
	restoreRetry = 10 * time.Second
)

// Endpoint is the address of a server among the endpoints of default/kubernetes. It is safe for
// concurrent use.
type Endpoint struct {
	set      *registry.Set
	services *service.Allocator
	address  netip.AddrPort
	log      *slog.Logger

	writing   chan struct{} // full during writes, so that none follows Withdraw
	withdrawn atomic.Bool
}

// NewEndpoint returns the endpoint of the server at an address. It writes nothing: Run does at the start.
func NewEndpoint(set *registry.Set, services *service.Allocator, address netip.AddrPort, log *slog.Logger) *Endpoint {
	return &Endpoint{set: set, services: services, address: address, log: log, writing: make(chan struct{}, 1)}
}

// Restore creates the Service default/kubernetes if there is none, and adds the server to its endpoints if it is
// not among them. After Withdraw it does nothing.
func (e *Endpoint) Restore(ctx context.Context) error {
	return e.write(ctx, func() error {
		if e.withdrawn.Load() {
			return nil
		}
		err := ensureService(ctx, e.set, apiService(e.services.FirstIP(), e.address.Port()))
		if err != nil {
			err = fmt.Errorf("create service default/kubernetes: %w", err)
		}
		return errors.Join(err, publish(ctx, e.set, e.address, true))
	})
}

// Publish adds the server to the endpoints of default/kubernetes if it is not among them. After Withdraw it does
// nothing.
func (e *Endpoint) Publish(ctx context.Context) error {
	return e.write(ctx, func() error {
		if e.withdrawn.Load() {
			return nil
		}
		return publish(ctx, e.set, e.address, true)
	})
}

// Withdraw takes the server out of the endpoints of default/kubernetes: it is about to stop.
func (e *Endpoint) Withdraw(ctx context.Context) error {
	e.withdrawn.Store(true)
	return e.write(ctx, func() error { return publish(ctx, e.set, e.address, false) })
}

// write calls f when nobody else writes.
func (e *Endpoint) write(ctx context.Context, f func() error) error {
	select {
	case e.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.writing }()
	return f()
}

// Keep restores what is deleted or changed, until ctx ends. It is called after Run.
func (e *Endpoint) Keep(ctx context.Context) {
	for ctx.Err() == nil {
		err := e.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, watchcache.ErrClosed) {
			return
		}
		if !errors.Is(err, watchcache.ErrExpired) {
			e.log.Warn("default/kubernetes cannot be watched: the server tries again", "error", err)
		}
		sleep(ctx, restorePause)
	}
}

// follow is Keep until a watch fails.
func (e *Endpoint) follow(ctx context.Context) error {
	var watchers []*watchcache.Watcher
	for _, kind := range []struct{ group, plural string }{{"", "services"}, {"", "endpoints"}, {discoveryv1.GroupName, "endpointslices"}} {
		watcher, err := e.watch(ctx, kind.group, kind.plural)
		if err != nil {
			return err
		}
		defer watcher.Close()
		watchers = append(watchers, watcher)
	}
	for failed := false; ; {
		for _, watcher := range watchers {
			if _, err := watcher.Skip(); err != nil {
				return err
			}
		}
		var again <-chan time.Time
		err := e.Restore(ctx)
		if err != nil {
			e.warn(ctx, err, failed)
			again = time.After(restoreRetry)
		}
		failed = err != nil
		sleep(ctx, restorePause)
		select {
		case <-watchers[0].Ready():
		case <-watchers[1].Ready():
		case <-watchers[2].Ready():
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// warn logs what stands in the way, once: a quota may do so for long.
func (e *Endpoint) warn(ctx context.Context, err error, again bool) {
	level := slog.LevelWarn
	if again || ctx.Err() != nil {
		level = slog.LevelDebug
	}
	e.log.Log(ctx, level, "default/kubernetes cannot be restored: the server tries again", "error", err)
}

// watch opens a watch of the object of a kind that is called default/kubernetes.
func (e *Endpoint) watch(ctx context.Context, group, plural string) (*watchcache.Watcher, error) {
	r, ok := e.set.Lookup(group, "v1", plural)
	if !ok {
		return nil, errors.New(plural + " are not served")
	}
	return r.WatchObject(ctx, service.APIService.Namespace, service.APIService.Name)
}

// sleep waits until ctx ends, or d has passed.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
