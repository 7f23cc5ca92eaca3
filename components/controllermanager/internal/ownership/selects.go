package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Selects reports whether a selector that the server has validated matches labels. Handlers ask it of all owners of a namespace
// for each of its pods' changes: it makes nothing of the selector, which may have a megabyte. Nil selects nothing.
func Selects(selector *metav1.LabelSelector, labels map[string]string) bool {
	if selector == nil || !SelectsAll(selector.MatchLabels, labels) {
		return false
	}
	for i := range selector.MatchExpressions {
		if !holds(&selector.MatchExpressions[i], labels) {
			return false
		}
	}
	return true
}

// SelectsAll reports whether labels have all those that are wanted.
func SelectsAll(wanted, labels map[string]string) bool {
	if len(wanted) > len(labels) {
		return false
	}
	for key, want := range wanted {
		if value, ok := labels[key]; !ok || value != want {
			return false
		}
	}
	return true
}

func holds(r *metav1.LabelSelectorRequirement, labels map[string]string) bool {
	value, ok := labels[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return ok && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !ok || !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return ok
	case metav1.LabelSelectorOpDoesNotExist:
		return !ok
	}
	return false
}
