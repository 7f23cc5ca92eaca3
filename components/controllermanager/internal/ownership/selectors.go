package ownership

import (
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
// all reconciliations until the owner's generation changes. The zero value is ready to use, and safe for concurrent use.
type Selectors struct {
	mu    sync.Mutex
	large map[controller.Key]readSelector
}

type readSelector struct {
	uid        types.UID
	generation int64
	selector   labels.Selector
}

// Of returns the selector of an owner. Nil selects nothing, and an empty one everything.
func (s *Selectors) Of(owner metav1.Object, selector *metav1.LabelSelector) (labels.Selector, error) {
	key := controller.KeyOf(owner)
	if !isLarge(selector) {
		s.Forget(key)
		return metav1.LabelSelectorAsSelector(selector)
	}
	s.mu.Lock()
	read, ok := s.large[key]
	s.mu.Unlock()
	if ok && read.generation > 0 && read.uid == owner.GetUID() && read.generation == owner.GetGeneration() {
		return read.selector, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	read = readSelector{owner.GetUID(), owner.GetGeneration(), byKey(parsed)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.large == nil {
		s.large = map[controller.Key]readSelector{}
	}
	s.large[key] = read
	return read.selector, nil
}

// Forget drops the selector of an owner that is gone.
func (s *Selectors) Forget(owner controller.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.large, owner)
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
}

// byKey makes of a label selector one that costs a pod as much as it has labels.
func byKey(selector labels.Selector) *keyed {
	s := &keyed{Selector: selector, keys: map[string]*required{}}
	requirements, _ := selector.Requirements()
	for i := range requirements {
		r := &requirements[i]
		of := s.keys[r.Key()]
		if of == nil {
			of = &required{not: sets.Set[string]{}}
			s.keys[r.Key()] = of
		}
		demanded := of.demanded
		switch r.Operator() {
		case selection.Equals, selection.In:
			if of.demanded = true; of.among == nil {
				of.among = sets.New(r.ValuesUnsorted()...)
			} else {
				of.among = of.among.Intersection(sets.New(r.ValuesUnsorted()...))
			}
		case selection.NotIn:
			of.not.Insert(r.ValuesUnsorted()...)
		case selection.Exists:
			of.demanded = true
		case selection.DoesNotExist:
			of.forbidden = true
		}
		if of.demanded && !demanded {
			s.demanded++
		}
	}
	return s
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
		case r.forbidden || r.not.Has(value) || r.among != nil && !r.among.Has(value):
			return false
		case r.demanded:
			demanded++
		}
	}
	return demanded == s.demanded
}
