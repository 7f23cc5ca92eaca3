package histories

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
)

// subject is a client under test.
type subject struct {
	*record
	// start runs it; it returns when it has listed, stop when it has ended.
	start func(ctx context.Context, t *testing.T) (stop func())
	holds func() map[string]state
	asked func() tally
	// differs: it can be sent the difference in place of a list.
	differs bool
	// lists: it lists again after errors that are no reason to.
	lists bool
	// exact, unless nil, is what a watcher saw stream by stream.
	exact *viewer
}

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	jsonType     = "application/json"
)

// impatient tries again much sooner than usual.
var impatient = reflector.Backoff{Base: 50 * time.Millisecond, Max: 500 * time.Millisecond}

// ourInformer is a SharedInformer of the library. One with all gets every
// event; others may get fewer, newer states.
func ourInformer(t *testing.T, config *rest.Config, v view, contentType client.ContentType, all bool) *subject {
	t.Helper()
	pipe := &tap{}
	c, err := client.New(config, client.Options{ContentType: contentType, WrapTransport: pipe.wrap})
	if err != nil {
		t.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{Reflector: reflector.Options{Backoff: impatient}})
	pods := informer.For[*corev1.Pod](factory, informer.ListOptions{Namespace: v.namespace, LabelSelector: v.labels, FieldSelector: v.fields})
	r := newRecord("our informer, "+v.name+", "+word(contentType == client.Protobuf, "protobuf", "JSON"), v, manner{})
	opts := informer.HandlerOptions{}
	if all {
		opts.MaxUnmergedEvents = 1 << 20
	}
	if _, err := pods.AddHandler(informer.HandlerFuncs[*corev1.Pod]{
		Add: func(pod *corev1.Pod, _ bool) { r.onAdd(pod) }, Update: r.onUpdate, Delete: r.onDelete,
	}, opts); err != nil {
		t.Fatal(err)
	}
	return &subject{
		record: r, differs: true,
		start: func(ctx context.Context, t *testing.T) func() {
			t.Helper()
			factory.Start(ctx)
			if err := factory.WaitForSync(ctx); err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
			return func() { factory.Shutdown(); c.CloseIdleConnections() }
		},
		holds: func() map[string]state { return statesOf(pods.Lister().List("", nil)) },
		asked: func() tally {
			return tally{
				lists:       int(pipe.lists.Load()),
				differences: int(pods.Stats().Reflector.Differences[reflector.DifferenceApplied]),
			}
		},
	}
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

func statesOf(pods []*corev1.Pod) map[string]state {
	all := map[string]state{}
	for _, pod := range pods {
		s := stateOf(pod)
		all[s.key] = s
	}
	return all
}

// stockConfig is the configuration of client-go's clients.
func stockConfig(config *rest.Config, contentType string, pipe *tap) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	config.Wrap(pipe.wrap)
	return config
}

// source lists and watches as generated informers do.
func source(t *testing.T, config *rest.Config, v view, contentType string, pipe *tap) toolscache.ListerWatcher {
	t.Helper()
	c, err := kubernetes.NewForConfig(stockConfig(config, contentType, pipe))
	if err != nil {
		t.Fatal(err)
	}
	return toolscache.NewFilteredListWatchFromClient(c.CoreV1().RESTClient(), "pods", v.namespace, func(opts *metav1.ListOptions) {
		opts.LabelSelector, opts.FieldSelector = v.labels, v.fields
	})
}

// inPages is a source that client-go's reflectors do not ask for streaming lists.
type inPages struct{ toolscache.ListerWatcher }

func (inPages) IsWatchListSemanticsUnSupported() bool { return true }

// stockInformer is client-go's.
func stockInformer(t *testing.T, config *rest.Config, v view, contentType string, streams bool) *subject {
	t.Helper()
	pipe := &tap{}
	from := source(t, config, v, contentType, pipe)
	if !streams {
		from = inPages{from}
	}
	pods := toolscache.NewSharedIndexInformer(from, &corev1.Pod{}, 0, toolscache.Indexers{})
	r := newRecord("client-go informer, "+v.name+", "+word(contentType == protobufType, "protobuf", "JSON")+", "+word(streams, "streams", "pages"),
		v, manner{joins: true, unknownDeletions: true})
	handleStock(t, pods, r)
	return &subject{
		record: r, lists: true,
		start: func(ctx context.Context, t *testing.T) func() {
			t.Helper()
			ctx, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() { defer close(done); pods.RunWithContext(ctx) }()
			if !toolscache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
				t.Fatalf("%s does not sync", r.name)
			}
			if streamed := pipe.streams.Load() > 0; streamed != streams {
				t.Errorf("%s has streamed its list: %v", r.name, streamed)
			}
			return func() { cancel(); <-done }
		},
		holds: func() map[string]state { return stockStates(pods.GetStore().List()) },
		asked: func() tally { return tally{lists: int(pipe.lists.Load())} },
	}
}

func stockStates(objects []any) map[string]state {
	var pods []*corev1.Pod
	for _, obj := range objects {
		pods = append(pods, obj.(*corev1.Pod))
	}
	return statesOf(pods)
}

// handleStock records what a handler of client-go's gets.
func handleStock(t *testing.T, pods interface {
	AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
}, r *record) {
	t.Helper()
	if _, err := pods.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.onAdd(obj.(*corev1.Pod)) },
		UpdateFunc: func(old, obj any) { r.onUpdate(old.(*corev1.Pod), obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				r.onDelete(lost.Obj.(*corev1.Pod), true)
				return
			}
			r.onDelete(obj.(*corev1.Pod), false)
		},
	}); err != nil {
		t.Fatal(err)
	}
}

// managersCache is the cache of a controller-runtime manager.
func managersCache(t *testing.T, config *rest.Config, v view) *subject {
	t.Helper()
	pipe := &tap{}
	r := newRecord("controller-runtime cache, "+v.name, v, manner{joins: true, unknownDeletions: true})
	byPod := crcache.ByObject{}
	if v.labels != "" {
		byPod.Label = labels.SelectorFromSet(labels.Set{"color": "red"})
	}
	if v.fields != "" {
		byPod.Field = fields.ParseSelectorOrDie(v.fields)
	}
	config = rest.CopyConfig(config)
	config.Wrap(pipe.wrap)
	pods, err := crcache.New(config, crcache.Options{
		ByObject: map[crclient.Object]crcache.ByObject{&corev1.Pod{}: byPod},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &subject{
		record: r, lists: true,
		start: func(ctx context.Context, t *testing.T) func() {
			t.Helper()
			ctx, cancel := context.WithCancel(ctx)
			done := make(chan error, 1)
			go func() { done <- pods.Start(ctx) }()
			i, err := pods.GetInformer(ctx, &corev1.Pod{}, crcache.BlockUntilSynced(false))
			if err != nil {
				t.Fatal(err)
			}
			handleStock(t, i, r)
			if !pods.WaitForCacheSync(ctx) {
				t.Fatalf("%s does not sync", r.name)
			}
			return func() {
				cancel()
				if err := <-done; err != nil {
					t.Errorf("%s: %v", r.name, err)
				}
			}
		},
		holds: func() map[string]state {
			list := &corev1.PodList{}
			if err := pods.List(t.Context(), list); err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
			var all []*corev1.Pod
			for i := range list.Items {
				all = append(all, &list.Items[i])
			}
			return statesOf(all)
		},
		asked: func() tally { return tally{lists: int(pipe.lists.Load())} },
	}
}
