// Package nodeaffinity says which nodes a pod's nodeSelector and node affinity require and prefer, as Kubernetes'
// k8s.io/component-helpers/scheduling/corev1/nodeaffinity does. That package copies and sorts all requirements of a
// term for each that it adds, so that a pod of a megabyte held the scheduler for minutes. Here the work
// for a pod is linear in its size, that for a node in the number of requirements, whatever their values.
package nodeaffinity

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Required is what a pod requires of its node. The zero value requires nothing. It is safe for concurrent use.
type Required struct {
	labels   map[string]string
	affinity bool // one of the terms must match
	terms    []term
}

// RequiredBy returns what a pod requires. The spec must not be changed while the result is used.
func RequiredBy(spec *corev1.PodSpec) Required {
	r := Required{labels: spec.NodeSelector}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return r
	}
	selector := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if selector == nil {
		return r
	}
	r.affinity = true
	for i := range selector.NodeSelectorTerms {
		// A term that is empty or invalid matches no node.
		if t, ok := newTerm(&selector.NodeSelectorTerms[i]); ok && !t.empty() {
			r.terms = append(r.terms, t)
		}
	}
	return r
}

// Matches reports whether a node has what is required.
func (r *Required) Matches(node *corev1.Node) bool {
	for key, want := range r.labels {
		if value, ok := node.Labels[key]; !ok || value != want {
			return false
		}
	}
	if !r.affinity {
		return true
	}
	for i := range r.terms {
		if r.terms[i].matches(node) {
			return true
		}
	}
	return false
}

// Preferred is what a pod prefers. The zero value prefers nothing. It is safe for concurrent use.
type Preferred struct{ terms []weighted }

type weighted struct {
	term
	weight int64
}

// PreferredBy returns what a pod prefers: nothing, if one of its terms is invalid.
func PreferredBy(spec *corev1.PodSpec) Preferred {
	var p Preferred
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return p
	}
	preferred := spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	for i := range preferred {
		t, ok := newTerm(&preferred[i].Preference)
		switch {
		case preferred[i].Weight == 0 || ok && t.empty():
		case !ok:
			return Preferred{}
		default:
			p.terms = append(p.terms, weighted{t, int64(preferred[i].Weight)})
		}
	}
	return p
}

// Score returns the sum of the weights of the terms that match a node.
func (p *Preferred) Score(node *corev1.Node) (score int64) {
	for i := range p.terms {
		if p.terms[i].matches(node) {
			score += p.terms[i].weight
		}
	}
	return score
}

// term matches a node for which all its requirements hold.
type term struct {
	labels []requirement
	fields []fieldRequirement
}

func newTerm(from *corev1.NodeSelectorTerm) (t term, valid bool) {
	for i := range from.MatchExpressions {
		r, ok := newRequirement(&from.MatchExpressions[i])
		if !ok {
			return term{}, false
		}
		t.labels = append(t.labels, r)
	}
	for i := range from.MatchFields {
		f := &from.MatchFields[i]
		if len(f.Values) != 1 || f.Operator != corev1.NodeSelectorOpIn && f.Operator != corev1.NodeSelectorOpNotIn {
			return term{}, false
		}
		t.fields = append(t.fields, fieldRequirement{f.Key, f.Values[0], f.Operator == corev1.NodeSelectorOpIn})
	}
	return t, true
}

func (t *term) empty() bool { return len(t.labels)+len(t.fields) == 0 }

func (t *term) matches(node *corev1.Node) bool {
	for i := range t.fields {
		if !t.fields[i].holds(node) {
			return false
		}
	}
	for i := range t.labels {
		if !t.labels[i].holds(node.Labels) {
			return false
		}
	}
	return true
}

// fieldRequirement is that a field has a value, or has another one. The name is a node's only field; others are empty.
type fieldRequirement struct {
	key, value string
	equal      bool
}

func (f *fieldRequirement) holds(node *corev1.Node) bool {
	actual := ""
	if f.key == metav1.ObjectNameField {
		actual = node.Name
	}
	return (actual == f.value) == f.equal
}

// requirement is a requirement of a label.
type requirement struct {
	key      string
	operator corev1.NodeSelectorOperator
	values   sets.Set[string] // of In and NotIn
	bound    int64            // of Gt and Lt
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

func newRequirement(from *corev1.NodeSelectorRequirement) (r requirement, valid bool) {
	if _, err := labels.NewRequirement(from.Key, operators[from.Operator], from.Values); err != nil {
		return requirement{}, false
	}
	r = requirement{key: from.Key, operator: from.Operator}
	switch from.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		r.values = sets.New(from.Values...)
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		var err error
		r.bound, err = strconv.ParseInt(from.Values[0], 10, 64)
		return r, err == nil
	}
	return r, true
}

func (r *requirement) holds(of map[string]string) bool {
	value, ok := of[r.key]
	switch r.operator {
	case corev1.NodeSelectorOpIn:
		return ok && r.values.Has(value)
	case corev1.NodeSelectorOpNotIn:
		return !ok || !r.values.Has(value)
	case corev1.NodeSelectorOpExists:
		return ok
	case corev1.NodeSelectorOpDoesNotExist:
		return !ok
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if !ok || err != nil {
		return false
	}
	return r.operator == corev1.NodeSelectorOpGt && number > r.bound || r.operator == corev1.NodeSelectorOpLt && number < r.bound
}
