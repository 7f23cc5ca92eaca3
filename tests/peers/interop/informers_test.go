package interop

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cache"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// settings say how an informer talks to its server and what it looks at.
type settings struct {
	namespace                    string
	labelSelector, fieldSelector string
	protobuf                     bool
	streaming                    bool // client-go's is a feature gate, which the caller sets
	http1                        bool
	tap                          *tap
	// resync is the period of handlers that want one.
	resync time.Duration
}

// A subject is an informer of pods of either make.
type subject interface {
	// handle adds a handler, at any time. The function removes it.
	handle(t *testing.T, r *recorder, resync time.Duration) (remove func())
	// start runs the informer until the test ends, without waiting for it.
	start(t *testing.T)
	waitSync(ctx context.Context) bool
	// pods is the informer's cache, sorted by name. Callers must not change it.
	pods() []*corev1.Pod
	// byApp lists the names that an index by the app label gives.
	byApp(t *testing.T, app string) []string
}

// subjects are the informers under test, by name.
var subjects = map[string]func(t *testing.T, config *rest.Config, s settings) subject{
	"our informer":       newOurs,
	"client-go informer": newStock,
}

func sortPods(pods []*corev1.Pod) []*corev1.Pod {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func namesOf(pods []*corev1.Pod) []string {
	names := []string{}
	for _, pod := range sortPods(pods) {
		names = append(names, pod.Name)
	}
	return names
}

type ours struct {
	factory  *informer.Factory
	informer *informer.SharedInformer[*corev1.Pod]
}

func newOurs(t *testing.T, config *rest.Config, s settings) subject {
	t.Helper()
	opts := client.Options{ContentType: client.JSON, ForceHTTP1: s.http1, WrapTransport: s.tap.wrap}
	if s.protobuf {
		opts.ContentType = client.Protobuf
	}
	c, err := client.New(config, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	f := informer.NewFactory(c, informer.Options{
		Namespace: s.namespace, Reflector: reflector.Options{PagedList: !s.streaming},
	})
	pods := informer.For[*corev1.Pod](f, informer.ListOptions{LabelSelector: s.labelSelector, FieldSelector: s.fieldSelector})
	err = pods.AddIndexers(cache.Indexers[*corev1.Pod]{
		"app": func(pod *corev1.Pod) ([]string, error) { return []string{pod.Labels["app"]}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &ours{factory: f, informer: pods}
}

// handle asks for every single event: scenarios say exactly which events must
// come. That a slow handler may get fewer has a test of its own.
func (o *ours) handle(t *testing.T, r *recorder, resync time.Duration) func() {
	t.Helper()
	return o.handleWith(t, r, informer.HandlerOptions{Resync: resync, MaxUnmergedEvents: 100_000})
}

func (o *ours) handleWith(t *testing.T, r *recorder, opts informer.HandlerOptions) func() {
	t.Helper()
	registration, err := o.informer.AddHandler(informer.HandlerFuncs[*corev1.Pod]{
		Add:    func(pod *corev1.Pod, initial bool) { r.onAdd(pod, initial) },
		Update: func(before, pod *corev1.Pod) { r.onUpdate(before, pod) },
		Delete: func(pod *corev1.Pod, unknown bool) { r.onDelete(pod, !unknown) },
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return func() { <-registration.Remove() }
}

func (o *ours) start(t *testing.T) {
	t.Helper()
	o.factory.Start(t.Context())
	t.Cleanup(o.factory.Shutdown)
}

func (o *ours) waitSync(ctx context.Context) bool { return o.factory.WaitForSync(ctx) == nil }

func (o *ours) pods() []*corev1.Pod { return sortPods(o.informer.Lister().List("", nil)) }

func (o *ours) byApp(t *testing.T, app string) []string {
	t.Helper()
	pods, err := o.informer.Lister().ByIndex("app", app)
	if err != nil {
		t.Fatal(err)
	}
	return namesOf(pods)
}

type stock struct {
	factory  informers.SharedInformerFactory
	informer toolscache.SharedIndexInformer
}

func newStock(t *testing.T, config *rest.Config, s settings) subject {
	t.Helper()
	c, err := kubernetes.NewForConfig(stockConfig(config, s))
	if err != nil {
		t.Fatal(err)
	}
	f := informers.NewSharedInformerFactoryWithOptions(c, s.resync, informers.WithNamespace(s.namespace),
		informers.WithTweakListOptions(func(opts *metav1.ListOptions) {
			opts.LabelSelector, opts.FieldSelector = s.labelSelector, s.fieldSelector
		}))
	pods := f.Core().V1().Pods().Informer()
	err = pods.AddIndexers(toolscache.Indexers{"app": func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Labels["app"]}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &stock{factory: f, informer: pods}
}

// stockConfig is a client-go configuration as the settings say.
func stockConfig(config *rest.Config, s settings) *rest.Config {
	config = rest.CopyConfig(config)
	// Typed clients prefer protobuf unless configured otherwise.
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	if s.protobuf {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	if s.http1 {
		config.NextProtos = []string{"http/1.1"}
	}
	config.Wrap(s.tap.wrap)
	return config
}

func (s *stock) handle(t *testing.T, r *recorder, resync time.Duration) func() {
	t.Helper()
	registration, err := s.informer.AddEventHandlerWithResyncPeriod(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { r.onAdd(obj.(metav1.Object), initial) },
		UpdateFunc: func(before, obj any) { r.onUpdate(before.(metav1.Object), obj.(metav1.Object)) },
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				r.onDelete(lost.Obj.(metav1.Object), false)
				return
			}
			r.onDelete(obj.(metav1.Object), true)
		},
	}, resync)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := s.informer.RemoveEventHandler(registration); err != nil {
			t.Errorf("remove the handler: %v", err)
		}
	}
}

func (s *stock) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s.factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); s.factory.Shutdown() })
}

func (s *stock) waitSync(ctx context.Context) bool {
	return toolscache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced)
}

func (s *stock) pods() []*corev1.Pod {
	pods := []*corev1.Pod{}
	for _, obj := range s.informer.GetStore().List() {
		pods = append(pods, obj.(*corev1.Pod))
	}
	return sortPods(pods)
}

func (s *stock) byApp(t *testing.T, app string) []string {
	t.Helper()
	objs, err := s.informer.GetIndexer().ByIndex("app", app)
	if err != nil {
		t.Fatal(err)
	}
	pods := []*corev1.Pod{}
	for _, obj := range objs {
		pods = append(pods, obj.(*corev1.Pod))
	}
	return namesOf(pods)
}
