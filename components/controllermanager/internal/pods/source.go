package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/ownership"
)

const byNode = "node"

// Source is the one pod informer of a process with its indexes: by owner and
// by node. It is safe for concurrent use.
type Source struct {
	*ownership.Index[*corev1.Pod]
}

// NewSource adds the indexes to the factory's pod informer. Call it once for
// a factory, before it starts, and share the result.
func NewSource(factory *informer.Factory) (*Source, error) {
	inf := informer.For[*corev1.Pod](factory, informer.ListOptions{})
	index, err := ownership.NewIndex(inf)
	if err != nil {
		return nil, err
	}
	return &Source{index}, inf.AddIndexers(cache.Indexers[*corev1.Pod]{byNode: func(pod *corev1.Pod) ([]string, error) {
		if pod.Spec.NodeName == "" {
			return nil, nil
		}
		return []string{pod.Spec.NodeName}, nil
	}})
}

// OnNode returns the pods bound to a node.
func (s *Source) OnNode(node string) ([]*corev1.Pod, error) {
	return s.Informer.Lister().ByIndex(byNode, node)
}

// candidates are the pods that an owner has or could adopt, as they are at one moment.
type candidates interface {
	Candidates(owner metav1.Object) ([]*corev1.Pod, error)
}

// Claim returns the owner's pods: those it has, and the active orphans that
// its selector matches, which it adopts.
func (c *Control) Claim(ctx context.Context, owner metav1.Object, selector labels.Selector, source candidates, alive ownership.Alive) ([]*corev1.Pod, error) {
	candidates, err := source.Candidates(owner)
	if err != nil {
		return nil, err
	}
	claimer := ownership.Claimer[*corev1.Pod]{API: c.api, Kind: c.kind, Adoptable: Active}
	return claimer.Claim(ctx, owner, selector, candidates, alive)
}
