package deployment

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestProgressOverTime follows the Progressing condition from the first set
// to the deadline and on to the end of the rollout.
func TestProgressOverTime(t *testing.T) {
	d := rolling(2, "1", "0")
	deadline := int32(60)
	d.Spec.ProgressDeadlineSeconds = &deadline
	d.Generation = 1
	now := time.Unix(1000, 0)
	current := sized(1, 2, 0)
	step := func(made *appsv1.DeploymentCondition) (again time.Duration) {
		r := &rollout{Controller: &Controller{}, d: d, lim: limits{1, 0}, current: current, made: made}
		status := r.count()
		r.judgeAvailability(&status, now)
		again = r.judgeProgress(&status, now)
		d.Status = status
		return again
	}
	expect := func(status corev1.ConditionStatus, reason string) {
		t.Helper()
		c := conditionOf(&d.Status, appsv1.DeploymentProgressing)
		if c == nil || c.Status != status || c.Reason != reason {
			t.Fatalf("at %s: %+v; want %s %s", now.Sub(time.Unix(1000, 0)), c, status, reason)
		}
	}
	again := step(progressing(corev1.ConditionTrue, newSetCreated, "made"))
	expect(corev1.ConditionTrue, newSetCreated)
	if again <= 0 || again > 62*time.Second {
		t.Fatalf("looks again after %s, want about the deadline", again)
	}

	now = now.Add(30 * time.Second)
	current.Status.Replicas, current.Status.ReadyReplicas, current.Status.AvailableReplicas = 2, 1, 1
	step(nil)
	expect(corev1.ConditionTrue, setUpdated)

	now = now.Add(59 * time.Second)
	step(nil)
	expect(corev1.ConditionTrue, setUpdated) // the clock began anew with the progress

	now = now.Add(2 * time.Second)
	step(nil)
	expect(corev1.ConditionFalse, deadlineExceeded)
	if c := conditionOf(&d.Status, appsv1.DeploymentAvailable); c.Status != corev1.ConditionFalse || c.Reason != tooFewAvailable {
		t.Errorf("available: %+v", c)
	}

	current.Status.ReadyReplicas, current.Status.AvailableReplicas = 2, 2
	step(nil)
	expect(corev1.ConditionTrue, newSetAvailable)

	current.Status.ReadyReplicas, current.Status.AvailableReplicas = 1, 1
	now = now.Add(time.Hour)
	step(nil)
	expect(corev1.ConditionTrue, newSetAvailable) // a pod that fails later is no failed rollout
}

func TestPauseStopsTheClock(t *testing.T) {
	d := rolling(1, "1", "0")
	deadline := int32(60)
	d.Spec.ProgressDeadlineSeconds = &deadline
	now := time.Unix(1000, 0)
	step := func() string {
		r := &rollout{Controller: &Controller{}, d: d, current: sized(1, 1, 0)}
		status := r.count()
		r.judgeProgress(&status, now)
		d.Status = status
		return conditionOf(&status, appsv1.DeploymentProgressing).Reason
	}
	d.Spec.Paused = true
	if got := step(); got != paused {
		t.Fatalf("reason %s", got)
	}
	now = now.Add(time.Hour)
	if got := step(); got != paused {
		t.Fatalf("an hour later: %s", got)
	}
	d.Spec.Paused = false
	if got := step(); got != resumed {
		t.Fatalf("after the pause: %s", got)
	}
	now = now.Add(61 * time.Second)
	if got := step(); got != deadlineExceeded {
		t.Fatalf("a minute after the pause: %s", got)
	}
}
