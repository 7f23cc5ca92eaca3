// Package conditions sets and reads the conditions in the status of objects, as
// metav1.Condition has them: what was observed, of which generation of the
// object, and since when.
package conditions

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// True returns a condition that holds. Reason is one word in CamelCase, for
// programs, and required by servers; message is a sentence for people.
func True(name, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False returns a condition that does not hold.
func False(name, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown returns a condition of which nothing is known yet.
func Unknown(name, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// Set adds conditions to those in the status of obj, or changes those of the same
// types, and returns whether anything was changed: if not, the status need not be
// written. It sets ObservedGeneration to the generation of obj, and
// LastTransitionTime to now if a status becomes another one.
//
//	changed := conditions.Set(greeting, &greeting.Status.Conditions, conditions.True("Ready", "Greeted", ""))
func Set(obj metav1.Object, conditions *[]metav1.Condition, set ...metav1.Condition) (changed bool) {
	for _, c := range set {
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = obj.GetGeneration()
		}
		if meta.SetStatusCondition(conditions, c) {
			changed = true
		}
	}
	return changed
}

// Get returns the condition of a type, or nil. It is the one in the slice.
func Get(conditions []metav1.Condition, name string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, name)
}

// IsTrue reports whether a condition of this type holds for the present generation
// of obj: what was observed of an older one says nothing about it. A condition
// without an ObservedGeneration counts.
func IsTrue(obj metav1.Object, conditions []metav1.Condition, name string) bool {
	c := meta.FindStatusCondition(conditions, name)
	return c != nil && c.Status == metav1.ConditionTrue && (c.ObservedGeneration == 0 || c.ObservedGeneration >= obj.GetGeneration())
}

// Remove removes the condition of a type and returns whether there was one.
func Remove(conditions *[]metav1.Condition, name string) (changed bool) {
	return meta.RemoveStatusCondition(conditions, name)
}
