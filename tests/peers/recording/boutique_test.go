package recording

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/controllermanager"
	"github.com/levelwire/levelwire/components/kubelet"
	"github.com/levelwire/levelwire/components/scheduler"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/recording/replay"
)

// boutiqueTimeout is how long a rollout, its recording and its replay may take.
const boutiqueTimeout = 3 * time.Minute

// followed are the resources whose events are compared.
var followed = []schema.GroupVersionResource{
	pods,
	appsv1.SchemeGroupVersion.WithResource("deployments"),
	appsv1.SchemeGroupVersion.WithResource("replicasets"),
	discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
}

// startCluster starts a server with controllers, a scheduler and simulated nodes.
func startCluster(t *testing.T) *levelwiretest.Server {
	t.Helper()
	s := levelwiretest.Start(t)
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	run := func(run func(context.Context) error, err error) {
		check(t, err)
		running.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	connect := func() *client.Client { return s.Client(client.Options{ContentType: client.Protobuf}) }
	manager, err := controller.NewManager(connect(), controller.Options{Logger: log})
	check(t, err)
	run(manager.Run, err)
	placing, err := scheduler.New(connect(), scheduler.Options{Logger: log})
	check(t, err)
	run(placing.Run, err)
	for i := range 3 {
		node, err := kubelet.New(connect(), kubelet.Options{NodeName: fmt.Sprint("node-", i+1), Logger: log, StartAfter: time.Millisecond, StopAfter: time.Millisecond})
		check(t, err)
		run(node.Run, err)
	}
	return s
}

// apply applies the documents of a manifest to the namespace, as kubectl apply --server-side does.
func apply(ctx context.Context, t *testing.T, c *client.Client, manifest []byte) {
	t.Helper()
	folders := map[string]string{"Deployment": "/apis/apps/v1/namespaces/%s/deployments/%s", "Service": "/api/v1/namespaces/%s/services/%s", "ServiceAccount": "/api/v1/namespaces/%s/serviceaccounts/%s"}
	for document := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		var object metav1.PartialObjectMetadata
		check(t, yaml.Unmarshal(document, &object))
		if object.Kind == "" {
			continue // comments
		}
		answer, err := c.Raw(ctx, client.RawRequest{
			Method: http.MethodPatch, Path: fmt.Sprintf(folders[object.Kind], namespace, object.Name) + "?fieldManager=test&force=true",
			Header: http.Header{"Content-Type": {"application/apply-patch+yaml"}}, Body: document,
		})
		check(t, err)
		body, err := io.ReadAll(answer.Body)
		check(t, err)
		check(t, answer.Body.Close())
		if answer.StatusCode >= 300 {
			t.Errorf("apply %s %s: %d %s", object.Kind, object.Name, answer.StatusCode, body)
		}
	}
}

// awaitRollout waits until all Deployments have rolled out pods of an image with a tag, and no others.
func awaitRollout(ctx context.Context, t *testing.T, c *client.Client, deployments int) {
	t.Helper()
	done := map[string]bool{}
	w, err := client.For[*appsv1.Deployment](c).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	check(t, err)
	defer w.Close()
	for len(done) < deployments {
		e, err := w.Next()
		check(t, err)
		d := e.Object
		if d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas {
			done[d.Name] = true
		} else {
			delete(done, d.Name)
		}
	}
}

// awaitEndpoints waits until a number of EndpointSlices have pods that stay, and no others. Controllers of endpoints
// follow what is there, and not each step to it: without this, a rollout may end before they have seen it.
func awaitEndpoints(ctx context.Context, t *testing.T, c *client.Client, services int) {
	t.Helper()
	there, err := client.For[*corev1.Pod](c).Namespace(namespace).List(ctx, metav1.ListOptions{})
	check(t, err)
	stays := map[string]bool{}
	for _, pod := range there.Items {
		stays[pod.Name] = pod.DeletionTimestamp == nil
	}
	w, err := client.For[*discoveryv1.EndpointSlice](c).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	check(t, err)
	defer w.Close()
	current := map[string]bool{}
	for len(current) < services {
		e, err := w.Next()
		check(t, err)
		other := func(e discoveryv1.Endpoint) bool { return e.TargetRef == nil || !stays[e.TargetRef.Name] }
		if of := e.Object.Endpoints; len(of) > 0 && !slices.ContainsFunc(of, other) {
			current[e.Object.Name] = true
		} else {
			delete(current, e.Object.Name)
		}
	}
}

// eventsOf collects what a watch of client-go shows after a version, until that of an object named last, and the version of that one.
func eventsOf(ctx context.Context, t *testing.T, c dynamic.Interface, of schema.GroupVersionResource, after string) (events []string, last int64) {
	t.Helper()
	w, err := c.Resource(of).Namespace(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: after})
	check(t, err)
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Error || e.Type == watch.Bookmark {
			t.Fatalf("a watch of %s: %v", of.Resource, e)
		}
		events = append(events, describe(string(e.Type), o))
		if o.GetName() == "last" {
			return events, versionOf(t, events[len(events)-1])
		}
	}
	t.Fatalf("the watch of %s ended", of.Resource)
	return nil, 0
}

// lastObjects are objects with nothing to do, one of each followed resource, in its order.
var lastObjects = []string{
	`{apiVersion: v1, kind: Pod, metadata: {name: last}, spec: {schedulerName: none, containers: [{name: c, image: i}]}}`,
	`{apiVersion: apps/v1, kind: Deployment, metadata: {name: last}, spec: {paused: true, replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
	`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: last}, spec: {replicas: 0, selector: {matchLabels: {c: d}}, template: {metadata: {labels: {c: d}}, spec: {containers: [{name: c, image: i}]}}}}`,
	`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: last}, addressType: IPv4, endpoints: []}`,
}

// TestOnlineBoutique records how Online Boutique is installed and then rolled out in a new version, on a
// cluster with controllers, a scheduler and simulated nodes. Its replay shows client-go's informers and
// kubectl the same events of pods, Deployments, ReplicaSets and EndpointSlices in the same order.
func TestOnlineBoutique(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), boutiqueTimeout)
	defer cancel()
	manifest, err := os.ReadFile("testdata/online-boutique.yaml")
	check(t, err)
	deployments, services := bytes.Count(manifest, []byte("\nkind: Deployment\n")), bytes.Count(manifest, []byte("\nkind: Service\n"))
	recorded := startCluster(t)
	c := recorded.Client(client.Options{})
	resources := make([]string, len(followed))
	for i, of := range followed {
		resources[i] = of.Resource
	}
	before, err := client.For[*appsv1.Deployment](c).Namespace(namespace).List(ctx, metav1.ListOptions{})
	check(t, err)
	path, await, end := record(ctx, t, c, resources...)
	apply(ctx, t, c, manifest)
	awaitRollout(ctx, t, c, deployments)
	awaitEndpoints(ctx, t, c, services)
	next := bytes.ReplaceAll(manifest, []byte(":v0.10.6"), []byte(":v0.10.7"))
	if bytes.Equal(next, manifest) {
		t.Fatal("the manifest has no images of version 0.10.6")
	}
	apply(ctx, t, c, next)
	awaitRollout(ctx, t, c, deployments)
	awaitEndpoints(ctx, t, c, services)

	dynamicClient, err := dynamic.NewForConfig(recorded.Config())
	check(t, err)
	want := make([][]string, len(followed))
	var lastRecorded int64
	for i, of := range followed {
		var object unstructured.Unstructured
		check(t, yaml.Unmarshal([]byte(lastObjects[i]), &object.Object))
		_, err := dynamicClient.Resource(of).Namespace(namespace).Create(ctx, &object, metav1.CreateOptions{})
		check(t, err)
		var version int64
		want[i], version = eventsOf(ctx, t, dynamicClient, of, before.ResourceVersion)
		lastRecorded = max(lastRecorded, version)
		t.Logf("%d events of %s", len(want[i]), of.Resource)
		if len(want[i]) < 2*11 { // each state of what both rollouts change
			t.Errorf("%d events of %s are too few for the rollout of %d Deployments", len(want[i]), of.Resource, deployments)
		}
	}
	await(strconv.FormatInt(lastRecorded, 10))
	end()

	s, player := replayed(t, path)
	consumers := make([][]*consumer, len(followed))
	for i, of := range followed {
		consumers[i] = []*consumer{startStock(ctx, t, s.Config(), of)}
		if kubectl := startKubectl(ctx, t, s, of); kubectl != nil {
			consumers[i] = append(consumers[i], kubectl)
		}
		awaitWatches(ctx, t, s, of, len(consumers[i]))
	}
	first := player.Status().First // what came before is in the recording's lists
	check(t, player.Play(replay.MaxSpeed))
	for i := range followed {
		want[i] = slices.DeleteFunc(want[i], func(e string) bool { return versionOf(t, e) <= first })
		for _, c := range consumers[i] {
			c.compare(ctx, t, want[i])
		}
	}
}
