package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// slowAnswers is a store whose writes of Services have been made for a while
// when the answer arrives.
type slowAnswers struct {
	storage.Store
	meanwhile func()
	err       error // what the answer is instead
}

func (s *slowAnswers) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	rev, err := s.Store.Update(ctx, key, value, expect, ttl)
	if s.meanwhile != nil && strings.HasPrefix(key, "/registry/services/specs/") {
		s.meanwhile()
		if s.err != nil {
			return 0, s.err
		}
	}
	return rev, err
}

func openMemory(t *testing.T) storage.Store {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// TestReleaseLeavesANewClaimAlone: one server takes the address and the port from
// a Service, and before it gives the claims back another server gives the Service
// the same again. That is a new claim, and must stay.
func TestReleaseLeavesANewClaimAlone(t *testing.T) {
	store := openMemory(t)
	slow := &slowAnswers{Store: store}
	a, b := newFixtureOver(t, slow), newFixtureOver(t, store)
	a.create(t, "services", newService("s", withIP("10.0.0.5"), withNodePort(30003)))
	b.clock.Advance(time.Hour) // claims as old as that may be dropped
	slow.meanwhile = func() {
		_, err := b.of(t, "services").Update(t.Context(), "default", "s", changing(func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ClusterIP, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, "10.0.0.5", 30003
		}), registry.UpdateOptions{})
		if err != nil {
			t.Error(err)
		}
	}
	_, err := a.of(t, "services").Update(t.Context(), "default", "s", changing(withType(corev1.ServiceTypeExternalName)), registry.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a.addresses(t) != 2 || a.ports(t) != 1 {
		t.Errorf("%d addresses and %d ports are claimed, want 2 and 1", a.addresses(t), a.ports(t))
	}
}

// TestUnknownOutcomesKeepTheirClaims: a write that may have happened may need
// what was claimed for it.
func TestUnknownOutcomesKeepTheirClaims(t *testing.T) {
	for _, answer := range []error{storage.ErrUnavailable, storage.ErrClosed, context.DeadlineExceeded, errors.New("anything else")} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			slow := &slowAnswers{Store: openMemory(t)}
			f := newFixtureOver(t, slow)
			f.create(t, "services", newService("s"))
			slow.meanwhile, slow.err = func() {}, answer
			_, err := f.of(t, "services").Update(t.Context(), "default", "s", changing(withNodePort(30003)), registry.UpdateOptions{})
			if err == nil {
				t.Fatal("the update succeeded")
			}
			if f.ports(t) != 1 {
				t.Errorf("%d ports are claimed, want the one that the service may have", f.ports(t))
			}
		})
	}
}
