package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/scheme"
)

// unknown is a type that nothing registers.
type unknown struct{ corev1.ConfigMap }

func TestOwnsOfATypeThatIsNotRegistered(t *testing.T) {
	s := newScene(t)
	c := s.controller(controller.Options{})
	controller.Owns[*unknown](c, s.maps)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := controller.Run(ctx, controller.RunOptions{Factory: s.factory}, c); !errors.Is(err, scheme.ErrNotRegistered) {
		t.Errorf("got %v", err)
	}
}

// The owner of an object may be cluster-scoped, as a Node is: its key has no
// namespace.
func TestOwnsWithClusterScopedOwners(t *testing.T) {
	s := newScene(t)
	c := s.controller(controller.Options{})
	controller.Owns[*corev1.Node](c, s.maps)
	s.run(controller.RunOptions{Factory: s.factory}, c)
	yes := true
	s.create("lease-of-a-node", func(m *corev1.ConfigMap) {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u", Controller: &yes}}
	})
	select {
	case key := <-s.calls:
		if want := (controller.Key{Name: "n"}); key != want {
			t.Errorf("called with %s, want %s", key, want)
		}
	case <-s.ctx.Done():
		t.Error("the controller was not called")
	}
}
