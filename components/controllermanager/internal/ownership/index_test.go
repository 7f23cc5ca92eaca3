package ownership

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/cache"
)

// changing is an indexer in which an object becomes another one right after each read.
type changing struct {
	*cache.Indexer[*corev1.Pod]
	t     *testing.T
	after []*corev1.Pod
}

func (c *changing) ByIndex(name, value string) ([]*corev1.Pod, error) {
	found, err := c.Indexer.ByIndex(name, value)
	c.change()
	return found, err
}

func (c *changing) ByIndexAny(name string, values ...string) ([]*corev1.Pod, error) {
	found, err := c.Indexer.ByIndexAny(name, values...)
	c.change()
	return found, err
}

func (c *changing) change() {
	if len(c.after) == 0 {
		return
	}
	if err := c.Update(c.after[0]); err != nil {
		c.t.Error(err)
	}
	c.after = c.after[1:]
}

// TestCandidatesAreOfOneMoment: a pod that its owner adopts or releases during the read is a candidate once. One that is none makes
// the owner create another, and one that is two makes it delete one.
func TestCandidatesAreOfOneMoment(t *testing.T) {
	owner := &metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}
	pod := func(version string, owned bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "2", ResourceVersion: version}}
		if owned {
			p.OwnerReferences = []metav1.OwnerReference{{UID: owner.UID, Controller: new(true)}}
		}
		return p
	}
	for name, owned := range map[string]bool{"released": true, "adopted": false} {
		x := &changing{Indexer: cache.NewIndexer(nil, cache.Indexers[*corev1.Pod]{byOwner: ownerOf[*corev1.Pod]}), t: t, after: []*corev1.Pod{pod("2", !owned)}}
		if err := x.Add(pod("1", owned)); err != nil {
			t.Fatal(err)
		}
		if found, err := (&Index[*corev1.Pod]{read: x}).Candidates(owner); err != nil || len(found) != 1 || len(x.after) != 0 {
			t.Errorf("%s: %d candidates, %v; %d changes to come", name, len(found), err, len(x.after))
		}
	}
}
