package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	clientgocache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/levelwire/levelwire/adapters/clientgo"
	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout is how long anything may take before a test fails.
const testTimeout = 3 * time.Minute

// fixture is a server with an informer of its ConfigMaps, not started.
type fixture struct {
	ctx     context.Context
	api     client.Resource[*corev1.ConfigMap]
	factory *informer.Factory
	ours    *informer.SharedInformer[*corev1.ConfigMap]
	theirs  clientgocache.SharedIndexInformer
}

func prepare(t *testing.T, opts informer.Options) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	c := levelwiretest.Start(t).Client(client.Options{})
	f := &fixture{ctx: ctx, api: client.For[*corev1.ConfigMap](c).Namespace("default"), factory: informer.NewFactory(c, opts)}
	t.Cleanup(f.factory.Shutdown)
	f.ours = informer.For[*corev1.ConfigMap](f.factory, informer.ListOptions{Namespace: "default", LabelSelector: "color"})
	f.theirs = clientgo.SharedIndexInformer(f.ours)
	return f
}

func (f *fixture) start(t *testing.T) {
	t.Helper()
	f.factory.Start(f.ctx)
	if !clientgocache.WaitForCacheSync(f.ctx.Done(), f.theirs.HasSynced) || !clientgocache.WaitFor(f.ctx, "", f.theirs.HasSyncedChecker()) {
		t.Fatal("never synced")
	}
}

func (f *fixture) create(t *testing.T, name, color string) *corev1.ConfigMap {
	t.Helper()
	created, err := f.api.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"color": color}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func TestClientGosListersReadTheLocalCopy(t *testing.T) {
	f := prepare(t, informer.Options{})
	red := f.create(t, "a", "red")
	f.create(t, "b", "blue")
	f.start(t)
	lister := corelisters.NewConfigMapLister(f.theirs.GetIndexer()).ConfigMaps("default")
	got, err := lister.Get("a")
	if err != nil || got.UID != red.UID {
		t.Errorf("Get: %v, %v", got, err)
	}
	if _, err := lister.Get("none"); !apierrors.IsNotFound(err) {
		t.Errorf("Get of what is not there: %v", err)
	}
	found, err := lister.List(labels.SelectorFromSet(labels.Set{"color": "blue"}))
	if err != nil || len(found) != 1 || found[0].Name != "b" {
		t.Errorf("List: %v, %v", found, err)
	}
	generic := clientgo.GenericInformer(f.ours, corev1.Resource("configmaps"))
	if obj, err := generic.Lister().ByNamespace("default").Get("a"); err != nil || obj.(*corev1.ConfigMap).UID != red.UID {
		t.Errorf("the generic lister: %v, %v", obj, err)
	}
	if !generic.Informer().HasSynced() {
		t.Error("the generic informer is another one")
	}
}

// A controller as people write them for client-go: its handlers feed client-go's
// work queue, its worker reads through client-go's lister.
func TestControllerOfClientGoRuns(t *testing.T) {
	f := prepare(t, informer.Options{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	enqueue := func(obj any) {
		key, err := clientgocache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			t.Error(err)
		}
		queue.Add(key)
	}
	registration, err := f.theirs.AddEventHandler(clientgocache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.create(t, "before", "red")
	f.start(t)
	if !clientgocache.WaitFor(f.ctx, "", registration.HasSyncedChecker()) || !registration.HasSynced() {
		t.Fatal("the handler is never synced")
	}
	lister := corelisters.NewConfigMapLister(f.theirs.GetIndexer())
	states := make(chan string, 100)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		for {
			key, shutdown := queue.Get()
			if shutdown {
				return
			}
			namespace, name, _ := clientgocache.SplitMetaNamespaceKey(key)
			cm, err := lister.ConfigMaps(namespace).Get(name)
			switch {
			case apierrors.IsNotFound(err):
				states <- name + " is gone"
			case err == nil:
				states <- name + " is " + cm.Labels["color"]
			}
			queue.Done(key)
		}
	}()
	await := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-states:
				if got == want {
					return
				}
			case <-f.ctx.Done():
				t.Fatalf("the controller never saw that %s", want)
			}
		}
	}
	await("before is red")
	cm := f.create(t, "a", "red")
	await("a is red")
	cm.Labels["color"] = "blue"
	if _, err := f.api.Update(f.ctx, cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("a is blue")
	if err := f.api.Delete(f.ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("a is gone")
	queue.ShutDown()
	<-worked
}

func TestHandlersSayWhetherTheyWantResyncs(t *testing.T) {
	const period = 20 * time.Millisecond
	f := prepare(t, informer.Options{Resync: period})
	f.create(t, "a", "red")
	resyncs := map[string]chan struct{}{}
	own, never := 2*period, time.Duration(0)
	for name, options := range map[string]clientgocache.HandlerOptions{
		"factory's": {}, "own": {ResyncPeriod: &own}, "never": {ResyncPeriod: &never},
	} {
		events := make(chan struct{}, 1000)
		resyncs[name] = events
		if _, err := f.theirs.AddEventHandlerWithOptions(clientgocache.ResourceEventHandlerFuncs{
			UpdateFunc: func(any, any) { events <- struct{}{} },
		}, options); err != nil {
			t.Fatal(err)
		}
	}
	f.start(t)
	for _, name := range []string{"factory's", "own"} {
		select {
		case <-resyncs[name]:
		case <-f.ctx.Done():
			t.Errorf("the handler with the period that is %s got no resync", name)
		}
	}
	if len(resyncs["never"]) > 0 {
		t.Error("a handler that wants no resyncs got one")
	}
}

func TestRemovedHandlerIsNotCalled(t *testing.T) {
	f := prepare(t, informer.Options{})
	events := make(chan string, 100)
	handler := func(name string) clientgocache.ResourceEventHandler {
		return clientgocache.ResourceEventHandlerDetailedFuncs{AddFunc: func(obj any, initial bool) {
			events <- fmt.Sprintf("%s: %s %t", name, obj.(*corev1.ConfigMap).Name, initial)
		}}
	}
	removed, err := f.theirs.AddEventHandler(handler("removed"))
	if err != nil {
		t.Fatal(err)
	}
	stays, err := f.theirs.AddEventHandlerWithResyncPeriod(handler("stays"), 0)
	if err != nil {
		t.Fatal(err)
	}
	other := prepare(t, informer.Options{})
	if err := other.theirs.RemoveEventHandler(stays); err == nil {
		t.Error("the handler of another informer was removed")
	}
	for range 2 { // twice is harmless
		if err := clientgo.SharedIndexInformer(f.ours).RemoveEventHandler(removed); err != nil {
			t.Error(err)
		}
	}
	f.create(t, "a", "red")
	f.start(t)
	if got := <-events; got != "stays: a true" {
		t.Errorf("got %q", got)
	}
	if _, err := f.theirs.AddEventHandler(nil); err == nil {
		t.Error("no handler was accepted")
	}
}

func TestWhatCannotBeSaysSo(t *testing.T) {
	f := prepare(t, informer.Options{})
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}
	store := f.theirs.GetStore()
	for what, err := range map[string]error{
		"Add": store.Add(obj), "Update": store.Update(obj), "Delete": store.Delete(obj), "Replace": store.Replace(nil, ""),
		"SetWatchErrorHandler":            f.theirs.SetWatchErrorHandler(nil),
		"SetWatchErrorHandlerWithContext": f.theirs.SetWatchErrorHandlerWithContext(nil),
	} {
		if !errors.Is(err, clientgo.ErrNotSupported) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := store.Resync(); err != nil {
		t.Error(err)
	}
	store.Bookmark("7")
	if got := store.LastStoreSyncResourceVersion(); got != "" {
		t.Errorf("a bookmark from outside moved the version to %q", got)
	}
}

func TestIndexes(t *testing.T) {
	f := prepare(t, informer.Options{})
	byColor := func(obj any) ([]string, error) { return []string{obj.(*corev1.ConfigMap).Labels["color"]}, nil }
	if err := f.theirs.AddIndexers(clientgocache.Indexers{"color": byColor}); err != nil {
		t.Fatal(err)
	}
	red := f.create(t, "a", "red")
	f.create(t, "b", "blue")
	f.start(t)
	x := f.theirs.GetIndexer()
	names := func(objs []any, err error) string {
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, obj := range objs {
			names = append(names, obj.(*corev1.ConfigMap).Name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	keys, keysErr := x.IndexKeys("color", "blue")
	listed := x.ListKeys()
	slices.Sort(listed)
	values := x.ListIndexFuncValues("color")
	slices.Sort(values)
	functions := x.GetIndexers()
	ofRed, _ := functions["color"](red)
	byKey, exists, _ := x.GetByKey("default/a")
	_, none, _ := x.GetByKey("default/none")
	byObject, _, _ := x.Get(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	for _, c := range []struct{ what, got, want string }{
		{"List", names(x.List(), nil), "a b"},
		{"ListKeys", fmt.Sprint(listed), "[default/a default/b]"},
		{"ByIndex", names(x.ByIndex("color", "red")), "a"},
		{"ByIndex, namespace", names(x.ByIndex(clientgocache.NamespaceIndex, "default")), "a b"},
		{"Index", names(x.Index("color", red)), "a"},
		{"IndexKeys", fmt.Sprint(keys, keysErr), "[default/b] <nil>"},
		{"ListIndexFuncValues", fmt.Sprint(values), "[blue red]"},
		{"GetIndexers", fmt.Sprint(len(functions), ofRed), "2 [red]"},
		{"GetByKey", fmt.Sprint(byKey.(*corev1.ConfigMap).UID == red.UID, exists, none), "true true false"},
		{"Get", fmt.Sprint(byObject.(*corev1.ConfigMap).UID == red.UID), "true"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
	if item, exists, err := x.GetByKey("default/none"); item != nil || exists || err != nil {
		t.Errorf("what is not there: %v, %v, %v", item, exists, err)
	}
	for what, err := range map[string]error{
		"a name that is taken":    f.theirs.AddIndexers(clientgocache.Indexers{"color": byColor}),
		"no function":             f.theirs.AddIndexers(clientgocache.Indexers{"x": nil}),
		"another type":            func() error { _, err := x.Index("color", &corev1.Pod{}); return err }(),
		"no such index":           func() error { _, err := x.ByIndex("none", ""); return err }(),
		"an object without a key": func() error { _, _, err := x.Get(7); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if x.ListIndexFuncValues("none") != nil {
		t.Error("an index that does not exist has values")
	}
}

func TestTransform(t *testing.T) {
	f := prepare(t, informer.Options{})
	f.create(t, "a", "red")
	f.create(t, "odd", "red")
	if err := f.theirs.SetTransform(func(obj any) (any, error) {
		cm := obj.(*corev1.ConfigMap)
		if cm.Name == "odd" {
			return "no object", nil
		}
		cm.Labels["color"] = "transformed"
		return cm, nil
	}); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	for name, want := range map[string]string{"a": "transformed", "odd": "red"} {
		if cm, ok := f.ours.Lister().Get("default", name); !ok || cm.Labels["color"] != want {
			t.Errorf("%s: %v", name, cm)
		}
	}
	if f.ours.Stats().Untransformed != 1 {
		t.Error("a transform that returns something else is no failure")
	}
	if f.theirs.SetTransform(nil) == nil {
		t.Error("a transform was accepted after the start")
	}
}

// Code that got the informer may run it, once. A second run is refused in the way
// that client-go refuses it.
func TestRun(t *testing.T) {
	f := prepare(t, informer.Options{})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); f.theirs.GetController().Run(stop) }()
	if !clientgocache.WaitFor(f.ctx, "", f.theirs.GetController().HasSyncedChecker()) {
		t.Fatal("never synced")
	}
	if f.theirs.IsStopped() || f.theirs.LastSyncResourceVersion() == "" {
		t.Error("it runs, and is stopped or knows no version")
	}
	var said []string
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) { said = append(said, err.Error()) }}
	defer func() { utilruntime.ErrorHandlers = handlers }()
	f.theirs.RunWithContext(f.ctx)
	if len(said) != 1 || !strings.Contains(said[0], "runs already") {
		t.Errorf("said %q", said)
	}
	close(stop)
	<-ended
	if !f.theirs.IsStopped() {
		t.Error("not stopped")
	}
	if _, err := f.theirs.AddEventHandler(clientgocache.ResourceEventHandlerFuncs{}); !errors.Is(err, informer.ErrStopped) {
		t.Errorf("a handler of a stopped informer: %v", err)
	}
}
