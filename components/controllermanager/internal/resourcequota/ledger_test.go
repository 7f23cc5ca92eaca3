package resourcequota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/quota"
)

func podQuota() *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "1"},
		Spec:       corev1.ResourceQuotaSpec{Hard: amounts("pods", "5")},
	}
}

// TestPodsOfLostNodes: the deletion of a pod changes nothing of what it uses, but brings
// its quotas back to the controller, which otherwise would not look at them when the
// grace period ends.
func TestPodsOfLostNodes(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	l, pods := newLedger(), mustEvaluator(t)
	l.open(podQuota(), now)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	l.note(pods, "ns", "p", pod, now)

	grace, deleted := int64(30), metav1.NewTime(now)
	pod = pod.DeepCopy()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &deleted, &grace
	if changed := l.note(pods, "ns", "p", pod, now); len(changed) != 1 || changed[0] != "q" {
		t.Errorf("the deletion brings back %q, want q", changed)
	}
	if _, next := l.expire("ns", now); !next.Equal(now.Add(30 * time.Second)) {
		t.Errorf("the next pod ends at %v", next)
	}
	if changed := l.note(pods, "ns", "p", pod, now); len(changed) != 0 {
		t.Errorf("the same state again brings back %q", changed)
	}
	l.expire("ns", now.Add(31*time.Second))
	if b, ok := l.balance("ns", "q"); !ok || !quota.Equal(b.counted, amounts("pods", "0")) {
		t.Errorf("%v is counted after the end", b.counted)
	}
}

// TestLedgerForgets: a namespace without objects and quotas leaves nothing, whichever
// goes last.
func TestLedgerForgets(t *testing.T) {
	l, pods, now := newLedger(), mustEvaluator(t), time.Now()
	l.note(pods, "ns", "p", &corev1.Pod{}, now)
	l.open(podQuota(), now)
	l.note(pods, "ns", "p", nil, now)
	l.drop("ns", "q")
	l.drop("never", "q")
	l.expire("never", now)
	l.sawClaim("never", "q", now)
	l.balance("never", "q")
	l.takeOff("never", "q", nil)
	if len(l.namespaces) != 0 {
		t.Errorf("%d namespaces are kept", len(l.namespaces))
	}
}

func mustEvaluator(t *testing.T) quota.Evaluator {
	t.Helper()
	evaluator, ok := quota.For(podResource)
	if !ok {
		t.Fatal("no pods")
	}
	return evaluator
}
