package interop

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/levelwire/levelwire/client"
	ourdiscovery "github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/server"
)

var replicaSets = appsv1.SchemeGroupVersion.WithResource("replicasets")

// TestDynamicClient does everything that the dynamic client can with a
// ReplicaSet, on both servers.
func TestDynamicClient(t *testing.T) {
	for maker, config := range serveAll(t, server.Memory) {
		t.Run(maker, func(t *testing.T) { useDynamic(t, config) })
	}
}

func useDynamic(t *testing.T, config *rest.Config) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	sets := c.Resource(replicaSets).Namespace(newNamespace(t, clientset(t, config)))
	events, err := sets.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()

	set := must(t)(sets.Create(ctx, newReplicaSet("web"), metav1.CreateOptions{}))
	if set.GetKind() != "ReplicaSet" || set.GetUID() == "" || set.GetGeneration() != 1 {
		t.Errorf("created %v", set.Object)
	}
	setField(t, set, int64(3), "spec", "replicas")
	set = must(t)(sets.Update(ctx, set, metav1.UpdateOptions{}))
	if set.GetGeneration() != 2 {
		t.Errorf("generation %d after a change of the spec, want 2", set.GetGeneration())
	}
	setField(t, set, int64(1), "status", "replicas")
	set = must(t)(sets.UpdateStatus(ctx, set, metav1.UpdateOptions{}))
	if set.GetGeneration() != 2 {
		t.Errorf("generation %d after a change of the status, want 2", set.GetGeneration())
	}
	must(t)(sets.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
	must(t)(sets.Patch(ctx, "web", types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels/c","value":"d"}]`), metav1.PatchOptions{}))
	must(t)(sets.Patch(ctx, "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`), metav1.PatchOptions{}))
	set = must(t)(sets.Get(ctx, "web", metav1.GetOptions{}))
	containers, _, _ := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
	if labels := set.GetLabels(); labels["a"] != "b" || labels["c"] != "d" || len(containers) != 2 {
		t.Errorf("after three patches: labels %v, %d containers; want a=b, c=d, 2", labels, len(containers))
	}
	list, err := sets.List(ctx, metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%v, %v; want one item", list, err)
	}
	if err := sets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "a=b"}); err != nil {
		t.Fatal(err)
	}
	want := []watch.EventType{
		watch.Added, watch.Modified, watch.Modified, watch.Modified, watch.Modified, watch.Modified, watch.Deleted,
	}
	for i, want := range want {
		if event := <-events.ResultChan(); event.Type != want {
			t.Fatalf("event %d is %s %v, want %s", i, event.Type, event.Object, want)
		}
	}
}

// must unwraps a result whose error ends the test.
func must(t *testing.T) func(*unstructured.Unstructured, error) *unstructured.Unstructured {
	return func(obj *unstructured.Unstructured, err error) *unstructured.Unstructured {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
}

func setField(t *testing.T, obj *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

func newReplicaSet(name string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": map[string]any{"name": name, "labels": labels},
		"spec": map[string]any{
			"replicas": int64(1),
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "main:1"}}},
			},
		},
	}}
}

// TestMetadataClient reads, patches and deletes with client-go's metadata
// client, on both servers.
func TestMetadataClient(t *testing.T) {
	for maker, config := range serveAll(t, server.Memory) {
		t.Run(maker, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			c, err := metadata.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			writes := clientset(t, config)
			namespace := newNamespace(t, writes)
			writeConfigMap(ctx, t, writes, namespace, "a", "1")
			maps := c.Resource(configMaps).Namespace(namespace)
			events, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=a"})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Stop()
			obj, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"b":"c"}}}`), metav1.PatchOptions{})
			if err != nil || obj.Labels["b"] != "c" {
				t.Fatalf("%v, %v; want the patched metadata", obj, err)
			}
			list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "b=c"})
			if err != nil || len(list.Items) != 1 || list.Items[0].ResourceVersion != obj.ResourceVersion {
				t.Fatalf("%v, %v; want the one that was patched", list, err)
			}
			if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			for event := range events.ResultChan() {
				if _, ok := event.Object.(*metav1.PartialObjectMetadata); !ok {
					t.Fatalf("an event of %T", event.Object)
				}
				if event.Type == watch.Deleted {
					return
				}
			}
			t.Error("the watch ended before the deletion")
		})
	}
}

// TestDiscovery asks our server as kubectl and controller-runtime do, in both
// forms of discovery, and scales by what it learns.
func TestDiscovery(t *testing.T) {
	config := serve(t, "our server", server.Memory)
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	aggregated := resourcesOf(t, c)
	c.UseLegacyDiscovery = true
	if plain := resourcesOf(t, c); !slices.Equal(plain, aggregated) {
		t.Errorf("plain discovery finds\n%v\naggregated\n%v", plain, aggregated)
	}
	for _, want := range []string{"v1 pods", "v1 pods/binding", "apps/v1 deployments/scale", "coordination.k8s.io/v1 leases"} {
		if !slices.Contains(aggregated, want) {
			t.Errorf("%s is not found", want)
		}
	}
	if version, err := c.ServerVersion(); err != nil || version.Major != "1" {
		t.Errorf("version %v, %v", version, err)
	}

	groups, err := restmapper.GetAPIGroupResources(c)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "ReplicaSet"})
	if err != nil || mapping.Resource != replicaSets || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Fatalf("%v, %v; want %v", mapping, err, replicaSets)
	}
	scaleUp(t, config, c, mapper)
}

func resourcesOf(t *testing.T, c *discovery.DiscoveryClient) []string {
	t.Helper()
	_, lists, err := c.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			found = append(found, list.GroupVersion+" "+resource.Name)
		}
	}
	slices.Sort(found)
	return found
}

// scaleUp uses client-go's scale client, as autoscalers do.
func scaleUp(t *testing.T, config *rest.Config, c discovery.DiscoveryInterface, mapper meta.RESTMapper) {
	t.Helper()
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	sets := dynamicClient.Resource(replicaSets).Namespace("default")
	must(t)(sets.Create(t.Context(), newReplicaSet("web"), metav1.CreateOptions{}))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(c))
	if err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec":{"replicas":7}}`)
	if _, err := scales.Scales("default").Patch(t.Context(), replicaSets, "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	set := must(t)(sets.Get(t.Context(), "web", metav1.GetOptions{}))
	if replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas"); replicas != 7 {
		t.Errorf("%d replicas, want 7", replicas)
	}
}

// TestOurDiscovery has our client ask the upstream server what it serves.
func TestOurDiscovery(t *testing.T) {
	c, err := client.New(serve(t, "upstream server", server.Memory), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	mapper := ourdiscovery.NewMapper(c, ourdiscovery.Options{})
	pods, err := mapper.ByName(t.Context(), "pod")
	if err != nil {
		t.Fatal(err)
	}
	want := scheme.Mapping{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods", Scope: scheme.Namespaced}
	if pods.Mapping != want || !pods.Supports("watch") {
		t.Errorf("pods: %+v", pods)
	}
	all, err := mapper.All(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, r := range all {
		if known, ok := scheme.Default.ByResource(r.GroupVersionResource()); ok && (known.Kind != r.Mapping.Kind || known.Scope != r.Mapping.Scope) {
			t.Errorf("served %+v; in the scheme %+v", r.Mapping, known)
		}
	}
}

// TestLeaderElection runs client-go's leader election over leases on both
// servers: there is one leader, and another when it gives up.
func TestLeaderElection(t *testing.T) {
	for maker, config := range serveAll(t, server.Memory) {
		t.Run(maker, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			namespace := newNamespace(t, clientset(t, config))
			leads := make(chan string)
			stopFirst := campaign(ctx, t, config, namespace, "first", leads)
			if leader := <-leads; leader != "first" {
				t.Fatalf("%s leads, want the only candidate", leader)
			}
			stopSecond := campaign(ctx, t, config, namespace, "second", leads)
			defer stopSecond()
			stopFirst()
			select {
			case leader := <-leads:
				if leader != "second" {
					t.Errorf("%s leads, want the second", leader)
				}
			case <-ctx.Done():
				t.Error("there is no leader after the first gave up")
			}
		})
	}
}

// campaign runs a candidate, which sends its name when it leads. The function
// stops it: it gives the lease back.
func campaign(ctx context.Context, t *testing.T, config *rest.Config, namespace, name string, leads chan<- string) (stop func()) {
	t.Helper()
	c := clientset(t, config)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "leader"},
			Client:     c.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				select {
				case leads <- name:
				case <-ctx.Done():
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); elector.Run(ctx) }()
	return func() { cancel(); <-done }
}
