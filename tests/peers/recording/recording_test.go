package recording

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/recording"
	"github.com/levelwire/levelwire/recording/recorder"
	"github.com/levelwire/levelwire/recording/replay"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

// recordingOptions make a block of a few changes, so that a file that is cut off has many before that.
var recordingOptions = recording.WriterOptions{CheckpointBytes: 4 << 10}

const (
	namespace   = "default"
	testTimeout = 3 * time.Minute
	// settleTime is longer than any delay of a watch, so that each change is replayed at its own version.
	settleTime = 30 * time.Second
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// shop are the programs of the rollout, with how many pods each has.
var shop = map[string]int{"frontend": 3, "cart": 2, "checkout": 2, "currency": 1, "payment": 1}

// rollout does what the controllers, a scheduler and kubelets do for a new version of every program of
// a shop: new ReplicaSets, pods that are bound and get ready, old pods that go. It returns the versions
// of the last pod and of the last ReplicaSet, which it marks.
func rollout(ctx context.Context, t *testing.T, c *client.Client) (pod, set string) {
	t.Helper()
	pods, sets := client.For[*corev1.Pod](c).Namespace(namespace), client.For[*appsv1.ReplicaSet](c).Namespace(namespace)
	for _, version := range []string{"v1", "v2"} {
		for name, replicas := range shop {
			full := name + "-" + version
			labels := map[string]string{"app": name, "version": version}
			template := corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "registry.example.com/shop/" + name + ":" + version}}},
			}
			wanted := int32(replicas)
			_, err := sets.Create(ctx, &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Name: full, Namespace: namespace, Labels: labels},
				Spec:       appsv1.ReplicaSetSpec{Replicas: &wanted, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
			}, metav1.CreateOptions{})
			check(t, err)
			for i := range replicas {
				id := fmt.Sprintf("%s-%d", full, i)
				_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: namespace, Labels: labels}, Spec: template.Spec}, metav1.CreateOptions{})
				check(t, err)
				for _, step := range []string{"starting", "ready"} {
					o, err := pods.UpdateWithRetry(ctx, id, func(o *corev1.Pod) error {
						metav1.SetMetaDataAnnotation(&o.ObjectMeta, "example.com/step", step)
						return nil
					})
					check(t, err)
					pod = o.ResourceVersion
				}
				if version == "v2" {
					check(t, pods.Delete(ctx, fmt.Sprintf("%s-v1-%d", name, i), metav1.DeleteOptions{}))
				}
			}
		}
	}
	last, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "last", Namespace: namespace}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}, metav1.CreateOptions{})
	check(t, err)
	o, err := sets.UpdateWithRetry(ctx, "payment-v2", func(o *appsv1.ReplicaSet) error {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, "example.com/step", "done")
		return nil
	})
	check(t, err)
	return last.ResourceVersion, o.ResourceVersion
}

// record begins to record resources, and returns the file, what waits until a version is in it, and
// what ends the recording.
func record(ctx context.Context, t *testing.T, c *client.Client, resources ...string) (path string, await func(version string), end func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "rollout.lwr")
	during, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	reached, ended := make(chan int64), make(chan error, 1)
	go func() {
		_, err := recorder.Record(during, c, path, recorder.Options{Resources: resources, SettleTime: settleTime, Writer: recordingOptions, Progress: func(s recorder.Stats) {
			select {
			case reached <- s.Revision:
			case <-during.Done():
			}
		}})
		ended <- err
	}()
	await = func(version string) {
		t.Helper()
		want, err := strconv.ParseInt(version, 10, 64)
		check(t, err)
		for {
			select {
			case at := <-reached:
				if at >= want {
					return
				}
			case err := <-ended:
				t.Fatal("the recording ended:", err)
			case <-ctx.Done():
				t.Fatal("the version was not recorded")
			}
		}
	}
	await("1")
	return path, await, func() {
		t.Helper()
		cancel()
		check(t, <-ended)
	}
}

// recordRollout records a server while the rollout runs, and returns the file and what a watch of the
// pods showed meanwhile.
func recordRollout(ctx context.Context, t *testing.T, c *client.Client) (path string, events []string) {
	t.Helper()
	path, await, end := record(ctx, t, c, "pods", "replicasets")
	before, err := client.For[*corev1.Pod](c).Namespace(namespace).List(ctx, metav1.ListOptions{})
	check(t, err)
	pod, set := rollout(ctx, t, c)
	w, err := client.For[*corev1.Pod](c).Namespace(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	check(t, err)
	defer w.Close()
	for {
		e, err := w.Next()
		check(t, err)
		if e.Type != watch.Bookmark {
			events = append(events, describe(string(e.Type), e.Object))
		}
		if e.Object.ResourceVersion == pod {
			break
		}
	}
	await(set)
	end()
	return path, events
}

// describe is an event of an object as all consumers are compared by it. A deletion has the version of the
// deletion, except in informers, which may have the last state.
func describe(kind string, o metav1.Object) string {
	return fmt.Sprint(kind, " ", o.GetName(), " ", o.GetResourceVersion(), " ", o.GetUID(), " ", o.GetAnnotations()["example.com/step"])
}

// versionOf returns the version of a described event.
func versionOf(t *testing.T, event string) int64 {
	t.Helper()
	version, err := strconv.ParseInt(strings.Fields(event)[2], 10, 64)
	check(t, err)
	return version
}

// replayed serves a file, paused at its begin.
func replayed(t *testing.T, path string) (s *levelwiretest.Server, player *replay.Player) {
	t.Helper()
	r, err := recording.Open(path)
	check(t, err)
	t.Cleanup(func() { check(t, r.Close()) })
	store, player, _, err := replay.Open(r, replay.Options{Layout: server.StorageLayout()})
	check(t, err)
	s = levelwiretest.Start(t, func(c *server.Config) {
		c.ReadOnly, c.Logger = true, slog.New(slog.DiscardHandler)
		c.OpenStore = func(context.Context) (storage.Store, error) { return store, nil }
	})
	ctx, cancel := context.WithCancel(context.Background())
	var playing sync.WaitGroup
	playing.Go(func() { _ = player.Run(ctx) })
	t.Cleanup(func() { cancel(); playing.Wait() })
	return s, player
}

// consumer collects the events that one client gets.
type consumer struct {
	name   string
	events chan string
	// byObject says that the order of events of different objects is not kept.
	byObject bool
}

func newConsumer(name string) *consumer {
	return &consumer{name: name, events: make(chan string, 10_000)}
}

// compare takes as many events as are wanted and compares them.
func (c *consumer) compare(ctx context.Context, t *testing.T, want []string) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		select {
		case e := <-c.events:
			got = append(got, e)
		case <-ctx.Done():
			t.Fatalf("%s: %d events instead of %d", c.name, len(got), len(want))
		}
	}
	if c.byObject {
		want = slices.Clone(want)
		for _, list := range [][]string{got, want} {
			slices.SortStableFunc(list, func(a, b string) int { return strings.Compare(strings.Fields(a)[1], strings.Fields(b)[1]) })
		}
	}
	for i, e := range got {
		if e != want[i] {
			t.Fatalf("%s: event %d is %q, and %q was recorded", c.name, i, e, want[i])
		}
	}
}

// startStock starts an informer of client-go.
func startStock(ctx context.Context, t *testing.T, config *rest.Config, of schema.GroupVersionResource) *consumer {
	t.Helper()
	c := newConsumer("client-go's informer of " + of.Resource)
	factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(config), 0, informers.WithNamespace(namespace))
	generic, err := factory.ForResource(of)
	check(t, err)
	i := generic.Informer()
	_, err = i.AddEventHandler(clientcache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, isInInitialList bool) {
			if !isInInitialList {
				c.events <- describe("ADDED", o.(metav1.Object))
			}
		},
		UpdateFunc: func(_, o any) { c.events <- describe("MODIFIED", o.(metav1.Object)) },
		DeleteFunc: func(o any) { c.events <- describe("DELETED", o.(metav1.Object)) },
	})
	check(t, err)
	running, stop := context.WithCancel(ctx)
	factory.Start(running.Done())
	t.Cleanup(func() { stop(); factory.Shutdown() })
	if !clientcache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
		t.Fatal("client-go's informer has not synced")
	}
	return c
}

// startOurs starts an informer of Levelwire that merges no events.
func startOurs(ctx context.Context, t *testing.T, of *client.Client) *consumer {
	t.Helper()
	c := newConsumer("our informer")
	c.byObject = true // its DeltaFIFO is ordered by objects
	factory := informer.NewFactory(of, informer.Options{})
	i := informer.For[*corev1.Pod](factory, informer.ListOptions{Namespace: namespace})
	_, err := i.AddHandler(informer.HandlerFuncs[*corev1.Pod]{
		Add:    func(o *corev1.Pod, _ bool) { c.events <- describe("ADDED", o) },
		Update: func(_, o *corev1.Pod) { c.events <- describe("MODIFIED", o) },
		Delete: func(o *corev1.Pod, _ bool) { c.events <- describe("DELETED", o) },
	}, informer.HandlerOptions{MaxUnmergedEvents: 10_000})
	check(t, err)
	running, stop := context.WithCancel(ctx)
	factory.Start(running)
	t.Cleanup(func() { stop(); factory.Shutdown() })
	check(t, factory.WaitForSync(ctx))
	return c
}

// startKubectl starts kubectl get --watch; nil if there is no kubectl.
func startKubectl(ctx context.Context, t *testing.T, s *levelwiretest.Server, of schema.GroupVersionResource) *consumer {
	t.Helper()
	kubectl := os.Getenv("KUBECTL")
	if kubectl == "" {
		var err error
		if kubectl, err = exec.LookPath("kubectl"); err != nil {
			t.Log("there is no kubectl: put one into the PATH, or name it in KUBECTL")
			return nil
		}
	}
	c := newConsumer("kubectl's watch of " + of.Resource)
	running, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(running, kubectl, "--kubeconfig", s.Kubeconfig(), "--cache-dir", t.TempDir(), "--namespace", namespace,
		"get", of.GroupResource().String(), "--watch-only", "--output-watch-events", "--output=json")
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, childprocess.Start(cmd))
	var reading sync.WaitGroup
	reading.Go(func() {
		decoder := json.NewDecoder(bufio.NewReader(out))
		for {
			var e struct {
				Type   string
				Object metav1.PartialObjectMetadata
			}
			if decoder.Decode(&e) != nil {
				_, _ = io.Copy(io.Discard, out)
				return
			}
			c.events <- describe(e.Type, &e.Object)
		}
	})
	t.Cleanup(func() { stop(); reading.Wait(); _ = cmd.Wait() })
	return c
}

// awaitWatches waits until so many watches of a resource are open.
func awaitWatches(ctx context.Context, t *testing.T, s *levelwiretest.Server, of schema.GroupVersionResource, want int) {
	t.Helper()
	c := s.Client(client.Options{})
	for {
		answer, err := c.Raw(ctx, client.RawRequest{Path: "/metrics"})
		check(t, err)
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		_ = answer.Body.Close()
		if strings.Contains(string(text), fmt.Sprintf("apiserver_longrunning_requests{group=%q,resource=%q,version=%q} %d\n", of.Group, of.Resource, of.Version, want)) {
			return
		}
	}
}

// servers are those whose rollouts are recorded.
var servers = map[string]func(*testing.T) *client.Client{
	"levelwire": func(t *testing.T) *client.Client { return levelwiretest.Start(t).Client(client.Options{}) },
	"upstream": func(t *testing.T) *client.Client {
		etcd, err := upstream.StartEtcd(t.Context(), upstream.EtcdOptions{DataDir: t.TempDir()})
		check(t, err)
		t.Cleanup(etcd.Close)
		s, err := upstream.Start(context.Background(), upstream.Options{Etcd: etcd.Endpoint(), CertDir: t.TempDir(), Protobuf: true})
		check(t, err)
		t.Cleanup(func() { check(t, s.Stop()) })
		c, err := client.New(s.Config(), client.Options{})
		check(t, err)
		t.Cleanup(c.CloseIdleConnections)
		return c
	},
}

// TestReplayToClients: client-go's informers, ours and kubectl get from a replay what a watch of the
// recorded server got: the same events in the same order (our informers: of each object), with the same versions; of a recording that
// was cut off, the events before that.
func TestReplayToClients(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			path, want := recordRollout(ctx, t, start(t))
			if len(want) < 50 {
				t.Fatalf("the rollout had %d events", len(want))
			}
			t.Run("whole", func(t *testing.T) {
				if replayTo(ctx, t, path, want) != len(want) {
					t.Error("events are missing")
				}
			})
			t.Run("cut off", func(t *testing.T) {
				if n := replayTo(ctx, t, cutOff(t, path), want); n < len(want)/4 || n == len(want) {
					t.Errorf("there are %d of %d events before the cut", n, len(want))
				}
			})
		})
	}
}

// replayTo replays a file to all clients, which must get those of the events that it has, and returns
// how many these are.
func replayTo(ctx context.Context, t *testing.T, path string, want []string) int {
	t.Helper()
	s, player := replayed(t, path)
	consumers := []*consumer{startStock(ctx, t, s.Config(), pods), startOurs(ctx, t, s.Client(client.Options{}))}
	if kubectl := startKubectl(ctx, t, s, pods); kubectl != nil {
		consumers = append(consumers, kubectl)
	}
	awaitWatches(ctx, t, s, pods, len(consumers))
	check(t, player.Play(replay.MaxSpeed))
	last := player.Status().Last
	want = slices.DeleteFunc(slices.Clone(want), func(e string) bool { return versionOf(t, e) > last })
	for _, c := range consumers {
		c.compare(ctx, t, want)
	}
	return len(want)
}

// cutOff returns a copy of a recording that ends in the middle of its changes.
func cutOff(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	cut := filepath.Join(t.TempDir(), "cut.lwr")
	check(t, os.WriteFile(cut, data[:len(data)*9/10], 0o600))
	return cut
}
