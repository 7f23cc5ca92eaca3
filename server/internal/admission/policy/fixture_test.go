package policy

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the write path of a server with policies, over a store in memory.
type fixture struct {
	testing.TB
	table    *resource.Table
	set      *registry.Set
	policies *Policies
	// allowed are the verbs and resources that the authorizer allows to everybody.
	allowed map[string]bool
	asked   int
	answer  answered
}

// answered is what a request was answered with beside its result.
type answered struct {
	warnings    []string
	annotations map[string]string
}

func (a *answered) Warn(text string) { a.warnings = append(a.warnings, text) }

func (a *answered) Annotate(key, value string) { a.annotations[key] = value }

func newFixture(t testing.TB) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	must(t, err)
	f := &fixture{TB: t, table: builtin.Table(), allowed: map[string]bool{}}
	caches := map[*resource.Resource]*watchcache.Cache{}
	var list []*watchcache.Cache
	for _, res := range f.table.All() {
		if res.Storage == nil {
			caches[res] = watchcache.New(res, watchcache.Options{})
			list = append(list, caches[res])
		}
	}
	f.set, err = registry.NewSet(registry.Config{
		Store: store, Resources: f.table,
		Cache: func(stored *resource.Resource) *watchcache.Cache { return caches[stored] },
	})
	must(t, err)
	f.policies, err = New(f.set, f, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	f.set.Admit(func(ctx context.Context, q *registry.Request) error {
		if _, ok := auth.UserFrom(ctx); !ok {
			return nil
		}
		err := f.policies.Mutate(ctx, q)
		if err == nil && q.TakeAgain() {
			err = f.policies.Mutate(ctx, q)
		}
		return err
	})
	f.set.Validate(func(ctx context.Context, q *registry.Request) error {
		if _, ok := auth.UserFrom(ctx); !ok || q.Operation == registry.Remove {
			return nil
		}
		return f.policies.Validate(ctx, q)
	})
	ctx, cancel := context.WithCancel(context.Background())
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		_ = feed.New(store, list, feed.Options{}).Run(ctx)
	}()
	f.Cleanup(func() { cancel(); <-fed; must(t, store.Close()) })
	f.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {environment: test}}")
	return f
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Authorize implements auth.Authorizer.
func (f *fixture) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	f.asked++
	name := strings.TrimSpace(a.Verb + " " + a.Resource + a.Path)
	if f.allowed[name] || f.allowed[a.User.Name+" "+name] {
		return auth.Allow, "because", nil
	}
	return auth.NoOpinion, "", nil
}

// context is that of a request by a user. What it is answered with goes to f.answer.
func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	f.Cleanup(cancel)
	f.answer = answered{annotations: map[string]string{}}
	ctx = reporter.With(ctx, &f.answer)
	return auth.WithUser(ctx, auth.User{Name: "alice", Groups: []string{"developers"}})
}

// decode returns the object of a manifest and its resource.
func (f *fixture) decode(manifest string) (registry.Registry, resource.Object) {
	f.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	must(f, err)
	var head metav1.TypeMeta
	must(f, yaml.Unmarshal([]byte(manifest), &head))
	res := f.table.ByKind(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
	if res == nil {
		f.Fatalf("no resource for %s %s in\n%s", head.APIVersion, head.Kind, manifest)
	}
	obj, _, strict, err := res.DecodeBody("application/json", data)
	must(f, err)
	if len(strict) > 0 {
		f.Fatalf("%v in\n%s", strict, manifest)
	}
	if res.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace("default")
	}
	return f.set.For(res), obj
}

// create sends the object of a manifest and returns it as it is stored.
func (f *fixture) create(manifest string) (resource.Object, error) {
	f.Helper()
	r, obj := f.decode(manifest)
	ctx := f.context()
	if _, err := r.Create(ctx, obj.GetNamespace(), obj, registry.WriteOptions{}); err != nil {
		return nil, err
	}
	stored, err := r.GetFromStore(ctx, obj.GetNamespace(), obj.GetName())
	must(f, err)
	return stored, nil
}

// apply creates the objects of manifests, which nothing may refuse.
func (f *fixture) apply(manifests string) {
	f.Helper()
	for _, manifest := range strings.Split(manifests, "\n---\n") {
		if strings.TrimSpace(manifest) == "" {
			continue
		}
		if _, err := f.create(manifest); err != nil {
			f.Fatalf("%v in\n%s", err, manifest)
		}
	}
}

// remove deletes the objects of manifests.
func (f *fixture) remove(manifests string) {
	f.Helper()
	for manifest := range strings.SplitSeq(manifests, "\n---\n") {
		r, obj := f.decode(manifest)
		_, err := r.Delete(f.context(), obj.GetNamespace(), obj.GetName(), nil)
		must(f, err)
	}
}

// expect creates an object and compares the refusal: empty if there must be none.
func (f *fixture) expect(manifest, refusal string) {
	f.Helper()
	obj, err := f.create(manifest)
	switch {
	case err == nil && refusal == "":
		r, _ := f.decode(manifest)
		_, err := r.Delete(context.Background(), obj.GetNamespace(), obj.GetName(), nil)
		must(f, err)
	case err == nil:
		f.Errorf("nothing refuses\n%s", manifest)
	case refusal == "" || !strings.Contains(err.Error(), refusal):
		f.Errorf("refused with\n%v\nwant %q", err, refusal)
	}
}

// binding is the manifest of a binding that denies.
func bindingFor(policy, more string) string {
	return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: " + policy + "-binding}\n" +
		"spec:\n  policyName: " + policy + "\n  validationActions: [Deny]\n" + more
}

func mutatingBindingFor(policy string) string {
	return "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: " + policy + "-binding}\nspec: {policyName: " + policy + "}\n"
}

// policyFor is the manifest of a policy for creations and updates of a resource.
func policyFor(name, group, resources, spec string) string {
	return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: " + name + "}\nspec:\n  failurePolicy: Fail\n" +
		"  matchConstraints:\n    resourceRules:\n    - {apiGroups: ['" + group + "'], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [" + resources + "]}\n" + spec
}

func deployment(name, replicas, image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", labels: {app: web}}\nspec:\n  replicas: " + replicas +
		"\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: '" + image + "'}]}\n"
}

func pod(name, spec string) string {
	if spec == "" {
		spec = "{containers: [{name: a, image: a}]}"
	}
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

func configMap(name, labels, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {" + labels + "}}\ndata: {" + data + "}\n"
}
