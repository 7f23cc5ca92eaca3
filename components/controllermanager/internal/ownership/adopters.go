package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// OfferTo returns a function that adds the key of every owner whose selector matches an orphan:
// each may want to adopt it. An owner with an empty selector adopts nothing. The owners' controller, which is told of
// each that is gone, has the selectors forget it.
func OfferTo[O metav1.Object, T client.Object](owners *informer.SharedInformer[T], selectors *Selectors, selector func(T) *metav1.LabelSelector, add func(controller.Key)) func(orphan O) {
	return func(orphan O) {
		for _, owner := range Selecting(owners, selectors, selector, orphan) {
			if s := selector(owner); len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
				add(controller.KeyOf(owner))
			}
		}
	}
}

// Selecting returns the owners whose selectors match the labels of an object in their namespace. It costs of each what the
// object has labels, however large its selector is.
func Selecting[T client.Object](owners *informer.SharedInformer[T], selectors *Selectors, selector func(T) *metav1.LabelSelector, obj metav1.Object) (selecting []T) {
	there := currentIn(owners)
	for _, owner := range owners.Lister().List(obj.GetNamespace(), nil) {
		if selectors.selects(owner, selector(owner), obj.GetLabels(), there) {
			selecting = append(selecting, owner)
		}
	}
	return selecting
}

// currentIn returns a function that reports whether the owners have one as it is: neither gone, nor made again, nor with another
// specification.
func currentIn[T client.Object](owners *informer.SharedInformer[T]) func(owner metav1.Object) bool {
	lister := owners.Lister()
	return func(owner metav1.Object) bool {
		now, ok := lister.Get(owner.GetNamespace(), owner.GetName())
		return ok && now.GetUID() == owner.GetUID() && now.GetGeneration() == owner.GetGeneration()
	}
}
