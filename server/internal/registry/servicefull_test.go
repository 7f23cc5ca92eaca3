package registry_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// counted counts the writes that a store is asked for, also those that fail.
type counted struct {
	storage.Store
	writes atomic.Int64
}

func (s *counted) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	s.writes.Add(1)
	return s.Store.Create(ctx, key, value, ttl)
}

func (s *counted) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	s.writes.Add(1)
	return s.Store.Update(ctx, key, value, expect, ttl)
}

func (s *counted) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	s.writes.Add(1)
	return s.Store.Delete(ctx, key, expect)
}

// fullRange is a server with as many node ports as addresses for Services, which holders have.
type fullRange struct {
	*fixture
	writes *counted
	caches caches // nil: there are none
}

const (
	rangeSize = 253 // 10.0.0.2 to 10.0.0.254
	// fewWrites is far less than half of the range, which a search by writes takes.
	fewWrites = 50
)

func newFullRange(t *testing.T, cached bool) *fullRange {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	writes := &counted{Store: store}
	ranges := service.Options{CIDR: netip.MustParsePrefix("10.0.0.0/24"), FirstNodePort: 30000, LastNodePort: 30000 + rangeSize - 1}
	if !cached {
		return &fullRange{fixture: newFixtureOf(t, writes, ranges), writes: writes}
	}
	all, configure, run := withCaches(t)
	f := &fullRange{newFixtureOf(t, writes, ranges, configure), writes, all}
	run(writes)
	return f
}

func heldIP(i int) string   { return fmt.Sprintf("10.0.0.%d", i+2) }
func heldPort(i int) int32  { return 30000 + int32(i) }
func holderOf(i int) string { return fmt.Sprintf("holder-%d", i) }

func (f *fullRange) hold(t *testing.T, i int) {
	t.Helper()
	f.create(t, "services", newService(holderOf(i), withNodePort(heldPort(i)), withIP(heldIP(i))))
}

// lose removes a holder and not its claims, as if a crash had come between the claims and the Service.
func (f *fullRange) lose(t *testing.T, i int) {
	t.Helper()
	kv, err := f.store.Get(t.Context(), "/registry/services/specs/default/"+holderOf(i), 0)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := f.store.Delete(t.Context(), kv.Key, kv.Modified)
	if err != nil {
		t.Fatal(err)
	}
	if f.caches != nil {
		if _, err := f.caches["services"].NotOlderThan(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
	}
}

// ask creates a Service with free node ports, and a free cluster IP unless it names one, by few writes.
func (f *fullRange) ask(t *testing.T, clusterIP string, nodePorts int, dryRun bool) (*corev1.Service, error) {
	t.Helper()
	svc := newService("asks", withType(corev1.ServiceTypeNodePort), withIP(clusterIP))
	for i := 1; i < nodePorts; i++ {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Protocol: corev1.ProtocolTCP, Port: 80 + int32(i)})
	}
	before := f.writes.writes.Load()
	result, err := f.of(t, "services").Create(t.Context(), "default", svc, registry.WriteOptions{DryRun: dryRun})
	if n := f.writes.writes.Load() - before; n > fewWrites || dryRun && n > 0 {
		t.Errorf("%d writes for a Service with %d node ports (dry run: %t)", n, nodePorts, dryRun)
	}
	if err != nil {
		return nil, err
	}
	return result.Object.(*corev1.Service), nil
}

// expectRefused also expects that nothing stays claimed.
func (f *fullRange) expectRefused(t *testing.T, what string, nodePorts int) {
	t.Helper()
	addresses, ports := f.addresses(t), f.ports(t)
	for _, clusterIP := range []string{"", corev1.ClusterIPNone} { // the ports are looked for if there is an address
		for _, dryRun := range []bool{true, false} {
			_, err := f.ask(t, clusterIP, nodePorts, dryRun)
			wantStatus(t, fmt.Sprintf("%s (cluster IP %q, dry run: %t)", what, clusterIP, dryRun), err, 500, metav1.StatusReasonInternalError, "range is full")
		}
	}
	if f.addresses(t) != addresses || f.ports(t) != ports {
		t.Errorf("%s: claims went from %d and %d to %d and %d", what, addresses, ports, f.addresses(t), f.ports(t))
	}
}

// expectGiven expects that a Service gets what holder i could have, also by a dry run.
func (f *fullRange) expectGiven(t *testing.T, what string, i int) {
	t.Helper()
	for _, dryRun := range []bool{true, false} {
		svc, err := f.ask(t, "", 1, dryRun)
		if err != nil {
			t.Fatalf("%s (dry run: %t): %v", what, dryRun, err)
		}
		if svc.Spec.ClusterIP != heldIP(i) || svc.Spec.Ports[0].NodePort != heldPort(i) {
			t.Errorf("%s (dry run: %t): got %s and %d, want %s and %d", what, dryRun, svc.Spec.ClusterIP, svc.Spec.Ports[0].NodePort, heldIP(i), heldPort(i))
		}
	}
}

// TestFullRangesCostFewWrites: a Service that looks for a free address and free ports finds the only
// ones, and is refused if there are none, without a write for each that is not free.
func TestFullRangesCostFewWrites(t *testing.T) {
	for _, cached := range []bool{false, true} {
		t.Run(fmt.Sprintf("cached=%t", cached), func(t *testing.T) { checkFullRange(t, newFullRange(t, cached)) })
	}
}

func checkFullRange(t *testing.T, f *fullRange) {
	const last, lost = 77, 5
	f.expectRefused(t, "more ports than there are", rangeSize+1)
	for i := range rangeSize {
		if i != last {
			f.hold(t, i)
		}
	}
	f.expectRefused(t, "two ports of one", 2)
	f.expectGiven(t, "the last ones", last)
	f.expectRefused(t, "full", 1)
	f.clock.Advance(time.Hour)
	f.expectRefused(t, "full for long", 1)

	if _, err := f.of(t, "services").Delete(t.Context(), "default", "asks", nil); err != nil {
		t.Fatal(err)
	}
	f.hold(t, last)
	f.lose(t, lost)
	f.expectGiven(t, "what a crash has left", lost)
}

// TestDryRunsTakeStaleClaims as the write does: also those of what the Service names.
func TestDryRunsTakeStaleClaims(t *testing.T) {
	f := newFullRange(t, false)
	f.hold(t, 0)
	f.lose(t, 0)
	create := func() error {
		_, err := f.of(t, "services").Create(t.Context(), "default", newService("asks", withNodePort(heldPort(0)), withIP(heldIP(0))), registry.WriteOptions{DryRun: true})
		return err
	}
	wantStatus(t, "a claim that may still be used", create(), 422, metav1.StatusReasonInvalid, "already allocated")
	f.clock.Advance(time.Hour)
	if err := create(); err != nil {
		t.Error(err)
	}
}
