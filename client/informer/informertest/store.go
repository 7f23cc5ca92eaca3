package informertest

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
)

// store is what readers of the cache may rely on.
var store = []Guarantee{
	{Name: "StoreAheadOfHandlers", Says: "When a handler is called, the lister shows that state or a newer one.", check: func(e *env) {
		r, _ := e.handle(informer.HandlerOptions{}, func(c call) {
			held, there := e.informer.Lister().Get(c.obj.Namespace, c.obj.Name)
			switch {
			case c.kind == "delete" && there && held.UID == c.obj.UID:
				e.Errorf("%v, but the lister has it", c)
			case c.kind != "delete" && there && held.UID == c.obj.UID && !notOlder(held, c.obj):
				e.Errorf("%v at version %s, but the lister is at %s", c, c.obj.ResourceVersion, held.ResourceVersion)
			}
		})
		e.start()
		obj := e.create("a", "0")
		for n := range 20 {
			obj = e.change(obj, strconv.Itoa(n+1))
		}
		e.remove("a")
		e.create("a", "again")
		r.marked("end")
	}},
	{Name: "VersionIsNeverAheadOfTheStore", Says: "The lister shows every change up to LastSyncResourceVersion.", check: func(e *env) {
		e.start()
		for n := range 20 {
			obj := e.create("p"+strconv.Itoa(n), "1")
			for {
				version := e.informer.LastSyncResourceVersion()
				_, there := e.informer.Lister().Get(e.namespace, obj.Name)
				reached := notOlder(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}, obj)
				if reached && !there {
					e.Fatalf("version %s is reached, and the object of version %s is not there", version, obj.ResourceVersion)
				}
				if reached {
					break
				}
				e.must(e.informer.WaitForResourceVersion(e.ctx, obj.ResourceVersion))
			}
		}
	}},
	{Name: "WritesAreReadAfterWaitForResourceVersion", Says: "When WaitForResourceVersion returns, the lister shows the write that returned this resourceVersion.", check: func(e *env) {
		e.start()
		obj := e.create("a", "0")
		for n := range 10 {
			obj = e.change(obj, strconv.Itoa(n+1))
			lister, err := e.informer.ListerAfter(e.ctx, obj.ResourceVersion)
			e.must(err)
			if held, ok := lister.Get(e.namespace, "a"); !ok || held.Data["value"] != obj.Data["value"] {
				e.Fatalf("wrote %v, read %v", obj.Data, held)
			}
		}
	}},
	{Name: "TransformBeforeStore", Says: "What the transform returns is what the lister, the indexes and the handlers see.", check: func(e *env) {
		e.create("listed", "1")
		e.must(e.informer.SetTransform(func(obj *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			obj.Data = map[string]string{"value": "transformed"}
			return obj, nil
		}))
		r, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		e.create("watched", "1")
		r.sorted("add listed=transformed initial", "add watched=transformed")
		if held, ok := e.informer.Lister().Get(e.namespace, "watched"); !ok || held.Data["value"] != "transformed" {
			e.Errorf("held %v", held)
		}
	}},
	{Name: "IndexesFollowObjects", Says: "An index finds objects by their present state; one that is added late covers what is there.", check: func(e *env) {
		byValue := func(name string) cache.Indexers[*corev1.ConfigMap] {
			return cache.Indexers[*corev1.ConfigMap]{name: func(obj *corev1.ConfigMap) ([]string, error) {
				return []string{obj.Data["value"]}, nil
			}}
		}
		e.must(e.informer.AddIndexers(byValue("early")))
		e.start()
		obj := e.create("a", "1")
		obj = e.change(obj, "2")
		e.must(e.informer.WaitForResourceVersion(e.ctx, obj.ResourceVersion))
		e.must(e.informer.AddIndexers(byValue("late")))
		for _, index := range []string{"early", "late"} {
			for value, want := range map[string]int{"1": 0, "2": 1} {
				found, err := e.informer.Lister().ByIndex(index, value)
				if err != nil || len(found) != want {
					e.Errorf("%s index, value %s: %d objects, %v; want %d", index, value, len(found), err, want)
				}
			}
		}
	}},
	{Name: "SeveralNamespacesAreOneView", Says: "An informer of several namespaces is synced when all are, shows all, and misses nothing of any when connections are cut.", check: func(e *env) {
		second := informer.For[*corev1.ConfigMap](e.factory, informer.ListOptions{Namespaces: []string{e.namespace, e.namespace + "-none"}, LabelSelector: ours})
		e.create("a", "1")
		e.informer = second
		r, _ := e.handle(informer.HandlerOptions{}, nil)
		e.start()
		r.is("add a=1 initial")
		e.network.cut()
		e.create("b", "1")
		r.is("add a=1 initial", "add b=1")
		if s := e.informer.ReflectorStats(); s.ListCount() != 2 {
			e.Errorf("%v", s.Lists)
		}
	}},
	{Name: "FreshnessIsTrue", Says: "A view that the server cannot be asked about grows old, and is young again when it can.", check: func(e *env) {
		e.start()
		e.must(e.informer.Healthy(testTimeout))
		e.network.setDown(true)
		before := e.informer.Freshness().AsOf
		e.create("a", "1")
		if f := e.informer.Freshness(); !f.AsOf.Equal(before) {
			e.Errorf("cut off: %+v, was as of %v", f, before)
		}
		e.network.setDown(false)
		b := e.create("b", "1")
		e.must(e.informer.WaitForResourceVersion(e.ctx, b.ResourceVersion))
		if f := e.informer.Freshness(); !f.AsOf.After(before) {
			e.Errorf("connected again: %+v", f)
		}
	}},
}
