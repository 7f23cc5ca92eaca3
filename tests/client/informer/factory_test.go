package informer_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

// serve runs a real API server over memory until the returned function is
// called.
func serve(dir string) (*client.Client, func(), error) {
	s, err := server.Listen(server.Config{
		DataDir: dir, Storage: server.Memory, SecurePort: server.AnyPort, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	c, err := client.FromKubeconfig(s.Kubeconfig(), client.Options{})
	stop := func() {
		if c != nil {
			c.CloseIdleConnections()
		}
		cancel()
		<-done
	}
	return c, stop, err
}

func start(t *testing.T) *client.Client {
	t.Helper()
	return levelwiretest.Start(t).Client(client.Options{})
}

func TestFactorySharesInformersByTypeAndOptions(t *testing.T) {
	f := informer.NewFactory(start(t), informer.Options{})
	all := informer.ListOptions{}
	first, second := informer.For[*corev1.Pod](f, all), informer.For[*corev1.Pod](f, all)
	if first != second {
		t.Error("two informers of one resource")
	}
	if informer.For[*corev1.Pod](f, all) == informer.For[*corev1.Pod](f, informer.ListOptions{Namespace: "a"}) {
		t.Error("one informer for two selections")
	}
	gvr := corev1.SchemeGroupVersion.WithResource("pods")
	if informer.Metadata(f, gvr, all).Name() != "pods (metadata)" || informer.Dynamic(f, gvr, all).Name() != "pods (dynamic)" {
		t.Error("metadata and dynamic informers have names of their own")
	}
	if name := informer.For[*appsv1.Deployment](f, informer.ListOptions{Namespace: "a", LabelSelector: "b=c"}).Name(); name != "deployments.apps (namespace a, labels b=c)" {
		t.Errorf("name %q", name)
	}
}

// The reason is the server's own words.
func TestWaitForSyncSaysWhy(t *testing.T) {
	failed := make(chan struct{}, 1)
	f := informer.NewFactory(start(t), informer.Options{Reflector: reflector.Options{OnError: func(string, error) {
		select {
		case failed <- struct{}{}:
		default:
		}
	}}})
	defer f.Shutdown()
	informer.Dynamic(f, corev1.SchemeGroupVersion.WithResource("nothings"), informer.ListOptions{})
	f.Start(t.Context())
	<-failed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.WaitForSync(ctx); err == nil || !strings.Contains(err.Error(), "could not find the requested resource") {
		t.Errorf("error %v", err)
	}
}

func TestFactorysNamespaceIsTheDefault(t *testing.T) {
	f := informer.NewFactory(start(t), informer.Options{Namespace: "default"})
	defer f.Shutdown()
	gvr := corev1.SchemeGroupVersion.WithResource("services")
	limited, other := informer.Metadata(f, gvr, informer.ListOptions{}), informer.Metadata(f, gvr, informer.ListOptions{Namespace: "kube-system"})
	several := informer.Metadata(f, gvr, informer.ListOptions{Namespaces: []string{"kube-system"}})
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b, c := limited.Lister().Len(), other.Lister().Len(), several.Lister().Len(); a != 1 || b != 0 || c != 0 {
		t.Errorf("%d, %d and %d services", a, b, c)
	}
}

func TestFactoryStartsWhatCameLater(t *testing.T) {
	c := start(t)
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	namespaces := informer.For[*corev1.Namespace](f, informer.ListOptions{})
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := namespaces.Lister().Get("", "default"); !ok {
		t.Error("the default namespace is missing")
	}
	services := informer.For[*corev1.Service](f, informer.ListOptions{Namespace: "default"})
	meta := informer.Metadata(f, corev1.SchemeGroupVersion.WithResource("services"), informer.ListOptions{})
	dynamic := informer.Dynamic(f, corev1.SchemeGroupVersion.WithResource("services"), informer.ListOptions{FieldSelector: "metadata.name=kubernetes"})
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	service, ok := services.Lister().Get("default", "kubernetes")
	if !ok {
		t.Fatal("default/kubernetes is missing")
	}
	if m, ok := meta.Lister().Get("default", "kubernetes"); !ok || m.UID != service.UID {
		t.Errorf("metadata: %v, %v", m, ok)
	}
	d, ok := dynamic.Lister().Get("default", "kubernetes")
	if ip, _, err := unstructured.NestedString(d.Object, "spec", "clusterIP"); !ok || err != nil || ip != service.Spec.ClusterIP {
		t.Errorf("dynamic: %q, %v, %v", ip, ok, err)
	}
	if dynamic.Lister().Len() != 1 {
		t.Errorf("the field selector let %d services through", dynamic.Lister().Len())
	}
}

func TestWaitForSyncNamesWhatIsMissing(t *testing.T) {
	s := levelwiretest.Start(t)
	c := s.Client(client.Options{})
	s.Stop() // no server answers any more
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	informer.For[*corev1.Pod](f, informer.ListOptions{Namespace: "x"})
	f.Start(t.Context())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("had enough"))
	if err := f.WaitForSync(ctx); err == nil || !strings.Contains(err.Error(), "pods (namespace x)") || !strings.Contains(err.Error(), "had enough") {
		t.Errorf("error %v", err)
	}
}

// A complete list is there, so there is nothing to wait for.
func TestWaitForSyncSucceedsAfterItsContextIfAllIsThere(t *testing.T) {
	f := informer.NewFactory(start(t), informer.Options{})
	defer f.Shutdown()
	informer.For[*corev1.Namespace](f, informer.ListOptions{})
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // a select would take either
		if err := f.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// An informer that cannot run is an error, whatever those before it wait for.
func TestWaitForSyncNamesWhatCannotRun(t *testing.T) {
	s := levelwiretest.Start(t)
	c := s.Client(client.Options{})
	s.Stop() // the first informer waits
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	informer.For[*corev1.Pod](f, informer.ListOptions{})
	informer.For[*corev1.Service](f, informer.ListOptions{LabelSelector: "a in"})
	f.Start(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := f.WaitForSync(ctx); err == nil || !strings.Contains(err.Error(), "ListOptions.LabelSelector") || ctx.Err() != nil {
		t.Errorf("error %v", err)
	}
}

func TestWaitForSyncDoesNotWaitForWhatHasStopped(t *testing.T) {
	s := levelwiretest.Start(t)
	c := s.Client(client.Options{})
	s.Stop()
	f := informer.NewFactory(c, informer.Options{})
	pods := informer.For[*corev1.Pod](f, informer.ListOptions{})
	f.Start(t.Context())
	f.Shutdown()
	<-pods.Done()
	if err := f.WaitForSync(t.Context()); !errors.Is(err, informer.ErrStopped) || !strings.Contains(err.Error(), "pods") {
		t.Errorf("error %v", err)
	}
}

func TestInformerFollowsARealServer(t *testing.T) {
	c := start(t)
	f := informer.NewFactory(c, informer.Options{})
	defer f.Shutdown()
	configMaps := informer.For[*corev1.ConfigMap](f, informer.ListOptions{Namespace: "default", LabelSelector: "watched=yes"})
	events := make(chan string, 16)
	_, err := configMaps.AddHandler(informer.HandlerFuncs[*corev1.ConfigMap]{
		Add:    func(cm *corev1.ConfigMap, _ bool) { events <- "added " + cm.Data["k"] },
		Update: func(old, cm *corev1.ConfigMap) { events <- "updated " + old.Data["k"] + " to " + cm.Data["k"] },
		Delete: func(cm *corev1.ConfigMap, _ bool) { events <- "deleted " + cm.Data["k"] },
	}, informer.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	api := client.For[*corev1.ConfigMap](c).Namespace("default")
	cm, err := api.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"watched": "yes"}}, Data: map[string]string{"k": "1"},
	}, metav1.CreateOptions{})
	expect(t, events, err, "added 1")
	cm.Data["k"] = "2"
	cm, err = api.Update(t.Context(), cm, metav1.UpdateOptions{})
	expect(t, events, err, "updated 1 to 2")
	cm.Labels = nil // it leaves the selection: handlers get its last state that matched
	cm.Data["k"] = "3"
	_, err = api.Update(t.Context(), cm, metav1.UpdateOptions{})
	expect(t, events, err, "deleted 2")
}

func expect(t *testing.T, events <-chan string, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if got := <-events; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func negative() reflector.Options { return reflector.Options{WatchTimeout: -1} }

// A factory's transform and compression are those of all its informers.
func TestFactoryTransformsAndCompresses(t *testing.T) {
	c := start(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Data: map[string]string{"k": "v"}}
	if _, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f := informer.NewFactory(c, informer.Options{Transform: informer.StripManagedFields, CompressObjects: true})
	defer f.Shutdown()
	typed, dynamic := informer.For[*corev1.ConfigMap](f, informer.ListOptions{}), informer.Dynamic(f, corev1.SchemeGroupVersion.WithResource("configmaps"), informer.ListOptions{})
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, ok := typed.Lister().Get("default", "a")
	if !ok || first.Data["k"] != "v" || len(first.ManagedFields) != 0 {
		t.Errorf("typed: %+v", first)
	}
	if again, _ := typed.Lister().Get("default", "a"); again == first {
		t.Error("two reads share an object")
	}
	if u, ok := dynamic.Lister().Get("default", "a"); !ok || len(u.GetManagedFields()) != 0 || u.GetKind() != "ConfigMap" {
		t.Errorf("dynamic: %+v", u)
	}
}

// StripManagedFields changes no part that is interned, so objects are interned; any
// other transform may.
func TestOnlyStripManagedFieldsLeavesObjectsInterned(t *testing.T) {
	c := start(t)
	const groups, objects = 5, 40
	for n := range objects {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared-" + strconv.Itoa(n), Namespace: "default"}, Data: map[string]string{"group": strconv.Itoa(n % groups)}}
		if _, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	another := func(obj client.Object) error { return informer.StripManagedFields(obj) }
	for name, transform := range map[string]func(client.Object) error{"StripManagedFields": informer.StripManagedFields, "another": another} {
		f := informer.NewFactory(c, informer.Options{Transform: transform})
		configMaps := informer.For[*corev1.ConfigMap](f, informer.ListOptions{Namespaces: []string{"default"}})
		f.Start(t.Context())
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		data := map[uintptr]bool{}
		for _, cm := range configMaps.Lister().List("default", labels.Everything()) {
			if len(cm.ManagedFields) != 0 {
				t.Errorf("%s: %s has managedFields", name, cm.Name)
			}
			data[reflect.ValueOf(cm.Data).Pointer()] = true
		}
		count := configMaps.Lister().Len()
		if name == "another" && len(data) != count || name != "another" && len(data) == count {
			t.Errorf("%s: %d objects have %d different maps", name, count, len(data))
		}
		f.Shutdown()
	}
}

// TestFactoryForgetsWhatIsRemoved: the informer of a removed one's options is another,
// which can be started, and the others go on.
func TestFactoryForgetsWhatIsRemoved(t *testing.T) {
	c := start(t)
	f := informer.NewFactory(c, informer.Options{Disk: informer.DiskOptions{Directory: t.TempDir()}})
	defer f.Shutdown()
	stays := informer.For[*corev1.Namespace](f, informer.ListOptions{})
	var names []string
	for _, name := range []string{"first", "second"} {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		if _, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		i := informer.For[*corev1.ConfigMap](f, informer.ListOptions{})
		f.Start(t.Context())
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, ok := i.Lister().Get("default", "first"); !ok {
			t.Errorf("%s informer: the object is missing", name)
		}
		names = append(names, i.Name())
		f.Remove(i)
		f.Remove(i)
		select {
		case <-i.Done():
		default:
			t.Error("a removed informer still runs")
		}
		if known := f.Informers(); len(known) != 1 || known[0] != informer.Informer(stays) {
			t.Errorf("the factory knows %d informers", len(known))
		}
	}
	if names[0] != names[1] {
		t.Errorf("names %q", names)
	}
	select {
	case <-stays.Done():
		t.Error("the informer that was not removed has ended")
	default:
	}
}

// TestRemoveBesideOthers: an informer that is removed is neither started nor handed out meanwhile,
// and Shutdown ends whatever is left.
func TestRemoveBesideOthers(t *testing.T) {
	c := start(t)
	f := informer.NewFactory(c, informer.Options{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				i := informer.For[*corev1.ConfigMap](f, informer.ListOptions{})
				f.Start(context.Background())
				f.Remove(i)
			}
		})
	}
	group.Wait()
	if n := len(f.Informers()); n != 0 {
		t.Errorf("%d informers are left", n)
	}
	last := informer.For[*corev1.ConfigMap](f, informer.ListOptions{})
	f.Start(t.Context())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Shutdown()
	<-last.Done()
}
