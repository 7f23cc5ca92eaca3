package read

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/server/internal/watchcache/feed"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// fixture is a Reader of pods over a store in memory, with the cache and the feed
// that it reads from.
type fixture struct {
	t      testing.TB
	store  *memory.Store
	pods   *resource.Resource
	cache  *watchcache.Cache
	reader *Reader
}

// setup changes what a fixture is made of before it starts.
type setup struct {
	config Config
	cache  watchcache.Options
	unfed  bool // the cache is never filled
	// history is written to the store before the cache is filled, as by a server that
	// ran before.
	history func(*fixture)
}

func newFixture(t testing.TB, change ...func(*setup)) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	f := &fixture{t: t, store: store, pods: builtin.Table().Lookup("", "v1", "pods")}
	build := setup{
		config: Config{Store: store, Cache: func(*resource.Resource) *watchcache.Cache { return f.cache }},
		cache:  watchcache.Options{FreshnessWait: time.Minute}, // as long as a busy machine takes
	}
	for _, apply := range change {
		apply(&build)
	}
	f.cache = watchcache.New(f.pods, build.cache)
	f.reader, err = New(build.config)
	must(t, err)
	if build.history != nil {
		build.history(f)
	}
	if !build.unfed {
		f.feed()
	}
	return f
}

// feed fills the cache and keeps it up to date until the test ends.
func (f *fixture) feed() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- feed.New(f.store, []*watchcache.Cache{f.cache}, feed.Options{}).Run(ctx)
	}()
	f.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			f.t.Errorf("Feed: %v", err)
		}
	})
	must(f.t, f.cache.WaitReady(ctx))
}

// allPods is the scope of /api/v1/pods.
func (f *fixture) allPods() Scope { return Scope{Resource: f.pods} }

func testPod(namespace, name string, labels map[string]string, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
}

// put writes a pod to the store and returns the revision.
func (f *fixture) put(pod *corev1.Pod) storage.Revision {
	f.t.Helper()
	value, err := f.pods.Encode(f.t.Context(), pod)
	must(f.t, err)
	key := f.pods.StorePrefix + f.pods.Key(pod.Namespace, pod.Name)
	revision, err := f.store.Create(f.t.Context(), key, value, 0)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		revision, err = f.store.Update(f.t.Context(), key, value, conflict.Current.Modified, 0)
	}
	must(f.t, err)
	return revision
}

func (f *fixture) remove(namespace, name string) storage.Revision {
	f.t.Helper()
	key := f.pods.StorePrefix + f.pods.Key(namespace, name)
	kv, err := f.store.Get(f.t.Context(), key, 0)
	must(f.t, err)
	revision, err := f.store.Delete(f.t.Context(), key, kv.Modified)
	must(f.t, err)
	return revision
}

// seed writes three pods, so that a list is a different one at each revision.
func (f *fixture) seed() (first, second, third storage.Revision) {
	f.t.Helper()
	first = f.put(testPod("a", "one", map[string]string{"app": "x"}, "n1"))
	second = f.put(testPod("a", "two", map[string]string{"app": "y"}, "n2"))
	third = f.put(testPod("b", "three", map[string]string{"app": "x"}, "n1"))
	return first, second, third
}

// list reads a page, and returns the keys of its objects.
func (f *fixture) list(scope Scope, opts metav1.ListOptions) (keys string, page Page) {
	f.t.Helper()
	page, err := f.reader.List(f.t.Context(), scope, &opts)
	must(f.t, err)
	return keysOf(page), page
}

func keysOf(page Page) string {
	var keys []string
	for o := range page.Items {
		keys = append(keys, o.Key)
	}
	return strings.Join(keys, " ")
}

// at is the options of a read at one revision.
func at(revision storage.Revision) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: fmt.Sprint(revision), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
