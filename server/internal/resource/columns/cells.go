package columns

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// The texts of a cell that has no value. Scripts rely on which of them a column
// prints, and there is no rule to it.
const (
	None    = "<none>"
	Unset   = "<unset>"
	Unknown = "<unknown>"
)

// Since returns how long ago t was, as people read it: "5m", "3d4h".
func Since(t metav1.Time, now time.Time) string {
	return SinceTime(t.Time, now)
}

// SinceTime is Since for a plain time.
func SinceTime(t, now time.Time) string {
	if t.IsZero() {
		return Unknown
	}
	return duration.HumanDuration(now.Sub(t))
}

// Or returns s, or instead if s is empty.
func Or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// ValueOr returns what p points to, or instead if p is nil.
func ValueOr[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}

// Fraction is "ready/wanted".
func Fraction[N int | int32](part, whole N) string {
	return fmt.Sprintf("%d/%d", part, whole)
}

// AtMost joins the first few of a list, and says how many there are beyond.
func AtMost(limit int, separator string, list []string) string {
	if len(list) <= limit {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(list[:limit], separator), len(list)-limit)
}

// ContainerCells returns the names and the images of containers.
func ContainerCells(list []corev1.Container) (names, images string) {
	n, i := make([]string, len(list)), make([]string, len(list))
	for k := range list {
		n[k], i[k] = list[k].Name, list[k].Image
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// SortedSet joins the distinct, non-empty strings of a list in order.
func SortedSet(list []string) string {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ",")
}

// Condition returns the condition of a type, nil if there is none. Every kind
// has its own Go type of condition, so the caller says how to read the type.
func Condition[C any, T comparable](conditions []C, typeOf func(*C) T, want T) *C {
	for i := range conditions {
		if typeOf(&conditions[i]) == want {
			return &conditions[i]
		}
	}
	return nil
}
