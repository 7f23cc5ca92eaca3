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

// period is how long a taint is tolerated, by the toleration that stands at a place of the list.
type period struct {
	at      int
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
		p, ok := patternOf(&list[i])
		if _, before := x.many[p]; ok && !before {
			x.many[p] = periodOf(i, &list[i])
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

func periodOf(at int, t *corev1.Toleration) period {
	if t.TolerationSeconds == nil {
		return period{at: at}
	}
	return period{at: at, limited: true, seconds: *t.TolerationSeconds}
}

// Tolerate reports whether a taint is tolerated, at least for a while.
func (x *Index) Tolerate(taint *corev1.Taint) bool {
	_, ok := x.find(taint)
	return ok
}

// Seconds returns for how long a taint is tolerated, which may be negative: what the first toleration says that
// matches it, as in Kubernetes. limited is false if that one has no time. ok is false if none matches.
func (x *Index) Seconds(taint *corev1.Taint) (seconds int64, limited, ok bool) {
	p, ok := x.find(taint)
	return p.seconds, p.limited, ok
}

func (x *Index) find(taint *corev1.Taint) (first period, ok bool) {
	for i := range x.few {
		if t := &x.few[i]; matches(t, taint) {
			return periodOf(i, t), true
		}
	}
	if x.many == nil {
		return first, false
	}
	for _, key := range [...]string{taint.Key, ""} {
		for _, effect := range [...]corev1.TaintEffect{taint.Effect, ""} {
			for _, p := range [...]pattern{{key, effect, true, ""}, {key, effect, false, taint.Value}} {
				if t, known := x.many[p]; known && (!ok || t.at < first.at) {
					first, ok = t, true
				}
			}
		}
	}
	return first, ok
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
