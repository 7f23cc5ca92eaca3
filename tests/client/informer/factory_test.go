package informer_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	f := informer.NewFactory(start(t), informer.Options{Reflector: reflector.Options{OnError: func(error) {
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
