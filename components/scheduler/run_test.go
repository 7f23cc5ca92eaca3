package scheduler_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/components/scheduler"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is how long anything may take before a test fails.
const testTimeout = 3 * time.Minute

// bench is a server and a client; nodes are objects only, as nothing has to
// run for a pod to be bound.
type bench struct {
	t      *testing.T
	ctx    context.Context
	server *levelwiretest.Server
	client *client.Client
	pods   client.Resource[*corev1.Pod]
}

func newBench(t *testing.T) *bench {
	t.Helper()
	// No node lifecycle controller runs here that would take new nodes' taint away.
	srv := levelwiretest.Start(t, func(c *server.Config) { c.DisableAdmissionPlugins = []string{"TaintNodesByCondition"} })
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	b := &bench{t: t, ctx: ctx, server: srv}
	b.client = b.connect()
	b.pods = client.For[*corev1.Pod](b.client).Namespace("default")
	return b
}

func (b *bench) connect() *client.Client {
	b.t.Helper()
	return b.server.Client(client.Options{ContentType: client.Protobuf})
}

// startScheduler returns what stops it without a goodbye.
func (b *bench) startScheduler() (stop func()) {
	b.t.Helper()
	return b.startSchedulerThrough(nil)
}

// startSchedulerThrough is startScheduler with a transport of the test's, unless it is nil.
func (b *bench) startSchedulerThrough(wrap func(http.RoundTripper) http.RoundTripper) (stop func()) {
	b.t.Helper()
	// It may do what the scheduler may, so that each test fails if it needs more.
	c, err := client.New(b.server.UserConfig("system:kube-scheduler"), client.Options{ContentType: client.Protobuf, WrapTransport: wrap})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.CloseIdleConnections)
	s, err := scheduler.New(c, scheduler.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Run(ctx); err != nil && ctx.Err() == nil {
			b.t.Errorf("scheduler: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) createNode(name, cpu string) {
	b.t.Helper()
	_, err := client.For[*corev1.Node](b.client).Create(b.ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("100"),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) createPod(name, cpu string, change ...func(*corev1.Pod)) {
	b.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "c:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	for _, f := range change {
		f(pod)
	}
	_, err := b.pods.Create(b.ctx, pod, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

// await watches all pods until together they are as wanted.
func (b *bench) await(what string, wanted func(map[string]*corev1.Pod) bool) {
	b.t.Helper()
	list, err := b.pods.List(b.ctx, metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	all := map[string]*corev1.Pod{}
	for _, pod := range list.Items {
		all[pod.Name] = pod
	}
	w, err := b.pods.Watch(b.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		b.t.Fatal(err)
	}
	defer w.Close()
	for !wanted(all) {
		ev, err := w.Next()
		if err != nil {
			b.t.Fatalf("waited in vain for %s: %v", what, err)
		}
		all[ev.Object.Name] = ev.Object
	}
}

func (b *bench) awaitBound(names ...string) {
	b.t.Helper()
	b.await("bound: "+strings.Join(names, ", "), func(all map[string]*corev1.Pod) bool {
		for _, name := range names {
			if all[name] == nil || all[name].Spec.NodeName == "" {
				return false
			}
		}
		return true
	})
}

func (b *bench) awaitRefused(name, why string) {
	b.t.Helper()
	b.await(name+" refused", func(all map[string]*corev1.Pod) bool {
		c := scheduled(all[name])
		return c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && c.Message == why
	})
}

func scheduled(pod *corev1.Pod) corev1.PodCondition {
	if pod != nil {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				return c
			}
		}
	}
	return corev1.PodCondition{}
}

const full = "0/1 nodes are available: 1 Insufficient cpu."

func TestPodWaitsForRoom(t *testing.T) {
	ways := map[string]func(b *bench){
		"a node comes": func(b *bench) { b.createNode("second", "2") },
		"a pod goes": func(b *bench) {
			now := int64(0)
			if err := b.pods.Delete(b.ctx, "first", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				b.t.Fatal(err)
			}
		},
		"a pod ends": func(b *bench) {
			pod, err := b.pods.Get(b.ctx, "first", metav1.GetOptions{})
			if err != nil {
				b.t.Fatal(err)
			}
			pod.Status.Phase = corev1.PodSucceeded
			if _, err := b.pods.UpdateStatus(b.ctx, pod, metav1.UpdateOptions{}); err != nil {
				b.t.Fatal(err)
			}
		},
	}
	for name, room := range ways {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.createNode("only", "2")
			b.startScheduler()
			b.createPod("first", "2")
			b.awaitBound("first")
			b.createPod("second", "1")
			b.awaitRefused("second", full)
			room(b)
			b.awaitBound("second")
			b.await("the condition", func(all map[string]*corev1.Pod) bool {
				c := scheduled(all["second"])
				return c.Status == corev1.ConditionTrue && c.Reason == "" && c.Message == ""
			})
		})
	}
}

// A condition's time is since when it holds, not since when it has its message.
func TestRefusalKeepsItsTime(t *testing.T) {
	b := newBench(t)
	b.createPod("p", "1")
	past := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	pod, err := b.pods.Get(b.ctx, "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "before", LastTransitionTime: past,
	}}
	if _, err := b.pods.UpdateStatus(b.ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.startScheduler()
	b.awaitRefused("p", "no nodes available to schedule pods")
	pod, err = b.pods.Get(b.ctx, "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := scheduled(pod); !c.LastTransitionTime.Equal(&past) {
		t.Errorf("%+v, want since %s", c, past)
	}
}

// TestRestartedSchedulerNeverOverfills restarts it while pods come in. Each
// time it must have seen what is bound before it decides.
func TestRestartedSchedulerNeverOverfills(t *testing.T) {
	b := newBench(t)
	const room = 30
	b.createNode("only", fmt.Sprint(room))
	bound := func(all map[string]*corev1.Pod) (n int) {
		for _, pod := range all {
			if pod.Spec.NodeName != "" {
				n++
			}
		}
		return n
	}
	for round := range 6 {
		for i := range 10 {
			b.createPod(fmt.Sprintf("p%d-%d", round, i), "1")
		}
		stop := b.startScheduler()
		b.await("progress", func(all map[string]*corev1.Pod) bool { return bound(all) >= min(room, 5*round+1) })
		stop()
	}
	b.startScheduler()
	b.await("all decided", func(all map[string]*corev1.Pod) bool {
		refused := 0
		for _, pod := range all {
			if pod.Spec.NodeName == "" && scheduled(pod).Message == full {
				refused++
			}
		}
		if bound(all) > room {
			t.Fatalf("%d pods on a node for %d", bound(all), room)
		}
		return bound(all) == room && refused == 60-room
	})
}

// Of pods that wait together the most important gets the only room, however
// late it came.
func TestImportantPodsGoFirst(t *testing.T) {
	b := newBench(t)
	classes := client.For[*schedulingv1.PriorityClass](b.client)
	for i := range 5 {
		name := fmt.Sprint("pod-", i)
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: int32(i)}
		if _, err := classes.Create(b.ctx, class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.createPod(name, "1", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = name })
	}
	b.createNode("small", "1")
	b.startScheduler()
	b.await("one bound", func(all map[string]*corev1.Pod) bool {
		for name, pod := range all {
			if pod.Spec.NodeName != "" {
				if name != "pod-4" {
					t.Fatalf("%s got the room", name)
				}
				return true
			}
		}
		return false
	})
}

// TestImportantPodTakesThePlaceOfAnother: if a pod fits nowhere, one that is less important is deleted, which says why, and the
// room is the pod's when it has left, although another one waits for it. A pod that may not have others deleted waits.
func TestImportantPodTakesThePlaceOfAnother(t *testing.T) {
	b := newBench(t)
	classes := client.For[*schedulingv1.PriorityClass](b.client)
	for name, value := range map[string]int32{"low": 1, "middle": 2, "high": 3, "polite": 3} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if name == "polite" {
			class.PreemptionPolicy = new(corev1.PreemptNever)
		}
		if _, err := classes.Create(b.ctx, class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ofClass := func(name string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = name }
	}
	b.createNode("small", "2")
	b.startScheduler()
	b.createPod("victim", "1", ofClass("low"))
	b.createPod("stays", "1", ofClass("middle"))
	b.awaitBound("victim", "stays")
	b.createPod("polite", "1", ofClass("polite"))
	b.await("the polite pod waits", func(all map[string]*corev1.Pod) bool {
		return all["polite"] != nil && len(all["polite"].Status.Conditions) > 0
	})
	b.createPod("waits", "1", ofClass("low"))
	b.createPod("high", "1", ofClass("high"))
	b.await("the victim is deleted", func(all map[string]*corev1.Pod) bool {
		return all["victim"].DeletionTimestamp != nil && all["high"].Status.NominatedNodeName == "small"
	})
	victim, err := b.pods.Get(b.ctx, "victim", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(victim.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
	}) {
		t.Errorf("the victim says %+v", victim.Status.Conditions)
	}
	now := int64(0) // as its kubelet does
	if err := b.pods.Delete(b.ctx, "victim", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	b.awaitBound("high")
	for _, name := range []string{"stays", "waits", "polite"} {
		pod, err := b.pods.Get(b.ctx, name, metav1.GetOptions{})
		if err != nil || pod.DeletionTimestamp != nil || (pod.Spec.NodeName != "") != (name == "stays") {
			t.Errorf("%s: %+v, %v", name, pod, err)
		}
	}
}

// TestNominationThatEnds: when no preemption helps a pod any more, its status names no node.
func TestNominationThatEnds(t *testing.T) {
	b := newBench(t)
	classes := client.For[*schedulingv1.PriorityClass](b.client)
	if _, err := classes.Create(b.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 3}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.createNode("small", "2")
	b.startScheduler()
	b.createPod("victim", "2")
	b.awaitBound("victim")
	b.createPod("high", "2", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "high" })
	b.await("the pod is nominated", func(all map[string]*corev1.Pod) bool {
		return all["high"] != nil && all["high"].Status.NominatedNodeName == "small"
	})
	if err := client.For[*corev1.Node](b.client).Delete(b.ctx, "small", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.createNode("tiny", "1") // pods that wait are tried again
	b.await("the pod is nominated for no node", func(all map[string]*corev1.Pod) bool {
		return all["high"].Status.NominatedNodeName == "" && all["high"].Spec.NodeName == ""
	})
}

// roundTripper is a function as a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestBindingThatFailsKeepsItsRoom: when the binding of a pod fails for which another one has left, no pod takes the room that it
// would have to leave again.
func TestBindingThatFailsKeepsItsRoom(t *testing.T) {
	b := newBench(t)
	classes := client.For[*schedulingv1.PriorityClass](b.client)
	if _, err := classes.Create(b.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 3}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.createNode("small", "2")
	refused, asked := make(chan struct{}, 1), make(chan string, 1)
	var heard atomic.Bool // what became of the pod that comes later
	b.startSchedulerThrough(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if name, of := path.Base(path.Dir(r.URL.Path)), path.Base(r.URL.Path); name == "comes" && heard.CompareAndSwap(false, true) {
				asked <- of
			} else if name == "high" && of == "binding" && !heard.Load() {
				select {
				case refused <- struct{}{}:
				default:
				}
				return &http.Response{
					StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
					Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)),
				}, nil
			}
			return next.RoundTrip(r)
		})
	})
	b.createPod("victim", "2")
	b.awaitBound("victim")
	b.createPod("high", "2", func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "high" })
	b.await("the victim is deleted", func(all map[string]*corev1.Pod) bool { return all["victim"].DeletionTimestamp != nil })
	now := int64(0) // as its kubelet does
	if err := b.pods.Delete(b.ctx, "victim", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-refused:
	case <-b.ctx.Done():
		t.Fatal("the pod is not bound")
	}
	b.createPod("comes", "2")
	select {
	case of := <-asked:
		if of != "status" {
			t.Fatalf("of the other pod, its %s is written", of)
		}
	case <-b.ctx.Done():
		t.Fatal("the other pod is not looked at")
	}
	b.awaitBound("high")
}
