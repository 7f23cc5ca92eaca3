package pod

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/storage"
)

// budgetRetrySeconds is when a client should ask again for a budget that its
// controller has not looked at yet.
const budgetRetrySeconds = 10

// maxAttempts bounds how often an eviction is decided again because the pod has
// changed.
const maxAttempts = 1000

// Evict deletes a pod if the PodDisruptionBudget that covers it allows one more
// disruption, which it takes. Otherwise the answer is 429 with the cause
// DisruptionBudget. A pod that needs no budget, because it has not started or has
// ended, is deleted in the state in which that was seen or not at all; any other
// pod only if it still is the pod that was looked at, and not another of its name.
func Evict(ctx context.Context, pods registry.Registry, namespace, name string, eviction *policyv1.Eviction, write registry.WriteOptions) (*registry.Result, error) {
	if eviction.Name != "" && eviction.Name != name {
		return nil, status.BadRequest("name in URL does not match name in Eviction object")
	}
	if eviction.Namespace != "" && eviction.Namespace != namespace {
		return nil, status.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if err := checkOptions(name, eviction.DeleteOptions); err != nil {
		return nil, err
	}
	write.DryRun = write.DryRun || eviction.DeleteOptions != nil && len(eviction.DeleteOptions.DryRun) > 0
	admitted, err := pods.AdmitUnstored(ctx, registry.Unstored{
		Subresource: "eviction", Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"), Namespace: namespace, Name: name, Object: eviction, Options: write,
	})
	if err != nil {
		return nil, err
	}
	eviction, ok := admitted.(*policyv1.Eviction)
	if !ok {
		return nil, status.BadRequest("admission made a %T of the eviction", admitted)
	}
	opts := eviction.DeleteOptions
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	for range maxAttempts {
		result, moved, err := evictOnce(ctx, pods, namespace, name, opts)
		if !moved {
			return result, err
		}
	}
	return nil, apierrors.NewServerTimeout(pods.Resource().GroupResource(), "evict", 1)
}

// checkOptions refuses the one option of a delete that an eviction does not have.
func checkOptions(name string, opts *metav1.DeleteOptions) error {
	if opts == nil || !ptr.Deref(opts.IgnoreStoreReadErrorWithClusterBreakingPotential, false) {
		return nil
	}
	at := field.NewPath("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential")
	return apierrors.NewInvalid(schema.GroupKind{Group: policyv1.GroupName, Kind: "Eviction"}, name,
		field.ErrorList{field.Invalid(at, true, "can not be set for pod eviction, try after removing the option")})
}

// evictOnce decides on the pod's current state. moved: the state has changed
// before the pod was deleted, so that the decision does not hold any more.
func evictOnce(ctx context.Context, pods registry.Registry, namespace, name string, opts *metav1.DeleteOptions) (result *registry.Result, moved bool, err error) {
	obj, err := pods.GetFromStore(ctx, namespace, name)
	if err != nil {
		return nil, false, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, false, apierrors.NewNotFound(pods.Resource().GroupResource(), name)
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
		result, err = deleteEvicted(ctx, pods, pod, opts)
		return result, mayRetry && apierrors.IsConflict(err) && *opts.Preconditions.UID == pod.UID, err
	}
	result, err = evictWithinBudget(ctx, pods, pod, opts)
	return result, false, err
}

// evictWithinBudget deletes a pod that its budget, if it has one, can do without.
func evictWithinBudget(ctx context.Context, pods registry.Registry, pod *corev1.Pod, opts *metav1.DeleteOptions) (*registry.Result, error) {
	budget, err := budgetOf(ctx, pods, pod)
	switch {
	case err != nil:
		return nil, err
	case budget == nil:
		return deleteEvicted(ctx, pods, pod, opts)
	case !ready(pod) && toleratesUnready(budget):
		return evictUnready(ctx, pods, pod, budget.Name, opts)
	}
	if err := takeDisruption(ctx, pods, pod, budget.Name, len(opts.DryRun) > 0); err != nil {
		return nil, err
	}
	return deleteEvicted(ctx, pods, pod, opts)
}

// evictUnready deletes a pod that disrupts nothing, because it is not ready, in the state in
// which that was seen. If it has changed since, the client has to ask again.
func evictUnready(ctx context.Context, pods registry.Registry, pod *corev1.Pod, budget string, opts *metav1.DeleteOptions) (*registry.Result, error) {
	demanded := opts.Preconditions.ResourceVersion != nil
	if !demanded {
		opts.Preconditions.ResourceVersion = &pod.ResourceVersion
	}
	result, err := deleteEvicted(ctx, pods, pod, opts)
	if apierrors.IsConflict(err) && !demanded {
		err = beingProcessed(budget)
	}
	return result, err
}

// markEndpoint is how an eviction writes a pod's status. As with kube-apiserver, nobody owns what it writes.
var markEndpoint = registry.Endpoint{Subresource: "status", Scope: registry.ScopeStatus, Ownership: registry.OwnershipKept}

// deleteEvicted writes into the pod's status why it ends (KEP-3329), and deletes
// it.
func deleteEvicted(ctx context.Context, pods registry.Registry, pod *corev1.Pod, opts *metav1.DeleteOptions) (*registry.Result, error) {
	if len(opts.DryRun) > 0 {
		return pods.DeleteAdmitted(ctx, pod.Namespace, pod.Name, opts)
	}
	marked, err := pods.UpdateThrough(ctx, markEndpoint, pod.Namespace, pod.Name, func(current resource.Object) (resource.Object, error) {
		if err := pods.CheckPreconditions(pod.Name, opts.Preconditions, current); err != nil {
			return nil, err
		}
		pod := current.(*corev1.Pod).DeepCopy()
		markEvicted(pod, pods.Set().Now())
		return pod, nil
	}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, Unconditional: true})
	if err != nil {
		return nil, err
	}
	if opts.Preconditions.ResourceVersion != nil {
		opts = opts.DeepCopy()
		opts.Preconditions.ResourceVersion = new(marked.Object.GetResourceVersion())
	}
	return pods.DeleteAdmitted(ctx, pod.Namespace, pod.Name, opts)
}

func markEvicted(pod *corev1.Pod, now metav1.Time) {
	condition := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
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

// needsBudget is false for pods that do not count as healthy replicas: finished,
// never started, or being deleted.
func needsBudget(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return false
	}
	return pod.DeletionTimestamp == nil
}

// budgetOf returns the pod's budget, or nil.
func budgetOf(ctx context.Context, pods registry.Registry, pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	budgets, ok := pods.Set().Lookup("policy", "v1", "poddisruptionbudgets")
	if !ok {
		return nil, nil //nolint:nilnil // no budget is no error
	}
	prefix := budgets.Resource().Stored().StorePrefix + pod.Namespace + "/"
	page, err := pods.Set().Store().List(ctx, prefix, storage.ListOptions{})
	if err != nil {
		return nil, pods.StoreError(pod.Name, err)
	}
	var found *policyv1.PodDisruptionBudget
	for i := range page.Items {
		obj, err := budgets.DecodeStored(ctx, &page.Items[i])
		if err != nil {
			return nil, err
		}
		budget, ok := obj.(*policyv1.PodDisruptionBudget)
		if !ok || !covers(budget, pod) {
			continue
		}
		if found != nil {
			return nil, status.Failure(http.StatusInternalServerError, metav1.StatusReasonUnknown,
				"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
		}
		found = budget
	}
	return found, nil
}

func covers(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// takeDisruption takes one of the disruptions that the budget allows.
func takeDisruption(ctx context.Context, pods registry.Registry, pod *corev1.Pod, name string, dryRun bool) error {
	budgets, ok := pods.Set().Lookup("policy", "v1", "poddisruptionbudgets")
	if !ok {
		return nil
	}
	_, err := budgets.UpdateStatus(ctx, pod.Namespace, name, func(current resource.Object) (resource.Object, error) {
		budget := current.(*policyv1.PodDisruptionBudget).DeepCopy()
		if err := checkBudget(budget); err != nil {
			return nil, err
		}
		budget.Status.DisruptionsAllowed--
		if budget.Status.DisruptionsAllowed == 0 {
			meta.SetStatusCondition(&budget.Status.Conditions, metav1.Condition{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
				ObservedGeneration: budget.Status.ObservedGeneration, LastTransitionTime: pods.Set().Now(),
			})
		}
		if budget.Status.DisruptedPods == nil {
			budget.Status.DisruptedPods = make(map[string]metav1.Time, 1)
		}
		budget.Status.DisruptedPods[pod.Name] = pods.Set().Now()
		return budget, nil
	}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{DryRun: dryRun, FieldManager: registry.ServerManager, Admitted: true}, Unconditional: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// maxUnconfirmed bounds the evictions in a budget's status whose pods the
// disruption controller has not seen go.
const maxUnconfirmed = 2000

// checkBudget says why a budget allows no disruption now, in the order of Kubernetes.
func checkBudget(budget *policyv1.PodDisruptionBudget) error {
	switch s := budget.Status; {
	case s.ObservedGeneration < budget.Generation:
		return beingProcessed(budget.Name)
	case s.DisruptionsAllowed < 0:
		return unfitBudget(budget.Name, "pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
	case len(s.DisruptedPods) > maxUnconfirmed:
		return unfitBudget(budget.Name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
			"too many pending evictions not confirmed by PDB controller")
	case s.DisruptionsAllowed == 0:
		return overBudget(shortfall(budget), 0)
	}
	return nil
}

// unfitBudget is the 403 for a budget whose status allows nothing until its controller has put it right.
func unfitBudget(name, why, cause string) error {
	err := apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), name, errors.New(why))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    policyv1.DisruptionBudgetCause,
		Message: fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: %s", name, cause),
	}}
	return err
}

// shortfall describes what a budget that allows no disruption lacks.
func shortfall(budget *policyv1.PodDisruptionBudget) string {
	s := budget.Status
	c := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	told := c != nil && c.Status == metav1.ConditionFalse && c.Message != ""
	switch {
	case told && c.Reason == policyv1.SyncFailedReason: // of which no count is right
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s", budget.Name, c.Message)
	case s.CurrentHealthy <= s.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, s.DesiredHealthy, s.CurrentHealthy)
	case told:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s", budget.Name, c.Reason, c.Message)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", budget.Name)
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// toleratesUnready reports whether an unready pod may be evicted: always, or while
// the budget is healthy without it.
func toleratesUnready(budget *policyv1.PodDisruptionBudget) bool {
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	if policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	s := budget.Status
	return s.CurrentHealthy >= s.DesiredHealthy && s.DesiredHealthy > 0
}

// beingProcessed is the 429 for a budget that its controller has not looked at yet.
func beingProcessed(budget string) error {
	return overBudget(fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget), budgetRetrySeconds)
}

// overBudget is the 429 that names in a cause what the budget lacks.
func overBudget(why string, retryAfterSeconds int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfterSeconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: why}}
	return err
}
