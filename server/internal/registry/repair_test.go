package registry_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// restore writes a Service past the registry, as a backup's restore does.
func restore(t *testing.T, store storage.Store, svc *corev1.Service) {
	t.Helper()
	svc.Namespace = "default"
	var services *resource.Resource
	for _, res := range kinds() {
		if res.Plural == "services" {
			services = res
		}
	}
	value, err := services.Encode(t.Context(), svc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Create(t.Context(), "/registry/services/specs/default/"+svc.Name, value, 0); err != nil {
		t.Fatal(err)
	}
}

// TestRestoredServicesKeepTheirAddresses starts a server on Services without
// claims: the registry gives their addresses and ports to no other Service.
func TestRestoredServicesKeepTheirAddresses(t *testing.T) {
	store := openMemory(t)
	restore(t, store, newService("restored", withIP("10.0.0.5"), withNodePort(30004)))
	restore(t, store, newService("elsewhere", withIP("192.168.7.7")))
	restore(t, store, newService("headless", withIP(corev1.ClusterIPNone)))
	f := newFixtureOver(t, store)
	if f.addresses(t) != 2 || f.ports(t) != 1 { // with that of default/kubernetes
		t.Errorf("%d addresses and %d ports are claimed, want 2 and 1", f.addresses(t), f.ports(t))
	}
	r := f.of(t, "services")
	for _, taken := range []*corev1.Service{newService("a", withIP("10.0.0.5")), newService("a", withNodePort(30004))} {
		_, err := r.Create(t.Context(), "default", taken, registry.WriteOptions{})
		wantStatus(t, "what a restored service holds", err, 422, metav1.StatusReasonInvalid, "already allocated")
	}
	if _, err := r.Delete(t.Context(), "default", "restored", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Create(t.Context(), "default", newService("a", withIP("10.0.0.5"), withNodePort(30004)), registry.WriteOptions{}); err != nil {
		t.Errorf("what a deleted service held: %v", err)
	}
}

// forgetful is a store that forgets the revision of the first list that names
// one, just before it answers.
type forgetful struct {
	storage.Store
	forgot atomic.Bool
}

func (f *forgetful) List(ctx context.Context, prefix string, opts storage.ListOptions) (storage.Page, error) {
	if opts.At != 0 && !f.forgot.Swap(true) {
		after, err := f.Create(ctx, "/elsewhere", []byte("{}"), 0)
		if err == nil {
			err = f.Compact(ctx, after)
		}
		if err != nil {
			return storage.Page{}, err
		}
	}
	return f.Store.List(ctx, prefix, opts)
}

// TestCompactionDuringTheRepair: other servers of the same etcd compact when they
// like.
func TestCompactionDuringTheRepair(t *testing.T) {
	store := &forgetful{Store: openMemory(t)}
	restore(t, store, newService("restored", withIP("10.0.0.5")))
	f := newFixtureOver(t, store)
	if !store.forgot.Load() || f.addresses(t) != 2 { // with that of default/kubernetes
		t.Errorf("compacted: %v; %d addresses are claimed, want 2", store.forgot.Load(), f.addresses(t))
	}
}

func TestRepairNamesWhoHoldsTheSame(t *testing.T) {
	f := newFixture(t)
	f.create(t, "services", newService("first", withIP("10.0.0.5")))
	restore(t, f.store, newService("second", withIP("10.0.0.5")))
	var logged bytes.Buffer
	services, err := service.New(f.Set, service.Options{
		CIDR: netip.MustParsePrefix("10.0.0.0/28"), Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := services.Repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := logged.String(); strings.Count(got, "two services hold") != 1 || !strings.Contains(got, "default/first") || !strings.Contains(got, "default/second") {
		t.Errorf("logged %q", got)
	}
}

// TestNoAddressBeforeTheRepair: a Service that is created while the server
// starts waits until it is known which addresses are free.
func TestNoAddressBeforeTheRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		set, err := registry.NewSet(registry.Config{Store: f.store, Resources: f.table})
		if err != nil {
			t.Fatal(err)
		}
		services, err := service.New(set, service.Options{CIDR: netip.MustParsePrefix("10.0.0.0/28")})
		if err != nil {
			t.Fatal(err)
		}
		set.Admit(services.Admit)
		r, _ := set.Lookup("", "v1", "services")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = r.Create(gone, "default", newService("impatient"), registry.WriteOptions{})
		wantStatus(t, "before the repair", err, 503, metav1.StatusReasonServiceUnavailable, "try again")

		created := make(chan error)
		go func() {
			_, err := r.Create(t.Context(), "default", newService("patient"), registry.WriteOptions{})
			created <- err
		}()
		synctest.Wait()
		select {
		case err := <-created:
			t.Fatalf("created before the repair: %v", err)
		default:
		}
		if err := services.Repair(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-created; err != nil {
			t.Errorf("after the repair: %v", err)
		}
	})
}
