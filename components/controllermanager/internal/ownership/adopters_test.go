package ownership

import (
	"context"
	"errors"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// TestManyPodsOfLargeSelectors: a handler that asks of each owner whether it selects a pod costs what labels the pod has. Held
// against each requirement and value, the pods that are there when a controller starts took an hour, beyond the time of all
// tests of the package, in which other users' changes waited.
func TestManyPodsOfLargeSelectors(t *testing.T) {
	web, db := manyRequirements(30_000), manyRequirements(30_000)
	db.MatchLabels["app"] = "db"
	owners := informerOf(t, budget("web", web), budget("db", db), budget("all", &metav1.LabelSelector{}), budget("none", nil),
		budget("small", &metav1.LabelSelector{MatchLabels: web.MatchLabels}))
	var s Selectors
	selector := func(b *policyv1.PodDisruptionBudget) *metav1.LabelSelector { return b.Spec.Selector }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Labels: map[string]string{"app": "web"}}}
	if n := len(Selecting(owners, &s, selector, pod)); n != 3 {
		t.Errorf("%d select it, want 3", n)
	}
	offered := 0
	offer := OfferTo[*corev1.Pod](owners, &s, selector, func(controller.Key) { offered++ })
	const pods = 1_000_000
	for range pods {
		offer(pod)
	}
	if offered != 2*pods {
		t.Errorf("offered %d times, want %d", offered, 2*pods)
	}
	if len(s.large) != 2 {
		t.Errorf("%d are kept", len(s.large))
	}
}

// TestSelectorsOfOwnersThatGo: a handler that was under way when an owner went, or changed, leaves nothing of it.
func TestSelectorsOfOwnersThatGo(t *testing.T) {
	large := manyRequirements(1000)
	changed, again := budget("changed", nil), budget("again", nil)
	changed.Generation, again.UID = 2, "2"
	current := currentIn(informerOf(t, changed, again, budget("there", large)))
	for name, kept := range map[string]int{"gone": 0, "changed": 0, "again": 0, "there": 1} {
		var s Selectors
		held := budget(name, large)
		if selects := s.selects(held, large, labels.Set{"app": "web"}, current); !selects || len(s.large) != kept {
			t.Errorf("%s: selects: %v, %d are kept", name, selects, len(s.large))
		}
	}
}

// TestUnreadableLargeSelectors: a large selector that cannot be read selects nothing, and is not read again for each pod.
func TestUnreadableLargeSelectors(t *testing.T) {
	wrong := manyRequirements(1000)
	wrong.MatchLabels["not a key"] = "x"
	owner := budget("wrong", wrong)
	owners := informerOf(t, owner)
	var s Selectors
	selector := func(b *policyv1.PodDisruptionBudget) *metav1.LabelSelector { return b.Spec.Selector }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Labels: map[string]string{"app": "web", "not a key": "x"}}}
	for i := range 2 {
		if _, now, err := s.ofLarge(owner, wrong); err == nil || now != (i == 0) {
			t.Errorf("attempt %d: read now: %v, %v", i, now, err)
		}
	}
	if n := len(Selecting(owners, &s, selector, pod)); n != 0 || len(s.large) != 1 {
		t.Errorf("%d select it, %d are kept", n, len(s.large))
	}
}

func budget(name string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1", Generation: 1, ResourceVersion: "1"}}
	b.Spec.Selector = selector
	return b
}

// informerOf returns an informer that has what it is given.
func informerOf(t *testing.T, budgets ...*policyv1.PodDisruptionBudget) *informer.SharedInformer[*policyv1.PodDisruptionBudget] {
	t.Helper()
	inf := informer.New("budgets", unchanging(budgets), reflector.Options{PagedList: true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- inf.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	<-inf.Synced()
	return inf
}

// unchanging is a server in which nothing changes.
type unchanging []*policyv1.PodDisruptionBudget

func (u unchanging) List(context.Context, metav1.ListOptions) (*client.List[*policyv1.PodDisruptionBudget], error) {
	return &client.List[*policyv1.PodDisruptionBudget]{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: u}, nil
}

func (u unchanging) Watch(ctx context.Context, _ metav1.ListOptions) (reflector.Stream[*policyv1.PodDisruptionBudget], error) {
	ctx, cancel := context.WithCancel(ctx)
	return quiet{ctx, cancel}, nil
}

type quiet struct {
	ctx    context.Context
	cancel func()
}

func (q quiet) Next() (client.WatchEvent[*policyv1.PodDisruptionBudget], error) {
	<-q.ctx.Done()
	return client.WatchEvent[*policyv1.PodDisruptionBudget]{}, io.EOF
}

func (q quiet) Close() { q.cancel() }
