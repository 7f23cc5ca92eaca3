package interop

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/server"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// flavours are the other ways of having an informer: without a Go type, and of
// the metadata only. Each runs one that calls the recorder until the test ends,
// and returns when it has synced.
var flavours = map[string]func(ctx context.Context, t *testing.T, config *rest.Config, namespace string, r *recorder){
	"our dynamic informer": func(ctx context.Context, t *testing.T, config *rest.Config, namespace string, r *recorder) {
		f := ourFactory(t, config, namespace)
		addOurs(t, informer.Dynamic(f, configMaps, informer.ListOptions{}), r)
		startOurs(ctx, t, f)
	},
	"our metadata informer": func(ctx context.Context, t *testing.T, config *rest.Config, namespace string, r *recorder) {
		f := ourFactory(t, config, namespace)
		addOurs(t, informer.Metadata(f, configMaps, informer.ListOptions{}), r)
		startOurs(ctx, t, f)
	},
	"client-go dynamic informer": func(ctx context.Context, t *testing.T, config *rest.Config, namespace string, r *recorder) {
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c, 0, namespace, nil)
		runStock(ctx, t, f.ForResource(configMaps).Informer(), r)
	},
	"client-go metadata informer": func(ctx context.Context, t *testing.T, config *rest.Config, namespace string, r *recorder) {
		c, err := metadata.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		f := metadatainformer.NewFilteredSharedInformerFactory(c, 0, namespace, nil)
		runStock(ctx, t, f.ForResource(configMaps).Informer(), r)
	},
}

func ourFactory(t *testing.T, config *rest.Config, namespace string) *informer.Factory {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return informer.NewFactory(c, informer.Options{Namespace: namespace})
}

func addOurs[T client.Object](t *testing.T, i *informer.SharedInformer[T], r *recorder) {
	t.Helper()
	_, err := i.AddHandler(informer.HandlerFuncs[T]{
		Add:    func(obj T, initial bool) { r.onAdd(obj, initial) },
		Update: func(before, obj T) { r.onUpdate(before, obj) },
		Delete: func(obj T, unknown bool) { r.onDelete(obj, !unknown) },
	}, informer.HandlerOptions{MaxUnmergedEvents: 1000})
	if err != nil {
		t.Fatal(err)
	}
}

func startOurs(ctx context.Context, t *testing.T, f *informer.Factory) {
	t.Helper()
	f.Start(ctx)
	t.Cleanup(f.Shutdown)
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
}

func runStock(ctx context.Context, t *testing.T, i toolscache.SharedIndexInformer, r *recorder) {
	t.Helper()
	(&stock{informer: i}).handle(t, r, 0)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); i.RunWithContext(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	if !toolscache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
		t.Fatal("no sync")
	}
}

// TestFlavours has dynamic and metadata informers of both makes on both
// servers look at the same config maps.
func TestFlavours(t *testing.T) {
	for maker, config := range serveAll(t, server.Memory) {
		for flavour, run := range flavours {
			t.Run(maker+", "+flavour, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
				t.Cleanup(cancel)
				c := clientset(t, config)
				namespace := newNamespace(t, c)
				writeConfigMap(ctx, t, c, namespace, "there", "1")
				r := newRecorder()
				run(ctx, t, config, namespace, r)
				writeConfigMap(ctx, t, c, namespace, "a", "1")
				writeConfigMap(ctx, t, c, namespace, "a", "2")
				writeConfigMap(ctx, t, c, namespace, "there", "2")
				if err := c.CoreV1().ConfigMaps(namespace).Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				r.expect(ctx, t, "a", "add 1", "update 1 > 2", "delete 2")
				r.expect(ctx, t, "there", "initial 1", "update 1 > 2")
				r.check(t)
			})
		}
	}
}

// writeConfigMap creates a config map at step 1 and updates it at others.
func writeConfigMap(ctx context.Context, t *testing.T, c kubernetes.Interface, namespace, name, step string) {
	t.Helper()
	maps := c.CoreV1().ConfigMaps(namespace)
	obj := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"step": step}},
		Data:       map[string]string{"key": step},
	}
	var err error
	if step == "1" {
		_, err = maps.Create(ctx, obj, metav1.CreateOptions{})
	} else {
		_, err = maps.Update(ctx, obj, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
