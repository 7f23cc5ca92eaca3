package levelwiretest_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/levelwiretest"
)

func configMap(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"text": text}}
}

// TestClientInBubble: server, client and informers live in a bubble of synctest, in
// which an hour takes no time and Wait returns when all of them are idle.
func TestClientInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := levelwiretest.NewClient(t, client.Options{})
		factory := informer.NewFactory(c, informer.Options{})
		defer factory.Shutdown()
		cached := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default"}).Lister()
		factory.Start(t.Context())
		if err := factory.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		write := func(name string) {
			t.Helper()
			if _, err := client.For[*corev1.ConfigMap](c).Create(t.Context(), configMap(name, "x"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if _, ok := cached.Get("default", name); !ok {
				t.Errorf("%s is not in the cache when everything is idle", name)
			}
		}
		write("first")
		time.Sleep(24 * time.Hour) // many watches end and resume in it
		write("second")
	})
}

// TestMemoryKeepsTheRules: what a client without a port talks to is the real
// registry.
func TestMemoryKeepsTheRules(t *testing.T) {
	api := client.For[*corev1.ConfigMap](levelwiretest.NewClient(t, client.Options{ContentType: client.Protobuf})).Namespace("default")
	obj := configMap("a", "one")
	obj.Finalizers = []string{"example.com/hold"}
	first, err := api.Create(t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second := first.DeepCopy()
	second.Data["text"] = "two"
	if second, err = api.Update(t.Context(), second, metav1.UpdateOptions{}); err != nil || second.ResourceVersion == first.ResourceVersion {
		t.Fatalf("version %s after %s, %v", second.ResourceVersion, first.ResourceVersion, err)
	}
	if _, err := api.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old state: %v, want a conflict", err)
	}
	if err := api.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	held, err := api.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || held.DeletionTimestamp == nil {
		t.Errorf("with a finalizer: %v, %v; want it to be there, being deleted", held, err)
	}
}

// TestGarbageIsCollectedInABubble: what the server does after a collection of garbage,
// outside of every bubble, touches nothing of the test's bubble.
func TestGarbageIsCollectedInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := levelwiretest.NewClient(t, client.Options{})
		for range 5 {
			runtime.GC()
			if _, err := client.For[*corev1.Namespace](c).List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
