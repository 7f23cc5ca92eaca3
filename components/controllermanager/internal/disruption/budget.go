package disruption

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
)

// deletionTimeout is how long a pod that was evicted may take to be marked for
// deletion. After that its eviction is taken to have failed.
const deletionTimeout = 2 * time.Minute

// demand is what a budget asks of the pods that it covers.
type demand struct {
	expected int32 // how many pods there should be
	healthy  int32 // how many of them have to be ready
}

// demandOf computes it. covered is how many pods the budget selects; expected
// says how many their owners want, and is asked only by budgets that are
// relative to that. Percentages are rounded up, of both kinds, as Kubernetes
// does.
func demandOf(spec *policyv1.PodDisruptionBudgetSpec, covered int32, expected func() (int32, error)) (demand, error) {
	switch {
	case spec.MaxUnavailable != nil:
		total, err := expected()
		if err != nil {
			return demand{}, err
		}
		spare, err := intstr.GetScaledValueFromIntOrPercent(spec.MaxUnavailable, int(total), true)
		return demand{total, max(total-saturated(spare), 0)}, err
	case spec.MinAvailable == nil:
		return demand{}, nil
	case spec.MinAvailable.Type == intstr.Int:
		return demand{covered, spec.MinAvailable.IntVal}, nil
	}
	total, err := expected()
	if err != nil {
		return demand{}, err
	}
	least, err := intstr.GetScaledValueFromIntOrPercent(spec.MinAvailable, int(total), true)
	return demand{total, saturated(least)}, err
}

// saturated is a number of pods as a status can say it: percentages of billions are rounded up.
func saturated(n int) int32 { return int32(min(n, math.MaxInt32)) }

// census is what a budget's pods look like now.
type census struct {
	healthy int32
	// evicted are the pods whose eviction was allowed and that are not being
	// deleted yet, with when that was.
	evicted map[string]metav1.Time
	// stayed are those that should have been deleted by now.
	stayed []*corev1.Pod
	// again is when the next of the evicted will have stayed too long; 0 is
	// never.
	again time.Duration
}

// countPods looks at the pods that a budget covers. A pod that is on its way
// out is not healthy, whatever it says itself.
func countPods(covered []*corev1.Pod, evicted map[string]metav1.Time, now time.Time) census {
	c := census{evicted: map[string]metav1.Time{}}
	for _, pod := range covered {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if since, ok := evicted[pod.Name]; ok {
			left := since.Add(deletionTimeout).Sub(now)
			if left > 0 {
				c.evicted[pod.Name] = since
				if c.again == 0 || left < c.again {
					c.again = left
				}
				continue
			}
			c.stayed = append(c.stayed, pod)
		}
		if pods.Ready(pod) {
			c.healthy++
		}
	}
	return c
}

// statusOf is the status of a budget with that demand and those pods.
func statusOf(budget *policyv1.PodDisruptionBudget, d demand, c census) policyv1.PodDisruptionBudgetStatus {
	allowed := max(c.healthy-d.healthy, 0)
	if d.expected <= 0 {
		// The first pods of a budget appear before their owner is counted.
		allowed = 0
	}
	status := policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation,
		DisruptedPods:      c.evicted,
		DisruptionsAllowed: allowed,
		CurrentHealthy:     c.healthy,
		DesiredHealthy:     d.healthy,
		ExpectedPods:       d.expected,
		Conditions:         budget.DeepCopy().Status.Conditions,
	}
	condition := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue,
		Reason: policyv1.SufficientPodsReason, ObservedGeneration: budget.Generation,
	}
	if allowed == 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, policyv1.InsufficientPodsReason
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

// opens reports whether a status allows disruptions that the one before does not. An eviction that is allowed by
// pods or owners that are others by now cannot be undone. A status that allows fewer must not wait.
func opens(budget *policyv1.PodDisruptionBudget, status policyv1.PodDisruptionBudgetStatus) bool {
	before := budget.Status.DisruptionsAllowed
	if budget.Status.ObservedGeneration != budget.Generation {
		before = 0 // the server allows none
	}
	return status.DisruptionsAllowed > before
}

// failedStatus closes a budget that could not be computed: an eviction that is
// refused can be tried again, one that is allowed wrongly cannot be undone.
func failedStatus(budget *policyv1.PodDisruptionBudget, failure error) policyv1.PodDisruptionBudgetStatus {
	status := *budget.Status.DeepCopy()
	status.DisruptionsAllowed = 0
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
		Reason: policyv1.SyncFailedReason, Message: failure.Error(), ObservedGeneration: status.ObservedGeneration,
	})
	return status
}
