package kubelet_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/kubelet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is how long anything may take before a test fails.
const testTimeout = 3 * time.Minute

// station is a server and a client; kubelets are for the test to start.
type station struct {
	t      *testing.T
	ctx    context.Context
	server *levelwiretest.Server
	pods   client.Resource[*corev1.Pod]
	nodes  client.Resource[*corev1.Node]
}

func newStation(t *testing.T) *station {
	t.Helper()
	srv := levelwiretest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	s := &station{t: t, ctx: ctx, server: srv}
	c := s.connect()
	s.pods, s.nodes = client.For[*corev1.Pod](c).Namespace("default"), client.For[*corev1.Node](c)
	return s
}

func (s *station) connect() *client.Client {
	s.t.Helper()
	return s.server.Client(client.Options{ContentType: client.Protobuf})
}

// startNode runs a kubelet, and returns what stops it without a goodbye.
func (s *station) startNode(change func(*kubelet.Options)) (stop func()) {
	s.t.Helper()
	opts := kubelet.Options{
		NodeName: "n", LeaseDuration: time.Second, Logger: slog.New(slog.DiscardHandler),
		StartAfter: time.Millisecond, StopAfter: time.Millisecond, RunFor: time.Millisecond,
	}
	if change != nil {
		change(&opts)
	}
	// It may do what kubelets may, so that each test fails if it needs more.
	c, err := client.New(s.server.UserConfig("system:node:"+opts.NodeName, "system:nodes"), client.Options{ContentType: client.Protobuf})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.CloseIdleConnections)
	k, err := kubelet.New(c, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := k.Run(ctx); err != nil && ctx.Err() == nil {
			s.t.Errorf("kubelet: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	s.t.Cleanup(stop)
	return stop
}

func (s *station) create(name string, change func(*corev1.Pod)) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "c:1"}}},
	}
	if change != nil {
		change(pod)
	}
	created, err := s.pods.Create(s.ctx, pod, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return created
}

// await watches one object until it is as wanted or, with gone, until it does
// not exist.
func await[T client.Object](s *station, api client.Resource[T], name, what string, wanted func(T) bool, gone bool) T {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, testTimeout)
	defer cancel()
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	list, err := api.List(ctx, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	var last T
	for _, last = range list.Items {
		if !gone && wanted(last) {
			return last
		}
	}
	if gone && len(list.Items) == 0 {
		return last
	}
	opts.ResourceVersion = list.ResourceVersion
	w, err := api.Watch(ctx, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Close()
	for {
		ev, err := w.Next()
		if err != nil {
			s.t.Fatalf("%s: waited in vain until %s: %v; last seen: %+v", name, what, err, last)
		}
		last = ev.Object
		if gone && ev.Type == watch.Deleted || !gone && ev.Type != watch.Deleted && wanted(last) {
			return last
		}
	}
}

func (s *station) awaitPod(name, what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	s.t.Helper()
	return await(s, s.pods, name, what, wanted, false)
}

func (s *station) awaitGone(name string) {
	s.t.Helper()
	await(s, s.pods, name, "gone", nil, true)
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func ready(pod *corev1.Pod) bool {
	return condition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == phase }
}

func TestPodRunsAndGoes(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	first := s.create("p", nil)
	pod := s.awaitPod("p", "ready", ready)
	if c := condition(pod, corev1.PodReadyToStartContainers); c.Status != corev1.ConditionTrue {
		t.Errorf("a pod that runs is not ready to start containers: %+v", c)
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Reason != "" || c.Message != "") {
			t.Errorf("%s is true, and says why it is not: %q %q", c.Type, c.Reason, c.Message)
		}
	}
	if err := s.pods.Delete(s.ctx, "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitGone("p")
	s.create("p", nil)
	again := s.awaitPod("p", "ready", ready)
	if again.UID == first.UID {
		t.Error("the deleted pod is still there")
	}
}

// A pod that takes its time to stop is there, Terminating, until it has
// stopped; one that is deleted at once is not waited for.
func TestGraceIsHonoured(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	slow := func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{kubelet.AnnotationStopAfter: "1h"}
	}
	s.create("slow", slow)
	s.awaitPod("slow", "ready", ready)
	// The pod may be gone before a watch that begins after the deletion.
	list, err := s.pods.List(s.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.pods.Watch(s.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	grace := int64(1)
	begin := time.Now()
	if err := s.pods.Delete(s.ctx, "slow", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Fatal(err)
	}
	for terminating := false; !terminating; {
		event, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == watch.Deleted {
			t.Fatal("it is gone at once")
		}
		terminating = event.Object.DeletionTimestamp != nil
	}
	s.awaitGone("slow")
	if took := time.Since(begin); took < time.Second {
		t.Errorf("gone after %s, with a second of grace", took)
	}
}

func TestPodsEndAsTheyAreTold(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	for name, c := range map[string]struct {
		code  string
		phase corev1.PodPhase
	}{"good": {"0", corev1.PodSucceeded}, "bad": {"3", corev1.PodFailed}} {
		s.create(name, func(pod *corev1.Pod) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod.Annotations = map[string]string{kubelet.AnnotationRunFor: "1ms", kubelet.AnnotationExitCode: c.code}
		})
		pod := s.awaitPod(name, string(c.phase), inPhase(c.phase))
		if ended := pod.Status.ContainerStatuses[0].State.Terminated; ended == nil || fmt.Sprint(ended.ExitCode) != c.code {
			t.Errorf("%s: %+v", name, pod.Status.ContainerStatuses)
		}
	}
}

// A command that is plain is done, and an image that cannot exist is not pulled, which events say.
func TestPodsDoWhatTheirSpecSays(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	s.create("exits", func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers[0].Command = []string{"sh", "-c", "sleep 0.01; exit 3"}
	})
	pod := s.awaitPod("exits", "failed", inPhase(corev1.PodFailed))
	if ended := pod.Status.ContainerStatuses[0].State.Terminated; ended == nil || ended.ExitCode != 3 {
		t.Errorf("%+v", pod.Status.ContainerStatuses)
	}
	s.create("missing", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "web:404" })
	waits := func(pod *corev1.Pod) bool {
		all := pod.Status.ContainerStatuses
		return len(all) == 1 && all[0].State.Waiting != nil && all[0].State.Waiting.Reason == "ErrImagePull"
	}
	if pod := s.awaitPod("missing", "waits for its image", waits); pod.Status.Phase != corev1.PodPending || ready(pod) {
		t.Errorf("%+v", pod.Status)
	}
	mended := `{"spec":{"containers":[{"name":"c","image":"web:1"}]}}`
	if _, err := s.pods.Patch(s.ctx, "missing", types.StrategicMergePatchType, []byte(mended), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitPod("missing", "ready", ready)
}

// Who holds a deleted pod by a finalizer sees how it ended: a Job counts by
// that (KEP-3329).
func TestDeletedPodEndsBeforeItGoes(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	for policy, phase := range map[corev1.RestartPolicy]corev1.PodPhase{
		corev1.RestartPolicyAlways: corev1.PodSucceeded, corev1.RestartPolicyNever: corev1.PodFailed,
	} {
		name := strings.ToLower(string(policy))
		s.create(name, func(pod *corev1.Pod) {
			pod.Finalizers = []string{"example.com/hold"}
			pod.Spec.RestartPolicy = policy
		})
		s.awaitPod(name, "ready", ready)
		if err := s.pods.Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.awaitPod(name, string(phase), inPhase(phase))
		if _, err := s.pods.Patch(s.ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.awaitGone(name)
	}
}

// Pods that have ended do not use up the node's addresses.
func TestEndedPodsGiveTheirAddressesBack(t *testing.T) {
	s := newStation(t)
	s.startNode(func(o *kubelet.Options) { o.PodCIDR = netip.MustParsePrefix("10.9.0.0/28") })
	for i := range 20 {
		name := fmt.Sprint("p", i)
		s.create(name, func(pod *corev1.Pod) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod.Annotations = map[string]string{kubelet.AnnotationRunFor: "1ms"}
		})
		s.awaitPod(name, "succeeded", inPhase(corev1.PodSucceeded))
	}
}

// TestRestart: what ran runs on, what was deleted meanwhile goes, what was
// bound meanwhile starts, and no address is given twice.
func TestRestart(t *testing.T) {
	s := newStation(t)
	stop := s.startNode(nil)
	for _, name := range []string{"stays", "goes"} {
		s.create(name, nil)
	}
	before := s.awaitPod("stays", "ready", ready)
	s.awaitPod("goes", "ready", ready)
	stop()
	if err := s.pods.Delete(s.ctx, "goes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.create("new", nil)
	s.startNode(nil)
	s.awaitGone("goes")
	fresh := s.awaitPod("new", "ready", ready)
	after := s.awaitPod("stays", "ready", ready)
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a pod that ran was written again: %+v", after.Status)
	}
	if fresh.Status.PodIP == after.Status.PodIP {
		t.Errorf("two pods have %s", fresh.Status.PodIP)
	}
}

// A node that was silent for long finds its pods marked not ready by others.
func TestReadinessIsTheKubeletsToTell(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	s.create("p", nil)
	s.awaitPod("p", "ready", ready)
	mark := `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeNotReady","message":"Node is not ready"}]}}`
	if _, err := s.pods.Patch(s.ctx, "p", types.StrategicMergePatchType, []byte(mark), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	pod := s.awaitPod("p", "ready again", ready)
	if c := condition(pod, corev1.PodReady); c.Reason != "" || c.Message != "" {
		t.Errorf("ready, but %q %q", c.Reason, c.Message)
	}
}

// A pod whose port another one of the node has is refused, also by a kubelet that was restarted. When that one has gone, the
// next is taken, even if it has the same name.
func TestPodWhosePortIsTakenIsRefused(t *testing.T) {
	s := newStation(t)
	stop := s.startNode(nil)
	onPort := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	}
	s.create("first", onPort)
	s.awaitPod("first", "ready", ready)
	refused := func(name string) {
		t.Helper()
		s.create(name, onPort)
		pod := s.awaitPod(name, "failed", inPhase(corev1.PodFailed))
		if pod.Status.Reason != "NodePorts" || pod.Status.ObservedGeneration != 1 || pod.Status.StartTime == nil || len(pod.Status.ContainerStatuses) > 0 {
			t.Errorf("%s: %+v", name, pod.Status)
		}
	}
	refused("second")
	stop()
	s.startNode(nil)
	refused("third")
	if err := s.pods.Delete(s.ctx, "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaitGone("first")
	s.create("first", onPort)
	s.awaitPod("first", "ready", ready)
}

// What has just become true of the node counts for a pod that is bound for it.
func TestPodFollowsItsNodesLabel(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	await(s, s.nodes, "n", "registered", func(*corev1.Node) bool { return true }, false)
	for i := range 5 {
		name := fmt.Sprint("p", i)
		if _, err := s.nodes.Patch(s.ctx, "n", types.MergePatchType, []byte(`{"metadata":{"labels":{"for":"`+name+`"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.create(name, func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"for": name} })
		s.awaitPod(name, "ready", ready)
	}
	s.create("elsewhere", func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"for": "nobody"} })
	if pod := s.awaitPod("elsewhere", "failed", inPhase(corev1.PodFailed)); pod.Status.Reason != "NodeAffinity" {
		t.Errorf("%+v", pod.Status)
	}
}

// A pod that asks for more gets it at once, or when another one gives it back, and its status says so.
func TestPodIsResized(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	asking := func(cpu string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
	}
	s.create("large", asking("20"))
	s.awaitPod("large", "ready", ready)
	s.create("p", asking("1"))
	s.awaitPod("p", "ready", ready)
	resize := func(cpu string) {
		t.Helper()
		patch := `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}`
		if _, err := s.pods.Patch(s.ctx, "p", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize"); err != nil {
			t.Fatal(err)
		}
	}
	has := func(cpu, pending string) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool {
			status := pod.Status.ContainerStatuses[0]
			return pod.Status.ObservedGeneration == pod.Generation && status.AllocatedResources.Cpu().String() == cpu && status.Resources.Requests.Cpu().String() == cpu &&
				condition(pod, corev1.PodResizePending).Reason == pending
		}
	}
	resize("2")
	s.awaitPod("p", "resized", has("2", ""))
	resize("30")
	s.awaitPod("p", "deferred", has("2", "Deferred"))
	if err := s.pods.Delete(s.ctx, "large", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if pod := s.awaitPod("p", "resized", has("30", "")); !ready(pod) || pod.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("%+v", pod.Status)
	}
}

// The time that a pod may be active can be set while it runs.
func TestDeadlineOfARunningPod(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	s.create("p", nil)
	s.awaitPod("p", "ready", ready)
	if _, err := s.pods.Patch(s.ctx, "p", types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":1}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := s.awaitPod("p", "failed", inPhase(corev1.PodFailed))
	if pod.Status.Reason != "DeadlineExceeded" || pod.Status.ObservedGeneration != 2 || ready(pod) || pod.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("%+v", pod.Status)
	}
}

// The status names the generation of the spec that it follows from, and so do its conditions, from the first one on.
func TestGenerationIsObserved(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	s.create("p", nil)
	observes := func(generation int64) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool {
			return pod.Generation == generation && pod.Status.ObservedGeneration == generation && condition(pod, corev1.PodReady).ObservedGeneration == generation
		}
	}
	if pod := s.awaitPod("p", "ready", ready); !observes(1)(pod) {
		t.Errorf("generation %d: %+v", pod.Generation, pod.Status)
	}
	for _, spec := range []string{
		`{"activeDeadlineSeconds":5000}`, `{"activeDeadlineSeconds":4999}`, `{"containers":[{"name":"c","image":"c:2"}]}`, `{"tolerations":[{"key":"a","operator":"Exists"}]}`,
	} {
		if _, err := s.pods.Patch(s.ctx, "p", types.StrategicMergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if pod := s.awaitPod("p", "observed", observes(5)); !ready(pod) {
		t.Errorf("%+v", pod.Status)
	}
}

func TestReadinessGateIsFollowed(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	s.create("p", func(pod *corev1.Pod) {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "lb"}}
	})
	s.awaitPod("p", "running and not ready", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning && !ready(pod) })
	for _, open := range []bool{true, false} {
		status := map[bool]string{true: "True", false: "False"}[open]
		patch := `{"status":{"conditions":[{"type":"lb","status":"` + status + `"}]}}`
		if _, err := s.pods.Patch(s.ctx, "p", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		s.awaitPod("p", "ready by its gate", func(pod *corev1.Pod) bool { return ready(pod) == open })
	}
}

func TestDeletedNodeComesBack(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	before := await(s, s.nodes, "n", "registered", func(*corev1.Node) bool { return true }, false)
	if err := s.nodes.Delete(s.ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(s, s.nodes, "n", "registered anew", func(node *corev1.Node) bool { return node.UID != before.UID }, false)
}

// TestLeaseIsRenewedOverOthersChanges: the lease goes on being renewed when another client
// has written or deleted it.
func TestLeaseIsRenewedOverOthersChanges(t *testing.T) {
	s := newStation(t)
	s.startNode(nil)
	leases := client.For[*coordinationv1.Lease](s.connect()).Namespace(corev1.NamespaceNodeLease)
	renewed := func(after *coordinationv1.Lease) *coordinationv1.Lease {
		t.Helper()
		return await(s, leases, "n", "renewed", func(l *coordinationv1.Lease) bool {
			return after == nil || l.Spec.RenewTime.After(after.Spec.RenewTime.Time)
		}, false)
	}
	lease := renewed(renewed(nil))
	if _, err := leases.Patch(s.ctx, "n", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if lease = renewed(renewed(lease)); lease.Labels["a"] != "b" || *lease.Spec.HolderIdentity != "n" {
		t.Errorf("the lease became %v", lease)
	}
	if err := leases.Delete(s.ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if anew := renewed(lease); anew.UID == lease.UID {
		t.Error("the deleted lease is still there")
	}
}

// TestStartingIsBounded: kubelets that share a bound start one after the other, and all do.
func TestStartingIsBounded(t *testing.T) {
	s := newStation(t)
	starting := make(chan struct{}, 1)
	starting <- struct{}{} // another one is starting
	names := []string{"n1", "n2", "n3"}
	for _, name := range names {
		s.startNode(func(o *kubelet.Options) { o.NodeName, o.Starting = name, starting })
	}
	s.startNode(nil) // one without that bound, which has registered when they could have
	await(s, s.nodes, "n", "registered", func(*corev1.Node) bool { return true }, false)
	if list, err := s.nodes.List(s.ctx, metav1.ListOptions{}); err != nil || len(list.Items) > 1 {
		t.Fatalf("%d nodes have registered meanwhile (%v)", len(list.Items)-1, err)
	}
	<-starting
	for _, name := range names {
		await(s, s.nodes, name, "registered", func(*corev1.Node) bool { return true }, false)
	}
}
