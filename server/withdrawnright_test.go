package server_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// TestWithdrawnRight: an informer whose right is withdrawn learns of it, and goes on where
// it was when the right is granted again, without a list.
func TestWithdrawnRight(t *testing.T) {
	admin, jane := withRBAC(t)
	ctx := deadline(t)
	if _, err := client.For[*rbacv1.Role](admin).Namespace("default").Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bindings := client.For[*rbacv1.RoleBinding](admin).Namespace("default")
	grant := func() {
		t.Helper()
		if _, err := bindings.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "viewer"},
			Subjects:   []rbacv1.Subject{{Kind: "User", Name: "jane"}},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	grant()
	failures := make(chan error, 1000)
	factory := informer.NewFactory(jane, informer.Options{Reflector: reflector.Options{
		Backoff: reflector.Backoff{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		OnError: func(_ string, err error) { failures <- err },
	}})
	defer factory.Shutdown()
	maps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default"})
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		if err := bindings.Delete(ctx, "viewers", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for withdrawn := false; !withdrawn; {
			select {
			case err := <-failures:
				withdrawn = apierrors.HasStatusCause(err, "RightWithdrawn")
			case <-ctx.Done():
				t.Fatal("the informer was not told that its right was withdrawn")
			}
		}
		missed := create(ctx, t, admin, name)
		if _, ok := maps.Lister().Get("default", name); ok {
			t.Error("the informer saw an object without a right to it")
		}
		grant()
		if err := maps.WaitForResourceVersion(ctx, missed.ResourceVersion); err != nil {
			t.Fatal(err)
		}
		if _, ok := maps.Lister().Get("default", name); !ok {
			t.Error("the informer missed an object")
		}
	}
	var lists int64
	for _, n := range maps.Stats().Reflector.Lists {
		lists += n
	}
	if lists != 1 {
		t.Errorf("%d lists: %+v", lists, maps.Stats().Reflector)
	}
}
