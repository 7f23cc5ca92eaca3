package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budgets are what PodDisruptionBudgets allow, by their namespaces. They are read once for each preemption that comes into
// question.
type budgets map[string][]budget

type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

// budgetsOf reads budgets. One without a selector, or whose selector cannot be read, covers no pod here, as in kube-scheduler.
func budgetsOf(all []*policyv1.PodDisruptionBudget) budgets {
	b := budgets{}
	for _, pdb := range all {
		if selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector); err == nil && !selector.Empty() {
			b[pdb.Namespace] = append(b[pdb.Namespace], budget{pdb, selector})
		}
	}
	return b
}

// covers reports whether a budget counts that a pod leaves: not if it is about to anyway.
func (b *budget) covers(c *charge) bool {
	if len(c.pod.Labels) == 0 || c.leaving || !b.selector.Matches(labels.Set(c.pod.Labels)) {
		return false
	}
	_, counted := b.Status.DisruptedPods[c.pod.Name]
	return !counted
}

// violating returns those of some pods that a budget keeps from leaving, if all before them leave.
func (b budgets) violating(charges []*charge) map[*corev1.Pod]bool {
	violating, left := map[*corev1.Pod]bool{}, map[*policyv1.PodDisruptionBudget]int32{}
	for _, c := range charges {
		for i := range b[c.pod.Namespace] {
			of := &b[c.pod.Namespace][i]
			if !of.covers(c) {
				continue
			}
			if _, ok := left[of.PodDisruptionBudget]; !ok {
				left[of.PodDisruptionBudget] = of.Status.DisruptionsAllowed
			}
			if left[of.PodDisruptionBudget]--; left[of.PodDisruptionBudget] < 0 {
				violating[c.pod] = true
			}
		}
	}
	return violating
}
