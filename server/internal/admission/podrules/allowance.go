package podrules

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// allowance is a list of tolerations in which one is looked up that includes another. A namespace's annotation may list ten
// thousands, and a pod have as many.
type allowance struct {
	equal sets.Set[tolerationKey]
	wide  map[wideToleration]period
}

// wideToleration is what the tolerations that one includes have in common.
type wideToleration struct {
	key    string
	effect corev1.TaintEffect // "": all
	exists bool               // with any value; if the key is empty, too: with any key
	value  string
}

// period is how long a pod may stay.
type period struct {
	unlimited bool
	seconds   int64
}

func allowanceOf(list []corev1.Toleration) *allowance {
	a := &allowance{equal: make(sets.Set[tolerationKey], len(list)), wide: make(map[wideToleration]period, len(list))}
	for i := range list {
		t := &list[i]
		a.equal.Insert(keyOf(t))
		w := wideToleration{key: t.Key, effect: t.Effect}
		switch t.Operator {
		case corev1.TolerationOpExists:
			w.exists = true
		case corev1.TolerationOpEqual, "":
			w.value = t.Value
		default:
			continue
		}
		stays, known := a.wide[w]
		if !known {
			stays.seconds = math.MinInt64
		}
		if t.Effect != corev1.TaintEffectNoExecute || t.TolerationSeconds == nil {
			stays.unlimited = true
		} else {
			stays.seconds = max(stays.seconds, *t.TolerationSeconds)
		}
		a.wide[w] = stays
	}
	return a
}

func (a *allowance) isEmpty() bool { return len(a.equal) == 0 }

// has reports whether one of the list includes a toleration.
func (a *allowance) has(t *corev1.Toleration) bool {
	if a.equal.Has(keyOf(t)) {
		return true
	}
	for _, effect := range []corev1.TaintEffect{"", t.Effect} {
		if a.covers(wideToleration{effect: effect, exists: true}, t) || a.covers(wideToleration{key: t.Key, effect: effect, exists: true}, t) {
			return true
		}
		plain := t.Operator == "" || t.Operator == corev1.TolerationOpEqual
		if plain && a.covers(wideToleration{key: t.Key, effect: effect, value: t.Value}, t) {
			return true
		}
	}
	return false
}

func (a *allowance) covers(w wideToleration, t *corev1.Toleration) bool {
	stays, ok := a.wide[w]
	return ok && (stays.unlimited || t.TolerationSeconds != nil && *t.TolerationSeconds <= stays.seconds)
}
