package authorization

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

// TestInformerWithoutItsRight: the watch of client-go's informer ends when its right is
// withdrawn. The informer keeps what it has, reports that it is forbidden, and when the
// right is given again it has every change that it missed.
func TestInformerWithoutItsRight(t *testing.T) {
	ctx, server := timeout(t), levelwiretest.Start(t)
	admin := kubernetes.NewForConfigOrDie(server.Config())
	bind(ctx, t, admin, "view", "jane")
	write := func(name string) {
		t.Helper()
		if _, err := admin.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": "yes"}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	write("kept")
	write("deleted")

	jane := kubernetes.NewForConfigOrDie(server.UserConfig("jane"))
	factory := informers.NewSharedInformerFactoryWithOptions(jane, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "test" }))
	informer := factory.Core().V1().ConfigMaps().Informer()
	refused := make(chan error, 100)
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			select {
			case refused <- err:
			default:
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.StartWithContext(running)
	has := func(names ...string) bool {
		slices.Sort(names)
		keys := informer.GetStore().ListKeys()
		slices.Sort(keys)
		return slices.EqualFunc(keys, names, func(key, name string) bool { return key == namespace+"/"+name })
	}
	await(ctx, t, "the first state", func() bool { return informer.HasSynced() && has("kept", "deleted") })

	if err := admin.RbacV1().RoleBindings(namespace).Delete(ctx, "jane", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refused:
		t.Logf("without its right, the informer gets: %v", err)
	case <-ctx.Done():
		t.Fatal("the informer does not notice that its right was withdrawn")
	}
	write("missed")
	if err := admin.CoreV1().ConfigMaps(namespace).Delete(ctx, "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !has("kept", "deleted") {
		t.Errorf("without its right, the informer has %v", informer.GetStore().ListKeys())
	}

	bind(ctx, t, admin, "view", "jane")
	await(ctx, t, "what was missed", func() bool { return has("kept", "missed") })
	write("later")
	await(ctx, t, "what follows", func() bool { return has("kept", "missed", "later") })
}

// await waits until a condition holds.
func await(ctx context.Context, t *testing.T, what string, holds func() bool) {
	t.Helper()
	testwait.Stable(t, what, func() (any, bool) {
		if ctx.Err() != nil {
			t.Fatalf("%s does not come", what)
		}
		is := holds()
		return is, is
	})
}
