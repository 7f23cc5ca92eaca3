package namespace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report says in the namespace's conditions what keeps it, in the words of Kubernetes.
func (c *Controller) report(ctx context.Context, namespace *corev1.Namespace, p pass) error {
	update := namespace.DeepCopy()
	p.setConditions(update)
	if equality.Semantic.DeepEqual(namespace.Status, update.Status) {
		return nil
	}
	_, err := c.api.UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (p *pass) setConditions(namespace *corev1.Namespace) {
	undiscovered := ""
	if p.undiscovered != nil {
		undiscovered = p.undiscovered.Error()
	}
	for _, c := range []struct {
		kind                       corev1.NamespaceConditionType
		failed                     string // "" if the condition does not hold
		reason, otherwise, message string
	}{
		{corev1.NamespaceDeletionDiscoveryFailure, undiscovered, "DiscoveryFailed", "ResourcesDiscovered", "All resources successfully discovered"},
		{corev1.NamespaceDeletionGVParsingFailure, "", "", "ParsedGroupVersions", "All legacy kube types successfully parsed"},
		{corev1.NamespaceDeletionContentFailure, p.failures(), "ContentDeletionFailed", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"},
		{corev1.NamespaceContentRemaining, p.remaining(), "SomeResourcesRemain", "ContentRemoved", "All content successfully removed"},
		{corev1.NamespaceFinalizersRemaining, p.finalizing(), "SomeFinalizersRemain", "ContentHasNoFinalizers", "All content-preserving finalizers finished"},
	} {
		condition := corev1.NamespaceCondition{Type: c.kind, Status: corev1.ConditionFalse, Reason: c.otherwise, Message: c.message}
		if c.failed != "" {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, c.reason, c.failed
		}
		setCondition(namespace, condition)
	}
}

// failures says what could not be deleted.
func (p *pass) failures() string {
	if len(p.failed) == 0 {
		return ""
	}
	var all []string
	for _, err := range p.failed {
		all = append(all, err.Error())
	}
	slices.Sort(all)
	return fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(all), strings.Join(all, ", "))
}

// remaining says how many objects there still are.
func (p *pass) remaining() string {
	var all []string
	for resource, n := range p.left {
		all = append(all, fmt.Sprintf("%s.%s has %d resource instances", resource.Resource, resource.Group, n))
	}
	return sentence("Some resources are remaining: ", all)
}

// finalizing says which finalizers these objects have.
func (p *pass) finalizing() string {
	var all []string
	for finalizer, n := range p.finalizers {
		all = append(all, fmt.Sprintf("%s in %d resource instances", finalizer, n))
	}
	return sentence("Some content in the namespace has finalizers remaining: ", all)
}

// sentence lists parts, which come in no order; "" if there are none.
func sentence(begin string, parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return begin + strings.Join(parts, ", ")
}

// setCondition sets a condition. Its time is that of the last change of its status.
func setCondition(namespace *corev1.Namespace, condition corev1.NamespaceCondition) {
	condition.LastTransitionTime = metav1.Now()
	for i := range namespace.Status.Conditions {
		if old := &namespace.Status.Conditions[i]; old.Type == condition.Type {
			if old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			*old = condition
			return
		}
	}
	namespace.Status.Conditions = append(namespace.Status.Conditions, condition)
}
