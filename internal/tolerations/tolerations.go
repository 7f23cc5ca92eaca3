// Package tolerations says which taints a pod tolerates, and for how long, as Kubernetes does
// (Toleration.ToleratesTaint of k8s.io/api). That compares each taint with each toleration, for each node: a pod
// with 1,000 of them, and nodes with many taints, cost millions of comparisons a decision. Here a taint is looked up.
package tolerations

import corev1 "k8s.io/api/core/v1"

// Index finds the tolerations of a pod that match a taint. The zero value has none. It is safe for concurrent use.
type Index struct {
	few  []corev1.Toleration // are compared
	many map[pattern]period  // is nil if few are all
}

// fewTolerations is how many tolerations are compared rather than looked up: most pods have two or three.
const fewTolerations = 8

// pattern is what the taints that a toleration matches have in common.
type pattern struct {
	key    string             // "": any
	effect corev1.TaintEffect // "": any
	exists bool               // any value
	value  string
}

// period is how long a taint is tolerated.
type period struct {
	limited bool
	seconds int64
}

// Of returns the index of tolerations, which must not be changed while it is used.
func Of(list []corev1.Toleration) Index {
	if len(list) <= fewTolerations {
		return Index{few: list}
	}
	x := Index{many: make(map[pattern]period, len(list))}
	for i := range list {
		if p, ok := patternOf(&list[i]); ok {
			known, before := x.many[p]
			x.many[p] = shortest(known, before, periodOf(&list[i]))
		}
	}
	return x
}

// patternOf returns what a toleration matches; ok is false if that is nothing: the operators Lt and Gt need a
// feature gate that is off.
func patternOf(t *corev1.Toleration) (p pattern, ok bool) {
	p = pattern{key: t.Key, effect: t.Effect}
	switch t.Operator {
	case corev1.TolerationOpExists:
		p.exists = true
	case corev1.TolerationOpEqual, "":
		p.value = t.Value
	default:
		return pattern{}, false
	}
	return p, true
}

func periodOf(t *corev1.Toleration) period {
	if t.TolerationSeconds == nil {
		return period{}
	}
	return period{limited: true, seconds: *t.TolerationSeconds}
}

// shortest returns the shorter of two periods, or the second if there is no first.
func shortest(a period, known bool, b period) period {
	if !known || !a.limited || b.limited && b.seconds < a.seconds {
		return b
	}
	return a
}

// Tolerate reports whether a taint is tolerated, at least for a while.
func (x *Index) Tolerate(taint *corev1.Taint) bool {
	_, ok := x.find(taint)
	return ok
}

// Seconds returns for how long a taint is tolerated: the shortest time of the tolerations that match it, which may
// be negative; limited is false if none of them has one. ok is false if none matches.
func (x *Index) Seconds(taint *corev1.Taint) (seconds int64, limited, ok bool) {
	p, ok := x.find(taint)
	return p.seconds, p.limited, ok
}

func (x *Index) find(taint *corev1.Taint) (found period, ok bool) {
	matched := func(p period) { found, ok = shortest(found, ok, p), true }
	for i := range x.few {
		if t := &x.few[i]; matches(t, taint) {
			matched(periodOf(t))
		}
	}
	if x.many == nil {
		return found, ok
	}
	for _, key := range [...]string{taint.Key, ""} {
		for _, effect := range [...]corev1.TaintEffect{taint.Effect, ""} {
			for _, p := range [...]pattern{{key, effect, true, ""}, {key, effect, false, taint.Value}} {
				if t, known := x.many[p]; known {
					matched(t)
				}
			}
		}
	}
	return found, ok
}

// matches is Toleration.ToleratesTaint.
func matches(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Value == taint.Value
	}
	return false
}
