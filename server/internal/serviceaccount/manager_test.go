package serviceaccount

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage/memory"
)

// kept is a Keeper that runs, in a bubble of synctest.
type kept struct {
	*testing.T
	set *registry.Set
}

// keep runs f beside a Keeper.
func keep(t *testing.T, f func(k kept)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Options{})
		must(t, err)
		defer func() { must(t, store.Close()) }()
		caches := map[*resource.Resource]*watchcache.Cache{}
		var list []*watchcache.Cache
		table := builtin.Table()
		for _, res := range table.All() {
			if res.Storage == nil {
				caches[res] = watchcache.New(res, watchcache.Options{})
				list = append(list, caches[res])
			}
		}
		set, err := registry.NewSet(registry.Config{Store: store, Resources: table, Cache: func(stored *resource.Resource) *watchcache.Cache { return caches[stored] }})
		must(t, err)
		accounts := NewAccounts(set, AccountOptions{RootCA: []byte("ours")})
		tokens, err := NewTokens(set, accounts, Options{Issuers: []string{issuer}, Keys: newRing(t, newKey(t))})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		go func() {
			_ = feed.New(store, list, feed.Options{}).Run(ctx)
			ended <- struct{}{}
		}()
		go func() {
			if err := NewKeeper(accounts, tokens, slog.New(slog.NewTextHandler(t.Output(), nil))).Run(ctx); err != nil {
				t.Error(err)
			}
			ended <- struct{}{}
		}()
		f(kept{t, set})
		cancel()
		<-ended
		<-ended
	})
}

// namespace makes one.
func (k kept) namespace(name string) {
	k.Helper()
	must(k, namespace.Ensure(k.Context(), k.set, name))
}

// expect checks the content of the ConfigMap, "" if there should be none, as it is some time later.
func (k kept) expect(what, namespace string, after time.Duration, want string) {
	k.Helper()
	time.Sleep(after)
	synctest.Wait()
	maps, _ := k.set.Lookup("", "v1", "configmaps")
	got := ""
	found, err := registry.GetAs[*corev1.ConfigMap](k.Context(), maps, namespace, RootCAName)
	if err == nil {
		got = found.Data["ca.crt"]
	} else if !apierrors.IsNotFound(err) {
		k.Fatal(err)
	}
	if got != want {
		k.Errorf("%s: %s has %q, want %q", what, namespace, got, want)
	}
}

// write writes an object, whatever is there.
func (k kept) write(by, group, plural, namespace string, obj resource.Object) {
	k.Helper()
	r, _ := k.set.Lookup(group, "v1", plural)
	_, err := r.Update(k.Context(), namespace, obj.GetName(), func(current resource.Object) (resource.Object, error) {
		written := obj.DeepCopyObject().(resource.Object)
		if current != nil {
			written.SetUID(current.GetUID())
			written.SetCreationTimestamp(current.GetCreationTimestamp())
			written.SetManagedFields(current.GetManagedFields())
		}
		return written, nil
	}, registry.UpdateOptions{WriteOptions: registry.WriteOptions{FieldManager: by}, MayCreate: true, Unconditional: true})
	must(k, err)
}

// hold writes the lease of the kube-controller-manager.
func (k kept) hold(by, holder string, seconds int32) {
	k.Helper()
	renewed := metav1.NowMicro()
	k.write(by, coordinationv1.GroupName, "leases", metav1.NamespaceSystem, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	})
}

func (k kept) publish(namespace, content string) {
	k.Helper()
	k.write("somebody", "", "configmaps", namespace, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: RootCAName}, Data: map[string]string{"ca.crt": content}})
}

const theirs = "kube-controller-manager"

// TestRootCAIsLeftToAManager: while somebody holds the lease of kube-controller-manager, what it publishes
// stays, and where it publishes nothing the server does a while later.
func TestRootCAIsLeftToAManager(t *testing.T) {
	keep(t, func(k kept) {
		k.namespace(metav1.NamespaceSystem)
		k.namespace("before")
		k.expect("nobody else publishes", "before", 0, "ours\n")
		k.publish("before", "wrong")
		k.expect("nobody else publishes", "before", 0, "ours\n")

		k.hold(theirs, "a manager", 60)
		k.publish("before", "theirs")
		k.namespace("new")
		k.expect("a manager runs", "new", publishAfter-time.Millisecond, "")
		k.publish("new", "theirs")
		k.namespace("left")
		k.expect("a manager publishes", "new", publishAfter-time.Millisecond, "theirs")
		k.expect("it has published", "before", 0, "theirs")
		k.expect("it does not publish", "left", 0, "")
		k.expect("it does not publish", "left", time.Millisecond, "ours\n")

		k.hold(theirs, "a manager", 60) // a renewal
		k.expect("a manager runs", "new", 59*time.Second, "theirs")
		k.expect("its lease has run out", "new", time.Second, "ours\n")
		k.expect("its lease has run out", "before", 0, "ours\n")
	})
}

// TestRootCAOfAManagerThatEnds: it gives its lease up, or the lease is deleted.
func TestRootCAOfAManagerThatEnds(t *testing.T) {
	for what, end := range map[string]func(k kept){
		"released": func(k kept) { k.hold(theirs, "", 1) },
		"deleted": func(k kept) {
			leases, _ := k.set.Lookup(coordinationv1.GroupName, "v1", "leases")
			_, err := leases.Delete(k.Context(), metav1.NamespaceSystem, managerLease, nil)
			must(k, err)
		},
	} {
		t.Run(what, func(t *testing.T) {
			keep(t, func(k kept) {
				k.namespace(metav1.NamespaceSystem)
				k.hold(theirs, "a manager", 60)
				k.namespace("a")
				k.publish("a", "theirs")
				k.expect("a manager runs", "a", 10*time.Second, "theirs")
				end(k)
				k.namespace("b")
				k.expect("it has ended", "a", 0, "ours\n")
				k.expect("it has ended", "b", 0, "ours\n")
			})
		})
	}
}

// TestRootCAWithOurControllers: Levelwire's controllers hold the lease, too, and publish nothing. After one of
// theirs it is ours who hold it, and the other way round.
func TestRootCAWithOurControllers(t *testing.T) {
	keep(t, func(k kept) {
		k.namespace(metav1.NamespaceSystem)
		k.hold("levelwire-controllers", "ours", 60)
		k.namespace("a")
		k.expect("ours run", "a", 0, "ours\n")
		k.hold(theirs, "a manager", 60)
		k.namespace("b")
		k.expect("theirs runs", "b", 0, "")
		k.hold("levelwire-controllers", "ours", 60)
		k.expect("ours run again", "b", 0, "ours\n")
	})
}
