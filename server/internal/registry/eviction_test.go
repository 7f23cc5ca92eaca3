package registry_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/pod"
	"github.com/levelwire/levelwire/storage"
)

// overtaken is a store in which something happens once between the reading of a
// pod and what is made of that.
type overtaken struct {
	storage.Store
	meanwhile func()
}

func (s *overtaken) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	kv, err := s.Store.Get(ctx, key, at)
	if then := s.meanwhile; then != nil && strings.HasPrefix(key, "/registry/pods/") {
		s.meanwhile = nil
		then()
	}
	return kv, err
}

// TestEvictionOfAPodThatHasJustStarted: what was a pod that no budget covers is
// covered by the time that it would be deleted.
func TestEvictionOfAPodThatHasJustStarted(t *testing.T) {
	store := &overtaken{Store: openMemory(t)}
	f := newFixtureOver(t, store)
	f.create(t, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	f.create(t, "pods", newPod("p", "n"))
	phase := func(phase corev1.PodPhase) {
		if _, err := f.of(t, "pods").UpdateStatus(t.Context(), "default", "p", changing(func(p *corev1.Pod) { p.Status.Phase = phase }), registry.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	evict := func() error {
		_, err := pod.Evict(t.Context(), f.of(t, "pods"), "default", "p", &policyv1.Eviction{}, registry.WriteOptions{})
		return err
	}
	phase(corev1.PodPending)
	store.meanwhile = func() { phase(corev1.PodRunning) }
	wantStatus(t, "started meanwhile", evict(), 429, metav1.StatusReasonTooManyRequests, "violate the pod's disruption budget")

	store.meanwhile = func() { phase(corev1.PodSucceeded) }
	wantStatus(t, "ended meanwhile", evict(), 429, metav1.StatusReasonTooManyRequests, "violate the pod's disruption budget")
	if err := evict(); err != nil {
		t.Errorf("a pod that has ended: %v", err)
	}
}

// TestEvictionKeepsPreconditions: what the client demands is not retried away.
func TestEvictionKeepsPreconditions(t *testing.T) {
	f := newFixture(t)
	f.create(t, "pods", newPod("p", "n"))
	for what, p := range map[string]metav1.Preconditions{
		"uid": {UID: new(f.current(t, "pods", "default", "p").GetUID() + "x")}, "version": {ResourceVersion: new("1")},
	} {
		_, err := pod.Evict(t.Context(), f.of(t, "pods"), "default", "p", &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &p}}, registry.WriteOptions{})
		wantStatus(t, what, err, 409, metav1.StatusReasonConflict, "precondition")
	}
}
