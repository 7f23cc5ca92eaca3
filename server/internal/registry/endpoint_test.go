package registry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/storage"
)

// refusing is a store that creates no Service while it is told so.
type refusing struct {
	storage.Store
	services atomic.Bool
}

func (s *refusing) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	if s.services.Load() && strings.HasPrefix(key, "/registry/services/specs/") {
		return 0, errors.New("the disk is full")
	}
	return s.Store.Create(ctx, key, value, ttl)
}

// TestEndpointIsRestored within the ten seconds of kube-apiserver, also after writes that fail, and no more once the
// server has withdrawn it.
func TestEndpointIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, configure, run := withCaches(t)
		store := &refusing{}
		f := newFixture(t, configure, func(c *registry.Config) { store.Store, c.Store = c.Store, store })
		run(f.store)
		ctx, cancel := context.WithCancel(t.Context())
		endpoint := bootstrap.NewEndpoint(f.Set, f.services, netip.MustParseAddrPort("192.0.2.1:6443"), slog.New(slog.DiscardHandler))
		kept := make(chan struct{})
		go func() {
			defer close(kept)
			endpoint.Keep(ctx)
		}()
		synctest.Wait()
		expect := func(what string, services, addresses int) {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if has, inEndpoints, inSlice := f.published(t); has != services || inEndpoints != addresses || inSlice != addresses {
				t.Errorf("%s: %d Services, %d addresses in the Endpoints, %d in the EndpointSlice, want %d and %d", what, has, inEndpoints, inSlice, services, addresses)
			}
		}
		remove := func() {
			t.Helper()
			for _, plural := range []string{"services", "endpoints", "endpointslices"} {
				if _, err := f.of(t, plural).Delete(t.Context(), "default", "kubernetes", nil); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
		}
		expect("nothing has happened", 1, 1)
		remove()
		expect("all is deleted", 1, 1)
		store.services.Store(true)
		remove()
		expect("no Service can be written", 0, 1)
		store.services.Store(false)
		expect("they can again", 1, 1)
		if _, err := f.of(t, "endpointslices").Update(t.Context(), "default", "kubernetes", changing(func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil }), registry.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("the address is taken out", 1, 1)
		if err := endpoint.Withdraw(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("the server has withdrawn", 1, 0)
		remove()
		expect("all is deleted then", 0, 0)
		cancel()
		<-kept
	})
}

// published counts the Services called default/kubernetes and the addresses behind it.
func (f *fixture) published(t *testing.T) (services, inEndpoints, inSlice int) {
	t.Helper()
	if _, err := f.of(t, "services").GetFromStore(t.Context(), "default", "kubernetes"); err == nil {
		services = 1
	}
	if obj, err := f.of(t, "endpoints").GetFromStore(t.Context(), "default", "kubernetes"); err == nil {
		for _, subset := range obj.(*corev1.Endpoints).Subsets {
			inEndpoints += len(subset.Addresses)
		}
	}
	if obj, err := f.of(t, "endpointslices").GetFromStore(t.Context(), "default", "kubernetes"); err == nil {
		inSlice = len(obj.(*discoveryv1.EndpointSlice).Endpoints)
	}
	return services, inEndpoints, inSlice
}
