package registry

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// budgetRetrySeconds is when to ask again for a budget that its controller
// has not looked at yet.
const budgetRetrySeconds = 10

// Evict deletes a pod if the PodDisruptionBudget that covers it allows one more
// disruption, which it takes. Otherwise the answer is 429 with the cause
// DisruptionBudget. A pod that is not covered any more, because it has not
// started or has ended, goes in the state in which that was seen or not at all;
// any other only if it is still the pod that was looked at and not another of
// its name.
func (r Registry) Evict(ctx context.Context, namespace, name string, eviction *policyv1.Eviction) (*Result, error) {
	if eviction.Name != "" && eviction.Name != name {
		return nil, status.BadRequest("name in URL does not match name in Eviction object: %q != %q", name, eviction.Name)
	}
	if eviction.Namespace != "" && eviction.Namespace != namespace {
		return nil, status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	opts := eviction.DeleteOptions
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	for range maxAttempts {
		result, moved, err := r.evictOnce(ctx, namespace, name, opts)
		if !moved {
			return result, err
		}
	}
	return nil, apierrors.NewServerTimeout(r.res.GroupResource(), "evict", 1)
}

// evictOnce decides on the pod's current state. moved: that has changed before
// the pod was deleted, and what was decided no longer holds.
func (r Registry) evictOnce(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) (result *Result, moved bool, err error) {
	cur, err := r.read(ctx, namespace, name, true)
	if err != nil {
		return nil, false, err
	}
	pod, ok := cur.object.(*corev1.Pod)
	if cur.object == nil || !ok {
		return nil, false, r.notFound(name)
	}
	opts = opts.DeepCopy()
	if opts.Preconditions == nil {
		opts.Preconditions = &metav1.Preconditions{}
	}
	if opts.Preconditions.UID == nil {
		opts.Preconditions.UID = &pod.UID
	}
	if !needsBudget(pod) {
		mayRetry := opts.Preconditions.ResourceVersion == nil
		if mayRetry {
			opts.Preconditions.ResourceVersion = &pod.ResourceVersion
		}
		result, err = r.deleteEvicted(ctx, pod, opts)
		return result, mayRetry && apierrors.IsConflict(err) && *opts.Preconditions.UID == pod.UID, err
	}
	budget, err := r.budgetOf(ctx, pod)
	if err != nil {
		return nil, false, err
	}
	if budget != "" {
		if err := r.takeDisruption(ctx, pod, budget, len(opts.DryRun) > 0); err != nil {
			return nil, false, err
		}
	}
	result, err = r.deleteEvicted(ctx, pod, opts)
	return result, false, err
}

// deleteEvicted says in the pod's status why it ends, for those who ask when it
// has (KEP-3329), and deletes it.
func (r Registry) deleteEvicted(ctx context.Context, pod *corev1.Pod, opts *metav1.DeleteOptions) (*Result, error) {
	if len(opts.DryRun) > 0 {
		return r.Delete(ctx, pod.Namespace, pod.Name, opts)
	}
	marked, err := r.UpdateStatus(ctx, pod.Namespace, pod.Name, func(current resource.Object) (resource.Object, error) {
		if err := r.CheckPreconditions(pod.Name, opts.Preconditions, current); err != nil {
			return nil, err
		}
		pod := current.(*corev1.Pod).DeepCopy()
		markEvicted(pod, r.set.Now())
		return pod, nil
	}, UpdateOptions{WriteOptions: ServerWrites, Unconditional: true})
	if err != nil {
		return nil, err
	}
	if opts.Preconditions.ResourceVersion != nil {
		opts = opts.DeepCopy()
		opts.Preconditions.ResourceVersion = new(marked.Object.GetResourceVersion())
	}
	return r.Delete(ctx, pod.Namespace, pod.Name, opts)
}

func markEvicted(pod *corev1.Pod, now metav1.Time) {
	condition := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting", LastTransitionTime: now,
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == condition.Type {
			if c.Status == condition.Status {
				condition.LastTransitionTime = c.LastTransitionTime
			}
			*c = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

// needsBudget is false for pods that no workload counts on: finished, never
// started, or going already.
func needsBudget(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return false
	}
	return pod.DeletionTimestamp == nil
}

// budgetOf returns the name of the pod's budget, or "".
func (r Registry) budgetOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	budgets, ok := r.set.Lookup("policy", "v1", "poddisruptionbudgets")
	if !ok {
		return "", nil
	}
	prefix := budgets.stored.StorePrefix + pod.Namespace + "/"
	page, err := r.set.config.Store.List(ctx, prefix, storage.ListOptions{})
	if err != nil {
		return "", r.storeError(pod.Name, err)
	}
	found := ""
	for i := range page.Items {
		st, err := budgets.fromStore(ctx, &page.Items[i])
		if err != nil {
			return "", err
		}
		budget, ok := st.object.(*policyv1.PodDisruptionBudget)
		if !ok || !covers(budget, pod) {
			continue
		}
		if found != "" {
			//nolint:revive,staticcheck // clients know this text, capital letter and full stop included
			return "", apierrors.NewInternalError(errors.New(
				"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."))
		}
		found = budget.Name
	}
	return found, nil
}

func covers(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// takeDisruption takes one of the disruptions that the budget allows.
func (r Registry) takeDisruption(ctx context.Context, pod *corev1.Pod, name string, dryRun bool) error {
	budgets, ok := r.set.Lookup("policy", "v1", "poddisruptionbudgets")
	if !ok {
		return nil
	}
	_, err := budgets.UpdateStatus(ctx, pod.Namespace, name, func(current resource.Object) (resource.Object, error) {
		budget := current.(*policyv1.PodDisruptionBudget).DeepCopy()
		if !ready(pod) && toleratesUnready(budget) {
			return budget, nil
		}
		if budget.Status.ObservedGeneration < budget.Generation {
			return nil, overBudget(fmt.Sprintf("The disruption budget %s is still being processed by the server.", name), budgetRetrySeconds)
		}
		if budget.Status.DisruptionsAllowed <= 0 {
			return nil, overBudget(whyClosed(budget), 0)
		}
		if len(budget.Status.DisruptedPods) > maxUnconfirmed {
			return nil, apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), name,
				errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
		}
		budget.Status.DisruptionsAllowed--
		if budget.Status.DisruptedPods == nil {
			budget.Status.DisruptedPods = make(map[string]metav1.Time, 1)
		}
		budget.Status.DisruptedPods[pod.Name] = r.set.Now()
		return budget, nil
	}, UpdateOptions{WriteOptions: WriteOptions{DryRun: dryRun, FieldManager: ServerManager}, Unconditional: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// maxUnconfirmed bounds the evictions that a budget notes before the disruption
// controller has seen their pods go.
const maxUnconfirmed = 2000

// whyClosed says what a budget without allowance lacks.
func whyClosed(budget *policyv1.PodDisruptionBudget) string {
	for _, c := range budget.Status.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason {
			return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %v", budget.Name, c.Message)
		}
	}
	return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
		budget.Name, budget.Status.DesiredHealthy, budget.Status.CurrentHealthy)
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// toleratesUnready: an unready pod may always go, or may go while the budget
// is healthy without it.
func toleratesUnready(budget *policyv1.PodDisruptionBudget) bool {
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	if policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	s := budget.Status
	return s.CurrentHealthy >= s.DesiredHealthy && s.DesiredHealthy > 0
}

// overBudget says in a cause what the budget lacks.
func overBudget(why string, retryAfterSeconds int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfterSeconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: why}}
	return err
}
