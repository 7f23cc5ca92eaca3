package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// OfferTo returns a function that adds the key of every owner whose selector matches an orphan:
// each may want to adopt it. An owner with an empty selector adopts nothing.
func OfferTo[O metav1.Object, T client.Object](owners *informer.SharedInformer[T], selector func(T) *metav1.LabelSelector, add func(controller.Key)) func(orphan O) {
	return func(orphan O) {
		for _, owner := range owners.Lister().List(orphan.GetNamespace(), nil) {
			s := selector(owner)
			if s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 && Selects(s, orphan.GetLabels()) {
				add(controller.KeyOf(owner))
			}
		}
	}
}
