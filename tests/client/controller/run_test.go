package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// One process leads; what needs no leadership runs in both.
func TestWhatNeedsNoLeadershipRunsInEveryProcess(t *testing.T) {
	s := newScene(t)
	leading := s.controller(controller.Options{})
	stop := s.run(controller.RunOptions{Factory: s.factory, Leader: s.elector("first")}, leading)
	<-leading.Synced()

	factory := informer.NewFactory(s.client, informer.Options{})
	elected := s.controller(controller.Options{Name: "elected"})
	everywhere := s.controller(controller.Options{Name: "everywhere", WithoutLeaderElection: true})
	controller.For(everywhere, informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default"}))
	stopSecond := s.run(controller.RunOptions{Factory: factory, Leader: s.elector("second")}, elected, everywhere)
	s.create("a")
	s.expect("a")
	if elected.HasSynced() {
		t.Error("two processes lead")
	}
	if err := stopSecond(); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// The end of one part ends the others, and is named.
func TestAnErrorOfOnePartEndsTheOthers(t *testing.T) {
	s := newScene(t)
	broken := errors.New("no room")
	for _, opts := range []controller.RunOptions{{}, {Leader: s.elector("first")}} {
		part := controller.RunnableFunc("part", func(context.Context) error { return broken })
		if err := controller.Run(s.ctx, opts, part); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		part = controller.RunnableFunc("part", func(context.Context) error { return nil })
		if err := controller.Run(s.ctx, opts, part, nil); err == nil || !strings.Contains(err.Error(), "number 2 is nil") {
			t.Errorf("got %v", err)
		}
		other := controller.RunnableFunc("other", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if err := controller.Run(s.ctx, opts, other, part); err == nil || !strings.Contains(err.Error(), "part: ended") {
			t.Errorf("got %v", err)
		}
	}
}

// A reconciler of objects gets copies, and no call for what is gone.
func TestReconcilerOfObjects(t *testing.T) {
	s := newScene(t)
	got := make(chan string, 10)
	c, err := controller.New(controller.AsReconciler(s.maps, func(_ context.Context, m *corev1.ConfigMap) (controller.Result, error) {
		m.Labels = map[string]string{"changed": "here"}
		got <- m.Name
		return controller.Result{}, nil
	}), controller.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	controller.For(c, s.maps, func(change controller.Change[*corev1.ConfigMap]) bool { return change.Object.Name != rootCertificate })
	s.run(controller.RunOptions{Factory: s.factory}, c)
	c.Add(controller.Key{Namespace: "default", Name: "none"})
	s.create("a")
	select {
	case name := <-got:
		if name != "a" {
			t.Errorf("called with %s", name)
		}
	case <-s.ctx.Done():
		t.Fatal("no call")
	}
	if cached, _ := s.maps.Lister().Get("default", "a"); len(cached.Labels) != 0 {
		t.Errorf("the cache was changed: %v", cached.Labels)
	}
}
