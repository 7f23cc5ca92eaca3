package flowcontrol

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fixture is a Controller over a store in memory.
type fixture struct {
	testing.TB
	set *registry.Set
	*Controller
}

// newFixture returns a Controller of so many seats that does not run yet.
func newFixture(t testing.TB, seats int) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	must(t, err)
	caches := map[*resource.Resource]*watchcache.Cache{}
	var list []*watchcache.Cache
	table := builtin.Table()
	for _, res := range table.All() {
		if res.Storage == nil && res.Group == flowcontrolv1.GroupName {
			caches[res] = watchcache.New(res, watchcache.Options{})
			list = append(list, caches[res])
		}
	}
	f := &fixture{TB: t}
	f.set, err = registry.NewSet(registry.Config{
		Store: store, Resources: table, Cache: func(stored *resource.Resource) *watchcache.Cache { return caches[stored] },
	})
	must(t, err)
	feed := feed.New(store, list, feed.Options{})
	f.Controller, err = New(f.set, Options{Seats: seats, QueueWait: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	f.runs(func(ctx context.Context) { _ = feed.Run(ctx) })
	t.Cleanup(func() { must(t, store.Close()) })
	return f
}

// runs calls a function until the test ends.
func (f *fixture) runs(run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	f.Cleanup(func() { cancel(); <-done })
}

// start creates the default objects and runs the Controller.
func (f *fixture) start() {
	f.Helper()
	must(f, f.Ensure(f.Context()))
	f.runs(f.Run)
	testwait.Stable(f, "the stored objects are used", func() (any, bool) {
		seen := f.Classify(request("alice", "get", "pods", "default")).SchemaUID[0]
		return seen, seen != ""
	})
}

func (f *fixture) of(plural string) registry.Registry {
	f.Helper()
	r, err := f.set.Lookup(flowcontrolv1.GroupName, "v1", plural)
	if !err {
		f.Fatalf("%s are not served", plural)
	}
	return r
}

func (f *fixture) create(plural string, obj resource.Object) {
	f.Helper()
	_, err := f.of(plural).Create(f.Context(), "", obj, registry.WriteOptions{})
	must(f, err)
}

func (f *fixture) delete(plural, name string) {
	f.Helper()
	_, err := f.of(plural).Delete(f.Context(), "", name, nil)
	must(f, err)
}

// change updates an object.
func change[T resource.Object](f *fixture, plural, name string, change func(T)) {
	f.Helper()
	_, err := f.of(plural).Update(f.Context(), "", name, func(current resource.Object) (resource.Object, error) {
		changed := current.DeepCopyObject().(T)
		change(changed)
		return changed, nil
	}, registry.UpdateOptions{Unconditional: true})
	must(f, err)
}

func getAs[T resource.Object](f *fixture, plural, name string) T {
	f.Helper()
	obj, err := registry.GetAs[T](f.Context(), f.of(plural), "", name)
	must(f, err)
	return obj
}

// flowSchema is a FlowSchema with one rule.
func flowSchema(name, level string, precedence int32, rule flowcontrolv1.PolicyRulesWithSubjects) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level}, MatchingPrecedence: precedence,
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{rule},
	}}
}

func userSubject(name string) flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: name}}
}

func groupSubject(name string) flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: name}}
}

func accountSubject(namespace, name string) flowcontrolv1.Subject {
	return flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: namespace, Name: name}}
}

// onEverything is a rule of all requests of some subjects.
func onEverything(subjects ...flowcontrolv1.Subject) flowcontrolv1.PolicyRulesWithSubjects {
	all := []string{"*"}
	return flowcontrolv1.PolicyRulesWithSubjects{
		Subjects:         subjects,
		ResourceRules:    []flowcontrolv1.ResourcePolicyRule{{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true}},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: all, NonResourceURLs: all}},
	}
}
