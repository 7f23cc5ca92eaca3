package registry_test

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/bootstrap"
	"github.com/levelwire/levelwire/server/internal/registry/namespace"
	"github.com/levelwire/levelwire/server/internal/registry/service"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// fixture is a Set over a store in memory. Its table has one kind of each sort,
// with a strategy that does nothing but what the test is about: what the real
// kinds do is tested with them.
type fixture struct {
	*registry.Set
	store    storage.Store
	services *service.Allocator
	table    *resource.Table
	clock    *clock
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newFixture(t testing.TB, change ...func(*registry.Config)) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return newFixtureOver(t, store, change...)
}

// newFixtureOver makes another server of the same store.
func newFixtureOver(t testing.TB, store storage.Store, change ...func(*registry.Config)) *fixture {
	t.Helper()
	ranges := service.Options{CIDR: netip.MustParsePrefix("10.0.0.0/28"), FirstNodePort: 30000, LastNodePort: 30007}
	return newFixtureOf(t, store, ranges, change...)
}

// newFixtureOf makes a server with these ranges of addresses and node ports.
func newFixtureOf(t testing.TB, store storage.Store, ranges service.Options, change ...func(*registry.Config)) *fixture {
	t.Helper()
	table, err := resource.NewTable(kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{store: store, table: table, clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	config := registry.Config{Store: store, Resources: table, Now: f.clock.Now}
	for _, fn := range change {
		fn(&config)
	}
	if f.Set, err = registry.NewSet(config); err != nil {
		t.Fatal(err)
	}
	f.services, err = service.New(f.Set, ranges)
	if err != nil {
		t.Fatal(err)
	}
	f.Admit(namespace.Lifecycle(f.Set), f.services.Admit)
	if err := f.bootstrap(t, f.endpoint("192.0.2.1:6443")); err != nil {
		t.Fatal(err)
	}
	return f
}

// endpoint is that of a server at an address.
func (f *fixture) endpoint(address string) *bootstrap.Endpoint {
	return bootstrap.NewEndpoint(f.Set, f.services, netip.MustParseAddrPort(address), slog.Default())
}

func (f *fixture) bootstrap(t testing.TB, endpoint *bootstrap.Endpoint) error {
	t.Helper()
	return bootstrap.Run(t.Context(), f.Set, f.services, endpoint)
}

func (f *fixture) of(t testing.TB, plural string) registry.Registry {
	t.Helper()
	for _, res := range kinds() {
		if res.Plural == plural {
			r, ok := f.Lookup(res.Group, res.Version, plural)
			if !ok {
				t.Fatalf("%s is not served", plural)
			}
			return r
		}
	}
	t.Fatalf("the fixture has no %s", plural)
	return registry.Registry{}
}

// create makes an object in namespace default.
func (f *fixture) create(t testing.TB, plural string, obj resource.Object) *registry.Result {
	t.Helper()
	r := f.of(t, plural)
	namespace := ""
	if r.Resource().Namespaced {
		namespace = "default"
	}
	result, err := r.Create(t.Context(), namespace, obj, registry.WriteOptions{})
	if err != nil {
		t.Fatalf("create %s: %v", plural, err)
	}
	return result
}

// events returns what happened to keys with a prefix after a revision.
func (f *fixture) events(t testing.TB, prefix string, after storage.Revision) []storage.Event {
	t.Helper()
	now, err := f.store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := f.store.Watch(ctx, prefix, after)
	if err != nil {
		t.Fatal(err)
	}
	var events []storage.Event
	for reached := after; reached < now; {
		batch, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, batch.Events...)
		reached = batch.Revision
	}
	return events
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}

func newPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func kinds() []*resource.Resource {
	return []*resource.Resource{
		kind[corev1.ConfigMap, corev1.ConfigMapList](corev1.SchemeGroupVersion, "ConfigMap", "configmaps", func(r *resource.Resource) {
			r.Strategy = resource.Strategy{NoGeneration: true, UnconditionalUpdate: true, CompleteNew: noteLabel}
		}),
		kind[corev1.LimitRange, corev1.LimitRangeList](corev1.SchemeGroupVersion, "LimitRange", "limitranges", func(r *resource.Resource) {
			r.Strategy = resource.Strategy{NamesUnnamed: true, ValidateName: func(obj resource.Object, _ bool) field.ErrorList {
				var errs field.ErrorList
				for _, message := range apivalidation.NameIsDNSSubdomain(obj.GetName(), false) {
					errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), obj.GetName(), message))
				}
				return errs
			}}
		}),
		kind[corev1.Secret, corev1.SecretList](corev1.SchemeGroupVersion, "Secret", "secrets", func(r *resource.Resource) {
			r.Strategy.NoFirstGeneration = true
		}),
		kind[corev1.Namespace, corev1.NamespaceList](corev1.SchemeGroupVersion, "Namespace", "namespaces", func(r *resource.Resource) {
			r.Namespaced, r.Status = false, true
			r.Strategy = resource.Strategy{UnconditionalUpdate: true, MarkedByTime: true, PrepareForCreate: func(obj resource.Object) {
				ns := obj.(*corev1.Namespace)
				ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
				ns.Status.Phase = corev1.NamespaceActive
			}, PrepareForUpdate: func(obj, old resource.Object) {
				obj.(*corev1.Namespace).Spec.Finalizers = old.(*corev1.Namespace).Spec.Finalizers
			}}
		}),
		kind[corev1.Pod, corev1.PodList](corev1.SchemeGroupVersion, "Pod", "pods", func(r *resource.Resource) {
			r.Status = true
			r.Strategy = resource.Strategy{ReturnDeleted: true, UnconditionalUpdate: true, Graceful: podGrace}
		}),
		kind[appsv1.Deployment, appsv1.DeploymentList](appsv1.SchemeGroupVersion, "Deployment", "deployments", func(r *resource.Resource) {
			r.Status = true
			r.Strategy = resource.Strategy{UnconditionalUpdate: true}
			r.Scale = deploymentScale()
		}),
		kind[corev1.Service, corev1.ServiceList](corev1.SchemeGroupVersion, "Service", "services", func(r *resource.Resource) {
			r.StorePrefix, r.Status = "/registry/services/specs/", true
			r.Strategy = resource.Strategy{UnconditionalUpdate: true, NoGeneration: true}
		}),
		kind[corev1.Endpoints, corev1.EndpointsList](corev1.SchemeGroupVersion, "Endpoints", "endpoints", func(r *resource.Resource) {
			r.StorePrefix, r.Strategy = "/registry/services/endpoints/", resource.Strategy{UpsertOnUpdate: true}
		}),
		kind[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion, "EndpointSlice", "endpointslices", func(*resource.Resource) {}),
		kind[networkingv1.IPAddress, networkingv1.IPAddressList](networkingv1.SchemeGroupVersion, "IPAddress", "ipaddresses", func(r *resource.Resource) {
			r.Namespaced, r.Strategy.WholeGenerateName = false, true
		}),
		kind[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", func(r *resource.Resource) {
			r.Status, r.Strategy = true, budgetStrategy()
		}),
		{
			Group: "example.com", Version: "v1", Kind: "Widget", ListKind: "WidgetList", Plural: "widgets", Singular: "widget",
			Namespaced: true, StorePrefix: "/registry/example.com/widgets/", Status: true,
			New:      func() resource.Object { return &unstructured.Unstructured{} },
			NewList:  func() runtime.Object { return &unstructured.UnstructuredList{} },
			Strategy: resource.Strategy{UnconditionalUpdate: true},
		},
	}
}

// budgetStrategy checks a budget before its metadata.
func budgetStrategy() resource.Strategy {
	return resource.Strategy{MetadataIfValid: true, Validate: func(obj resource.Object) field.ErrorList {
		if spec := obj.(*policyv1.PodDisruptionBudget).Spec; spec.MinAvailable != nil && spec.MaxUnavailable != nil {
			return field.ErrorList{field.Invalid(field.NewPath("spec"), nil, "both")}
		}
		return nil
	}}
}

type pointer[T any] interface {
	*T
	resource.Object
}

type listPointer[L any] interface {
	*L
	runtime.Object
}

func kind[T, L any, PT pointer[T], PL listPointer[L]](gv schema.GroupVersion, name, plural string, set func(*resource.Resource)) *resource.Resource {
	r := &resource.Resource{
		Group: gv.Group, Version: gv.Version, Kind: name, ListKind: name + "List", Plural: plural, Singular: plural[:len(plural)-1],
		Namespaced: true, StorePrefix: "/registry/" + plural + "/",
		New:     func() resource.Object { return PT(new(T)) },
		NewList: func() runtime.Object { return PL(new(L)) },
	}
	set(r)
	return r
}

func podGrace(obj resource.Object, requested *int64) int64 {
	if obj.(*corev1.Pod).Spec.NodeName == "" {
		return 0
	}
	if requested != nil {
		return *requested
	}
	return 30
}

func deploymentScale() *resource.Scale {
	return &resource.Scale{
		Get: func(obj resource.Object) (*int32, int32, string, error) {
			d := obj.(*appsv1.Deployment)
			selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err != nil || d.Spec.Replicas == nil {
				return new(int32(0)), d.Status.Replicas, "", err
			}
			return d.Spec.Replicas, d.Status.Replicas, selector.String(), nil
		},
		Set: func(obj resource.Object, replicas int32) error {
			obj.(*appsv1.Deployment).Spec.Replicas = &replicas
			return nil
		},
	}
}

// noteLabel completes a new object: it says in an annotation what its label "by" is, each time that it is
// called.
func noteLabel(obj resource.Object) {
	if by, ok := obj.GetLabels()["by"]; ok {
		annotations := maps.Clone(obj.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["completed"] += by
		obj.SetAnnotations(annotations)
	}
}
