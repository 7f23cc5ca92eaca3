package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/levelwiretest"
)

const testTimeout = 3 * time.Minute

// rootCertificate is a ConfigMap that clusters put into every namespace.
const rootCertificate = "kube-root-ca.crt"

// scene is a server and a controller of ConfigMaps whose calls are recorded.
type scene struct {
	t       *testing.T
	ctx     context.Context
	client  *client.Client
	factory *informer.Factory
	maps    *informer.SharedInformer[*corev1.ConfigMap]
	api     client.Resource[*corev1.ConfigMap]
	calls   chan controller.Key
}

func newScene(t *testing.T) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	c := levelwiretest.Start(t).Client(client.Options{ContentType: client.Protobuf})
	s := &scene{t: t, ctx: ctx, client: c, factory: informer.NewFactory(c, informer.Options{}), calls: make(chan controller.Key, 1000)}
	s.maps = informer.For[*corev1.ConfigMap](s.factory, informer.ListOptions{Namespace: "default"})
	s.api = client.For[*corev1.ConfigMap](c).Namespace("default")
	return s
}

func (s *scene) controller(opts controller.Options) *controller.Controller {
	s.t.Helper()
	if opts.Name == "" {
		opts.Name = "test"
	}
	c, err := controller.New(func(_ context.Context, key controller.Key) (controller.Result, error) {
		if key.Name != rootCertificate {
			s.calls <- key
		}
		return controller.Result{}, nil
	}, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// run runs controllers until the returned function is called, which returns
// their error.
func (s *scene) run(opts controller.RunOptions, controllers ...controller.Runnable) (stop func() error) {
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, opts, controllers...) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	s.t.Cleanup(func() { _ = stop() })
	return stop
}

// expect waits for calls with these keys, in any order, and for no other ones
// in between.
func (s *scene) expect(names ...string) {
	s.t.Helper()
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	for len(left) > 0 {
		select {
		case key := <-s.calls:
			if key.Namespace != "default" || !left[key.Name] {
				s.t.Fatalf("called with %s, want %v", key, left)
			}
			delete(left, key.Name)
		case <-s.ctx.Done():
			s.t.Fatalf("no call with %v", left)
		}
	}
}

func (s *scene) create(name string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	s.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, f := range change {
		f(m)
	}
	created, err := s.api.Create(s.ctx, m, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return created
}

func (s *scene) createSecret(name string) *corev1.Secret {
	s.t.Helper()
	created, err := client.For[*corev1.Secret](s.client).Namespace("default").Create(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return created
}

// recordTo returns a ReconcileFunc that sends each key it is called with.
func recordTo[K comparable](calls chan<- K) controller.TypedReconcileFunc[K] {
	return func(_ context.Context, key K) (controller.Result, error) {
		calls <- key
		return controller.Result{}, nil
	}
}

func (s *scene) update(m *corev1.ConfigMap, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	s.t.Helper()
	m = m.DeepCopy()
	change(m)
	m, err := s.api.Update(s.ctx, m, metav1.UpdateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *scene) remove(name string) {
	s.t.Helper()
	if err := s.api.Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func TestForIsCalledWithWhatChanges(t *testing.T) {
	s := newScene(t)
	s.create("before")
	c := s.controller(controller.Options{})
	controller.For(c, s.maps)
	stop := s.run(controller.RunOptions{Factory: s.factory}, c)
	s.expect("before")
	m := s.create("a")
	s.expect("a")
	s.update(m, func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
	s.expect("a")
	s.remove("a")
	s.expect("a")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := s.factory.WaitForSync(context.Background()); err != nil {
		t.Error(err)
	}
}

func ownedBy(owner *corev1.ConfigMap) func(*corev1.ConfigMap) {
	yes := true
	return func(m *corev1.ConfigMap) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: &yes}}
	}
}

func TestOwnsIsCalledWithTheOwners(t *testing.T) {
	s := newScene(t)
	c := s.controller(controller.Options{})
	controller.Owns[*corev1.ConfigMap](c, s.maps)
	s.run(controller.RunOptions{Factory: s.factory}, c)
	one, two := s.create("one"), s.create("two")
	m := s.create("owned", ownedBy(one))
	s.expect("one")
	m = s.update(m, ownedBy(two))
	s.expect("one", "two") // it changed hands
	m = s.update(m, func(m *corev1.ConfigMap) { m.OwnerReferences[0].Kind = "Secret" })
	s.expect("two")
	s.update(m, func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
	s.create("last", ownedBy(one))
	s.expect("one")
}

func TestPredicatesLeaveOutWhatDoesNotMatter(t *testing.T) {
	s := newScene(t)
	c := s.controller(controller.Options{})
	controller.For(c, s.maps, controller.Or(controller.LabelsChanged[*corev1.ConfigMap], controller.AnnotationsChanged),
		func(change controller.Change[*corev1.ConfigMap]) bool {
			return change.Object.Name != rootCertificate
		})
	s.run(controller.RunOptions{Factory: s.factory}, c)
	m := s.create("a")
	s.expect("a")
	m = s.update(m, func(m *corev1.ConfigMap) { m.Data = map[string]string{"a": "b"} })
	m = s.update(m, func(m *corev1.ConfigMap) { m.Labels = map[string]string{"a": "b"} })
	s.expect("a")
	s.update(m, func(m *corev1.ConfigMap) { m.Annotations = map[string]string{"a": "b"} })
	s.expect("a")
	s.remove("a")
	s.expect("a")
	if calls := c.Stats().Calls; calls != 4 {
		t.Errorf("%d calls, want 4", calls)
	}
}

// A change is looked at before what the first list held, and of many changes
// of one object one call is made.
func TestFreshChangesGoFirst(t *testing.T) {
	s := newScene(t)
	for n := range 50 {
		s.create(fmt.Sprint("old-", n))
	}
	hold, added := make(chan struct{}), make(chan string, 100)
	var order []string
	done := make(chan struct{})
	c, err := controller.New(func(_ context.Context, key controller.Key) (controller.Result, error) {
		if len(order) == 0 {
			<-hold
		}
		order = append(order, key.Name)
		if len(order) == 51 {
			close(done)
		}
		return controller.Result{}, nil
	}, controller.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	controller.Watch(c, s.maps, func(m *corev1.ConfigMap, add func(controller.Key)) {
		if m.Name != rootCertificate {
			add(controller.KeyOf(m))
			added <- m.ResourceVersion
		}
	})
	s.run(controller.RunOptions{Factory: s.factory}, c)
	<-c.Synced()
	m := s.create("new")
	for range 3 {
		m = s.update(m, func(m *corev1.ConfigMap) { m.Data = map[string]string{"version": m.ResourceVersion} })
	}
	for version := range added {
		if version == m.ResourceVersion {
			break // no call can follow the one that sees the last change
		}
	}
	close(hold)
	select {
	case <-done:
	case <-s.ctx.Done():
		t.Fatalf("%d calls", len(order))
	}
	if order[1] != "new" {
		t.Errorf("the second call was with %s: %v", order[1], order)
	}
}

func TestHandlersAreRemovedWhenRunEnds(t *testing.T) {
	s := newScene(t)
	s.factory.Start(s.ctx)
	defer s.factory.Shutdown()
	s.create("a")
	c := s.controller(controller.Options{})
	controller.For(c, s.maps)
	stop := s.run(controller.RunOptions{}, c)
	s.expect("a")
	if handlers := s.maps.Stats().Handlers; len(handlers) != 1 || handlers[0].Name != "test" {
		t.Errorf("%+v", handlers)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if handlers := s.maps.Stats().Handlers; len(handlers) != 0 {
		t.Errorf("left behind: %+v", handlers)
	}
}

func TestControllerDoesNotOutliveItsInformers(t *testing.T) {
	s := newScene(t)
	s.factory.Start(s.ctx)
	c := s.controller(controller.Options{})
	controller.For(c, s.maps)
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(s.ctx, controller.RunOptions{}, c) }()
	<-c.Synced()
	s.factory.Shutdown()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "configmaps") {
		t.Errorf("got %v", err)
	}
	late := s.controller(controller.Options{})
	controller.For(late, s.maps)
	if err := late.Run(s.ctx); !errors.Is(err, informer.ErrStopped) {
		t.Errorf("got %v", err)
	}
}

func (s *scene) elector(identity string) *leader.Elector {
	s.t.Helper()
	e, err := leader.New(s.client, leader.Options{Namespace: "default", Name: "election", Identity: identity, RetryPeriod: 20 * time.Millisecond})
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// TestOneOfTwoActs stops the one that leads; the other has its copy already
// and takes over.
func TestOneOfTwoActs(t *testing.T) {
	s := newScene(t)
	s.create("before")
	first := s.controller(controller.Options{Name: "first"})
	controller.For(first, s.maps)
	stop := s.run(controller.RunOptions{Factory: s.factory, Leader: s.elector("first")}, first)
	s.expect("before")

	factory := informer.NewFactory(s.client, informer.Options{})
	second := s.controller(controller.Options{Name: "second"})
	controller.For(second, informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default"}))
	stopSecond := s.run(controller.RunOptions{Factory: factory, Leader: s.elector("second")}, second)
	s.create("a")
	s.expect("a")
	if second.HasSynced() {
		t.Error("both act")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	s.expect("a", "before")
	if err := stopSecond(); err != nil {
		t.Error(err)
	}
}

func TestLostLeadershipEndsTheControllers(t *testing.T) {
	s := newScene(t)
	c := s.controller(controller.Options{StopGrace: time.Hour})
	controller.For(c, s.maps)
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(s.ctx, controller.RunOptions{Factory: s.factory, Leader: s.elector("first")}, c)
	}()
	<-c.Synced()
	leases := client.For[*coordinationv1.Lease](s.client).Namespace("default")
	for {
		lease, err := leases.Get(s.ctx, "election", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		other := "thief"
		lease.Spec.HolderIdentity = &other
		if _, err = leases.Update(s.ctx, lease, metav1.UpdateOptions{}); err == nil {
			break // it was not just renewed
		}
	}
	if err := <-ended; !errors.Is(err, leader.ErrLost) {
		t.Errorf("got %v", err)
	}
}
