package controller_test

import (
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// A controller begins to watch secrets while it runs, with an informer that is
// made and started then, and later ends that watch and goes on.
func TestWatchesComeAndGoWhileTheControllerRuns(t *testing.T) {
	s := newScene(t)
	c := s.controller(controller.Options{})
	controller.For(c, s.maps)
	stop := s.run(controller.RunOptions{Factory: s.factory}, c)
	s.create("a")
	s.expect("a")
	s.createSecret("before")

	secrets := informer.For[*corev1.Secret](s.factory, informer.ListOptions{Namespace: "default"})
	watch := controller.Watch(c, secrets, controller.EnqueueObject)
	s.factory.Start(s.ctx)
	<-watch.Synced()
	s.expect("before")
	s.createSecret("after")
	s.expect("after")

	<-watch.Remove()
	if handlers := secrets.Stats().Handlers; len(handlers) != 0 {
		t.Errorf("left behind: %+v", handlers)
	}
	created := s.createSecret("unseen")
	if err := secrets.WaitForResourceVersion(s.ctx, created.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	s.create("b")
	s.expect("b")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A Predicate and a MapFunc that panic once delay the keys, and lose none.
func TestPanicsOfMapFuncsAndPredicatesAreRepeated(t *testing.T) {
	s := newScene(t)
	c := s.controller(controller.Options{})
	var predicate, mapFunc atomic.Bool
	controller.Watch(c, s.maps, func(obj *corev1.ConfigMap, add func(controller.Key)) {
		if obj.Name == "a" && !mapFunc.Swap(true) {
			panic("the MapFunc")
		}
		controller.EnqueueObject(obj, add)
	}, func(change controller.Change[*corev1.ConfigMap]) bool {
		if change.Object.Name == "a" && !predicate.Swap(true) {
			panic("the Predicate")
		}
		return change.Object.Name != rootCertificate
	})
	stop := s.run(controller.RunOptions{Factory: s.factory}, c)
	s.create("a")
	s.expect("a")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// The watch of a cluster that is taken out of a program ends before its
// informers do.
func TestOneControllerOfSeveralClusters(t *testing.T) {
	clusters := map[string]*scene{"east": newScene(t), "west": newScene(t)}
	home := newScene(t)
	calls := make(chan controller.ClusterKey, 1000)
	c, err := controller.NewTyped(recordTo(calls), controller.TypedOptions[controller.ClusterKey]{Name: "both"})
	if err != nil {
		t.Fatal(err)
	}
	watches := map[string]*controller.Registration{}
	var factories []*informer.Factory
	for name, cluster := range clusters {
		when := controller.Not(func(change controller.Change[*corev1.ConfigMap]) bool { return change.Object.Name == rootCertificate })
		watches[name] = controller.Watch(c, cluster.maps, controller.InCluster(name, controller.EnqueueObject[*corev1.ConfigMap]), when)
		factories = append(factories, cluster.factory)
	}
	stop := home.run(controller.RunOptions{Factories: factories, Leader: home.elector("here")}, c)
	expect := func(cluster, name string) {
		t.Helper()
		select {
		case got := <-calls:
			if want := (controller.ClusterKey{Cluster: cluster, Namespace: "default", Name: name}); got != want {
				t.Errorf("called with %v, want %v", got, want)
			}
		case <-home.ctx.Done():
			t.Fatalf("no call with %s of %s", name, cluster)
		}
	}
	<-c.Synced()
	clusters["east"].create("a")
	expect("east", "a")
	clusters["west"].create("a")
	expect("west", "a")
	<-watches["west"].Remove()
	clusters["west"].factory.Shutdown()
	clusters["east"].create("b")
	expect("east", "b")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestWatchesAreChecked(t *testing.T) {
	s := newScene(t)
	s.factory.Start(s.ctx)
	defer s.factory.Shutdown()
	for want, watch := range map[string]func(*controller.Controller) *controller.Registration{
		"the MapFunc is nil": func(c *controller.Controller) *controller.Registration { return controller.Watch(c, s.maps, nil) },
		"a Predicate is nil": func(c *controller.Controller) *controller.Registration { return controller.For(c, s.maps, nil) },
		"the handler is nil": func(c *controller.Controller) *controller.Registration { return controller.Handle(c, s.maps, nil) },
	} {
		c := s.controller(controller.Options{})
		watch(c)
		if err := c.Run(s.ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
