package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// TestEvictionByBudgets: what budgets, and pods that are not ready, are answered with.
func TestEvictionByBudgets(t *testing.T) {
	const tooMany, none = metav1.StatusReasonTooManyRequests, metav1.StatusReasonUnknown
	const over = "Cannot evict pod as it would violate the pod's disruption budget."
	says := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	for _, tt := range []struct {
		status          policyv1.PodDisruptionBudgetStatus
		budgets         int
		code            int32
		reason          metav1.StatusReason
		message, caused string
	}{
		{policyv1.PodDisruptionBudgetStatus{}, 2, 500, none, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.", ""},
		{policyv1.PodDisruptionBudgetStatus{}, 1, 429, tooMany, over, "The disruption budget b0 needs 0 healthy pods and has 0 currently"},
		{policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 2, Conditions: says("Waits", "for a moment")}, 1, 429, tooMany, over,
			"The disruption budget b0 does not allow evicting pods currently (Waits): for a moment"},
		{policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 2}, 1, 429, tooMany, over, "The disruption budget b0 does not allow evicting pods currently"},
		{policyv1.PodDisruptionBudgetStatus{Conditions: says(policyv1.SyncFailedReason, "no scale")}, 1, 429, tooMany, over,
			"The disruption budget b0 does not allow evicting pods currently because it failed sync: no scale"},
		{policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: -1}, 1, 403, metav1.StatusReasonForbidden,
			`poddisruptionbudget.policy "b0" is forbidden: pdb disruptions allowed is negative`,
			"The disruption budget b0 does not allow evicting pods currently: pdb disruptions allowed is negative"},
	} {
		f := newFixture(t)
		f.create(t, "pods", newPod("p", "n"))
		f.runs(t, "p")
		for i := range tt.budgets {
			f.budget(t, fmt.Sprint("b", i), tt.status)
		}
		err := f.evict(t, "p")
		wantStatus(t, tt.message, err, tt.code, tt.reason, tt.message)
		var causes []metav1.StatusCause
		if details := err.(apierrors.APIStatus).Status().Details; details != nil { //nolint:errorlint // every error of the package is one
			causes = details.Causes
		}
		if tt.caused == "" && len(causes) > 0 || tt.caused != "" && (len(causes) != 1 || causes[0].Message != tt.caused) {
			t.Errorf("causes %+v, want %q", causes, tt.caused)
		}
	}
}

// TestEvictionOfAnUnreadyPod takes nothing from a budget that is healthy without the pod, and needs the
// pod to be as it was.
func TestEvictionOfAnUnreadyPod(t *testing.T) {
	store := &overtaken{Store: openMemory(t)}
	f := newFixtureOver(t, store)
	f.create(t, "pods", newPod("p", "n"))
	f.runs(t, "p")
	f.budget(t, "b", policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1})
	store.meanwhile = func() { f.runs(t, "p") }
	wantStatus(t, "changed meanwhile", f.evict(t, "p"), 429, metav1.StatusReasonTooManyRequests, "violate the pod's disruption budget")
	if err := f.evict(t, "p"); err != nil {
		t.Error(err)
	}
}

// TestEvictionThatExhaustsABudget says so in its condition.
func TestEvictionThatExhaustsABudget(t *testing.T) {
	f := newFixture(t)
	f.create(t, "pods", newPod("p", "n"))
	f.runs(t, "p")
	f.budget(t, "b", policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1})
	if err := f.evict(t, "p"); err != nil {
		t.Fatal(err)
	}
	got := f.current(t, "poddisruptionbudgets", "default", "b").(*policyv1.PodDisruptionBudget).Status
	if c := got.Conditions; len(c) != 1 || c[0].Reason != policyv1.InsufficientPodsReason || got.DisruptionsAllowed != 0 {
		t.Errorf("the budget says %+v", got)
	}
}

// runs has a pod run, and changes it if it does.
func (f *fixture) runs(t *testing.T, name string) {
	t.Helper()
	if _, err := f.of(t, "pods").UpdateStatus(t.Context(), "default", name, changing(func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Message = corev1.PodRunning, p.Status.Message+"."
	}), registry.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// budget makes a budget of newPod's pods.
func (f *fixture) budget(t *testing.T, name string, status policyv1.PodDisruptionBudgetStatus) {
	t.Helper()
	f.create(t, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	status.ObservedGeneration = 1
	if _, err := f.of(t, "poddisruptionbudgets").UpdateStatus(t.Context(), "default", name, changing(func(b *policyv1.PodDisruptionBudget) {
		b.Status = status
	}), registry.UpdateOptions{Unconditional: true}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) evict(t *testing.T, name string) error {
	t.Helper()
	_, err := pod.Evict(t.Context(), f.of(t, "pods"), "default", name, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}, registry.WriteOptions{})
	return err
}
