package ownership

import (
	"math"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/client/controller"
)

// largeSelector is the number of labels, expressions and values from which on a selector is kept: below it, reading it anew
// costs less than the memory does.
const largeSelector = 100

// Selectors reads the selectors of a controller's owners. A large one, of which a megabyte fits in an owner, is read once for
// all reconciliations and handlers until the owner's generation changes. The zero value is ready to use, and safe for concurrent use.
type Selectors struct {
	mu    sync.Mutex
	large map[controller.Key]readSelector
}

type readSelector struct {
	uid        types.UID
	generation int64
	selector   labels.Selector
	err        error // why it selects nothing
}

// Of returns the selector of an owner. Nil selects nothing, and an empty one everything.
func (s *Selectors) Of(owner metav1.Object, selector *metav1.LabelSelector) (labels.Selector, error) {
	if !isLarge(selector) {
		s.Forget(controller.KeyOf(owner))
		return metav1.LabelSelectorAsSelector(selector)
	}
	read, _, err := s.ofLarge(owner, selector)
	return read, err
}

// ofLarge returns a large selector, and whether it is kept since now. So is the error of one that cannot be read, which selects
// nothing.
func (s *Selectors) ofLarge(owner metav1.Object, selector *metav1.LabelSelector) (labels.Selector, bool, error) {
	key := controller.KeyOf(owner)
	s.mu.Lock()
	read, ok := s.large[key]
	s.mu.Unlock()
	if ok && read.generation > 0 && read.uid == owner.GetUID() && read.generation == owner.GetGeneration() {
		return read.selector, false, read.err
	}
	read = readSelector{uid: owner.GetUID(), generation: owner.GetGeneration(), selector: labels.Nothing()}
	if parsed, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		read.err = err
	} else {
		read.selector = byKey(parsed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.large == nil {
		s.large = map[controller.Key]readSelector{}
	}
	s.large[key] = read
	return read.selector, true, read.err
}

// selects reports whether an owner's selector matches labels; one that cannot be read matches nothing. current says whether the
// owner is still as it is here: the selector of one that has just gone, or changed, is not kept.
func (s *Selectors) selects(owner metav1.Object, selector *metav1.LabelSelector, set map[string]string, current func(metav1.Object) bool) bool {
	if !isLarge(selector) {
		return Selects(selector, set)
	}
	read, kept, _ := s.ofLarge(owner, selector)
	if kept && !current(owner) {
		s.Forget(controller.KeyOf(owner))
	}
	return read.Matches(labels.Set(set))
}

// Forget drops the selector of an owner that is gone.
func (s *Selectors) Forget(owner controller.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.large, owner)
}

// Indexed returns a selector that matches what another one does, at a cost that does not grow with the selector if that is large.
func Indexed(selector labels.Selector) labels.Selector {
	requirements, _ := selector.Requirements()
	n := len(requirements)
	for i := 0; i < len(requirements) && n < largeSelector; i++ {
		n += len(requirements[i].ValuesUnsorted())
	}
	if n < largeSelector {
		return selector
	}
	return byKey(selector)
}

func isLarge(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	n := len(selector.MatchLabels) + len(selector.MatchExpressions)
	for i := 0; i < len(selector.MatchExpressions) && n < largeSelector; i++ {
		n += len(selector.MatchExpressions[i].Values)
	}
	return n >= largeSelector
}

// keyed is a selector that looks up what it requires of the keys of labels. Kubernetes' own goes through all
// requirements, and through their values, for each pod.
type keyed struct {
	labels.Selector
	keys     map[string]*required
	demanded int // of the keys: labels must have them
}

// required is what a selector requires of the label of a key.
type required struct {
	demanded, forbidden bool
	among               sets.Set[string] // the value is one of these, unless it is nil
	not                 sets.Set[string] // and none of these
	integer             bool             // it is an integer
	least, most         int64            // from here to there
}

// byKey makes of a label selector one that costs a pod as much as it has labels.
func byKey(selector labels.Selector) *keyed {
	s := &keyed{Selector: selector, keys: map[string]*required{}}
	requirements, _ := selector.Requirements()
	for i := range requirements {
		r := &requirements[i]
		of := s.keys[r.Key()]
		if of == nil {
			of = &required{not: sets.Set[string]{}, least: math.MinInt64, most: math.MaxInt64}
			s.keys[r.Key()] = of
		}
		demanded := of.demanded
		of.add(r)
		if of.demanded && !demanded {
			s.demanded++
		}
	}
	return s
}

// add adds what one requirement says of the key.
func (r *required) add(more *labels.Requirement) {
	values := more.ValuesUnsorted()
	switch more.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		if r.demanded = true; r.among == nil {
			r.among = sets.New(values...)
		} else {
			r.among = r.among.Intersection(sets.New(values...))
		}
	case selection.NotEquals, selection.NotIn:
		r.not.Insert(values...)
	case selection.Exists:
		r.demanded = true
	case selection.DoesNotExist:
		r.forbidden = true
	case selection.GreaterThan, selection.LessThan:
		r.demanded, r.integer = true, true
		for _, value := range values { // there is one
			n, err := strconv.ParseInt(value, 10, 64)
			switch greater := more.Operator() == selection.GreaterThan; {
			case err != nil, greater && n == math.MaxInt64, !greater && n == math.MinInt64:
				r.forbidden = true
			case greater:
				r.least = max(r.least, n+1)
			default:
				r.most = min(r.most, n-1)
			}
		}
	}
}

// holds reports whether a label may have the value.
func (r *required) holds(value string) bool {
	if r.forbidden || r.not.Has(value) || r.among != nil && !r.among.Has(value) {
		return false
	}
	if !r.integer {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && r.least <= n && n <= r.most
}

// Matches implements labels.Selector.
func (s *keyed) Matches(of labels.Labels) bool {
	set, ok := of.(labels.Set)
	if !ok {
		return s.Selector.Matches(of)
	}
	demanded := 0
	for key, value := range set {
		r := s.keys[key]
		switch {
		case r == nil:
			continue
		case !r.holds(value):
			return false
		case r.demanded:
			demanded++
		}
	}
	return demanded == s.demanded
}
