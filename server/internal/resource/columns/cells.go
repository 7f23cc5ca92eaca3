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

// What stands in a cell that has no value. Which of them a column uses is part
// of what people know, and not regular.
const (
	none    = "<none>"
	unset   = "<unset>"
	unknown = "<unknown>"
)

// since returns how long ago t was, as people read it: "5m", "3d4h".
func since(t metav1.Time, now time.Time) string {
	return sinceTime(t.Time, now)
}

func sinceTime(t, now time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(t))
}

// or returns s, or instead if s is empty.
func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// value returns what p points to, or instead if p is nil.
func value[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}

// fraction is "ready/wanted".
func fraction[N int | int32](part, whole N) string {
	return fmt.Sprintf("%d/%d", part, whole)
}

// atMost joins the first few of a list, and says how many there are beyond.
func atMost(limit int, separator string, list []string) string {
	if len(list) <= limit {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(list[:limit], separator), len(list)-limit)
}

// containerCells returns the names and the images of containers.
func containerCells(list []corev1.Container) (names, images string) {
	n, i := make([]string, len(list)), make([]string, len(list))
	for k := range list {
		n[k], i[k] = list[k].Name, list[k].Image
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// sortedSet joins the distinct, non-empty strings of a list in order.
func sortedSet(list []string) string {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ",")
}

// condition returns the condition of a type, nil if there is none. Every kind
// has its own Go type of condition, so the caller says how to read the type.
func condition[C any, T comparable](conditions []C, typeOf func(*C) T, want T) *C {
	for i := range conditions {
		if typeOf(&conditions[i]) == want {
			return &conditions[i]
		}
	}
	return nil
}
