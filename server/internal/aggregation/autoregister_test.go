package aggregation

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// cluster is a store with servers that register, in a bubble of synctest.
type cluster struct {
	*testing.T
	store   storage.Store
	ctx     context.Context //nolint:containedctx // ends the servers
	running sync.WaitGroup
}

// inCluster runs f, and ends the servers then.
func inCluster(t *testing.T, f func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Options{})
		must(t, err)
		defer func() { must(t, store.Close()) }()
		ctx, cancel := context.WithCancel(t.Context())
		c := &cluster{T: t, store: store, ctx: ctx}
		defer c.running.Wait()
		defer cancel()
		f(c)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// member is one of the servers on the store.
type member struct {
	c        *cluster
	set      *registry.Set
	services registry.Registry
	auto     *AutoRegister
	checks   *Aggregator
}

// join makes a server, and begins to fill its caches.
func (c *cluster) join() *member {
	c.Helper()
	caches := map[*resource.Resource]*watchcache.Cache{}
	var list []*watchcache.Cache
	table := builtin.Table()
	for _, res := range table.All() {
		if res.Storage == nil {
			caches[res] = watchcache.New(res, watchcache.Options{})
			list = append(list, caches[res])
		}
	}
	set, err := registry.NewSet(registry.Config{Store: c.store, Resources: table, Cache: func(stored *resource.Resource) *watchcache.Cache { return caches[stored] }})
	must(c.T, err)
	log := slog.New(slog.NewTextHandler(c.Output(), nil))
	m := &member{c: c, set: set}
	m.services, _ = set.Lookup(apiregistrationv1.GroupName, "v1", "apiservices")
	m.auto, err = NewAutoRegister(set, table.All(), log)
	must(c.T, err)
	m.checks, err = New(set, Options{Resources: table, Logger: log})
	must(c.T, err)
	c.running.Go(func() { _ = feed.New(c.store, list, feed.Options{}).Run(c.ctx) })
	return m
}

// start is join of a server that registers.
func (c *cluster) start() *member {
	c.Helper()
	m := c.join()
	must(c.T, m.auto.Ensure(c.ctx))
	c.running.Go(func() { m.auto.Run(c.ctx) })
	synctest.Wait()
	return m
}

// check has the server write conditions.
func (m *member) check() {
	m.c.running.Go(func() { m.checks.Run(m.c.ctx) })
	synctest.Wait()
}

// writes returns how many writes f leads to.
func (c *cluster) writes(f func()) storage.Revision {
	c.Helper()
	before, err := c.store.Current(c.ctx)
	must(c.T, err)
	f()
	synctest.Wait()
	after, err := c.store.Current(c.ctx)
	must(c.T, err)
	return after - before
}

// get returns an APIService; nil if there is none.
func (m *member) get(name string) *apiregistrationv1.APIService {
	m.c.Helper()
	synctest.Wait()
	obj, err := m.services.GetFromStore(m.c.ctx, "", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(m.c.T, err)
	return obj.(*apiregistrationv1.APIService)
}

// change updates an APIService as a user does.
func (m *member) change(name string, f func(*apiregistrationv1.APIService)) {
	m.c.Helper()
	_, err := m.services.Update(m.c.ctx, "", name, func(current resource.Object) (resource.Object, error) {
		changed := current.DeepCopyObject().(*apiregistrationv1.APIService)
		f(changed)
		return changed, nil
	}, registry.UpdateOptions{Unconditional: true})
	must(m.c.T, err)
}

func (m *member) create(obj *apiregistrationv1.APIService) {
	m.c.Helper()
	_, err := m.services.Create(m.c.ctx, "", obj, registry.WriteOptions{})
	must(m.c.T, err)
}

func (m *member) remove(name string) {
	m.c.Helper()
	_, err := m.services.Delete(m.c.ctx, "", name, nil)
	must(m.c.T, err)
}

// expect checks an APIService, "" if there should be none: label, priorities and condition.
func (m *member) expect(when, name, want string) {
	m.c.Helper()
	got := ""
	if obj := m.get(name); obj != nil {
		got = obj.Labels[managedLabel]
		if obj.Spec.Service != nil {
			got += " " + obj.Spec.Service.Name
		}
		if obj.Spec.GroupPriorityMinimum != CustomPriority.Group {
			got += " changed"
		}
		if c := conditionOf(obj); c == nil || c.Status != apiregistrationv1.ConditionTrue || c.Reason != "Local" || c.Message != "Local APIServices are always available" {
			got += " not local"
		}
	}
	if got != want {
		m.c.Errorf("%s: %s is %q, want %q", when, name, got, want)
	}
}

// define writes a definition whose versions are served, but for those with a minus sign.
func (m *member) define(group string, versions ...string) {
	m.c.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
		},
	}
	for i, version := range versions {
		name, hidden := strings.CutPrefix(version, "-")
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: !hidden, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		})
	}
	_, err := m.definitions().Update(m.c.ctx, "", crd.Name, func(current resource.Object) (resource.Object, error) {
		if current == nil {
			return crd, nil
		}
		changed := current.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
		changed.Spec.Versions = crd.Spec.Versions
		return changed, nil
	}, registry.UpdateOptions{MayCreate: true, Unconditional: true})
	must(m.c.T, err)
}

// finish takes the finalizers of a definition away.
func (m *member) finish(name string) {
	m.c.Helper()
	_, err := m.definitions().Update(m.c.ctx, "", name, func(current resource.Object) (resource.Object, error) {
		changed := current.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
		changed.Finalizers = nil
		return changed, nil
	}, registry.UpdateOptions{Unconditional: true})
	must(m.c.T, err)
}

func (m *member) definitions() registry.Registry {
	r, _ := m.set.Lookup(apiextensionsv1.GroupName, "v1", "customresourcedefinitions")
	return r
}

func remoteService(gv schema.GroupVersion) *apiregistrationv1.APIService {
	obj := localService(gv, CustomPriority, "")
	obj.Labels = nil
	obj.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: "default", Name: "other"}
	obj.Spec.InsecureSkipTLSVerify = true
	return obj
}

// TestOwnGroupsAreRegisteredOnce: by one write each at the first start, and by none at the next
// or by another server.
func TestOwnGroupsAreRegisteredOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var first *member
		count := c.writes(func() {
			first = c.start()
			first.check()
		})
		names := map[string]bool{}
		for _, res := range builtin.Resources() {
			if name := res.Version + "." + res.Group; res.Group != apiregistrationv1.GroupName {
				names[name] = true
			}
		}
		if int(count) != len(names) {
			t.Errorf("a first start makes %d writes for %d versions", count, len(names))
		}
		for name := range names {
			obj := first.get(name)
			if obj == nil {
				t.Errorf("%s is missing", name)
				continue
			}
			priority, ok := BuiltinPriority(schema.GroupVersion{Group: obj.Spec.Group, Version: obj.Spec.Version})
			if condition := conditionOf(obj); !ok || obj.Spec.GroupPriorityMinimum != priority.Group || obj.Spec.VersionPriority != priority.Version ||
				obj.Labels[managedLabel] != managedOnStart || obj.Spec.Service != nil || condition == nil || condition.Reason != "Local" {
				t.Errorf("%+v", obj)
			}
		}
		if !names["v1.storagemigration.k8s.io"] || !names["v1."] || !names["v1.apps"] {
			t.Errorf("only %v", names)
		}
		if count := c.writes(func() { c.start() }); count != 0 {
			t.Errorf("another server makes %d writes", count)
		}
		if published := first.checks.Published(); len(published.Versions) != 0 || first.checks.Server("apps", "v1") != nil || len(first.checks.byName) != 0 {
			t.Errorf("requests go to %+v", published)
		}
	})
}

// TestUsersWritesToOwnGroups: they stay until the next start, as in kube-apiserver.
func TestUsersWritesToOwnGroups(t *testing.T) {
	inCluster(t, func(c *cluster) {
		m := c.start()
		m.change("v1.batch", func(s *apiregistrationv1.APIService) { s.Spec.GroupPriorityMinimum = 5 })
		m.remove("v1.policy")
		m.change("v1.apps", func(s *apiregistrationv1.APIService) { s.Labels, s.Spec.GroupPriorityMinimum = nil, 5 })
		count := c.writes(func() {
			if m.get("v1.batch").Spec.GroupPriorityMinimum != 5 || m.get("v1.policy") != nil {
				t.Error("what a user has written is put back while the server runs")
			}
		})
		if count != 0 {
			t.Errorf("the server makes %d writes", count)
		}
		if count := c.writes(func() { c.start() }); count != 2 {
			t.Errorf("the next start makes %d writes, want two", count)
		}
		if m.get("v1.batch").Spec.GroupPriorityMinimum != 17400 || m.get("v1.policy") == nil || m.get("v1.apps").Spec.GroupPriorityMinimum != 5 {
			t.Error("the next start does not put back what servers manage, or puts back more")
		}
	})
}

// TestCustomResourcesAreRegistered as they are defined, by one write each, however many servers
// there are.
func TestCustomResourcesAreRegistered(t *testing.T) {
	for _, servers := range []int{1, 2} {
		inCluster(t, func(c *cluster) {
			m := c.start()
			for range servers - 1 {
				c.start()
			}
			const v1, v2 = "v1.example.com", "v2.example.com"
			for _, step := range []struct {
				what   string
				do     func()
				v1, v2 string
				writes storage.Revision // with those of do
			}{
				{"defined", func() { m.define("example.com", "v1", "-v2") }, "true", "", 2},
				{"served", func() { m.define("example.com", "v1", "v2") }, "true", "true", 2},
				{"changed", func() {
					m.change(v1, func(s *apiregistrationv1.APIService) { s.Spec.GroupPriorityMinimum = 5 })
				}, "true", "true", 2},
				{"deleted by a user", func() { m.remove(v2) }, "true", "true", 2},
				{"led to a Service", func() {
					m.change(v2, func(s *apiregistrationv1.APIService) {
						s.Spec = remoteService(schema.GroupVersion{Group: "example.com", Version: "v2"}).Spec
					})
				}, "true", "true", 2},
				{"taken over by a user", func() {
					m.change(v2, func(s *apiregistrationv1.APIService) { s.Labels, s.Spec.GroupPriorityMinimum = nil, 5 })
				}, "true", " changed", 1},
				{"being undefined", func() {
					_, err := m.definitions().Delete(c.ctx, "", "things.example.com", nil)
					must(t, err)
				}, "true", " changed", 1},
				{"undefined", func() { m.finish("things.example.com") }, "", " changed", 2},
			} {
				if count := c.writes(step.do); count != step.writes {
					t.Errorf("%d servers, %s: %d writes, want %d", servers, step.what, count, step.writes)
				}
				m.expect(step.what, v1, step.v1)
				m.expect(step.what, v2, step.v2)
			}
		})
	}
}

// TestForeignAPIServicesStay: only what servers have written, and is served no more, goes.
func TestForeignAPIServicesStay(t *testing.T) {
	inCluster(t, func(c *cluster) {
		before := c.join()
		gv := func(group string) schema.GroupVersion { return schema.GroupVersion{Group: group, Version: "v1"} }
		before.create(localService(gv("old.k8s.io"), CustomPriority, managedOnStart))
		before.create(localService(gv("gone.example.com"), CustomPriority, managedAlways))
		before.create(localService(gv("mine.example.com"), CustomPriority, "no"))
		before.create(remoteService(gv("example.com")))
		before.define("example.com", "v1")
		m := c.start()
		m.expect("at the start", "v1.old.k8s.io", "")
		m.expect("at the start", "v1.gone.example.com", "")
		m.expect("at the start", "v1.mine.example.com", "no")
		if obj := m.get("v1.example.com"); obj == nil || obj.Spec.Service == nil {
			t.Errorf("a user's APIService is replaced: %v", obj)
		}
		m.create(localService(gv("later.k8s.io"), CustomPriority, managedOnStart))
		m.expect("after the start", "v1.later.k8s.io", "onstart")
	})
}

// TestLocalCondition: an APIService that has lost its Service, or its condition, is local.
func TestLocalCondition(t *testing.T) {
	inCluster(t, func(c *cluster) {
		m := c.start()
		m.check()
		gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
		m.create(remoteService(gv))
		if obj := m.get("v1.example.com"); conditionOf(obj) == nil || conditionOf(obj).Reason != "ServiceNotFound" {
			t.Errorf("an APIService with a Service: %v", conditionOf(obj))
		}
		m.change("v1.example.com", func(s *apiregistrationv1.APIService) { s.Spec.Service, s.Spec.InsecureSkipTLSVerify = nil, false })
		m.expect("without its Service", "v1.example.com", "")
		_, err := m.services.UpdateStatus(c.ctx, "", "v1.apps", func(current resource.Object) (resource.Object, error) {
			changed := current.DeepCopyObject().(*apiregistrationv1.APIService)
			changed.Status.Conditions = slices.Clip(changed.Status.Conditions[:0])
			return changed, nil
		}, registry.UpdateOptions{Unconditional: true})
		must(t, err)
		if obj := m.get("v1.apps"); conditionOf(obj) == nil || conditionOf(obj).Reason != "Local" {
			t.Errorf("without a condition: %v", conditionOf(obj))
		}
	})
}
