package watchcache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	fieldNode  = 0
	fieldPhase = 1
)

// podResource is a kind with two selectable fields, of which one stays once it is set.
func podResource() *resource.Resource {
	return &resource.Resource{
		Version: "v1", Kind: "Pod", ListKind: "PodList", Plural: "pods", Singular: "pod", Namespaced: true,
		StorePrefix: "/registry/pods/",
		New:         func() resource.Object { return &corev1.Pod{} },
		NewList:     func() runtime.Object { return &corev1.PodList{} },
		Fields: []resource.Field{
			fieldNode:  {Name: "spec.nodeName", Paths: [][]string{{"spec", "nodeName"}}, Final: true},
			fieldPhase: {Name: "status.phase", Paths: [][]string{{"status", "phase"}}},
		},
	}
}

// nodeResource is a cluster-scoped kind without fields.
func nodeResource() *resource.Resource {
	return &resource.Resource{
		Version: "v1", Kind: "Node", ListKind: "NodeList", Plural: "nodes", Singular: "node",
		StorePrefix: "/registry/minions/",
		New:         func() resource.Object { return &corev1.Node{} },
		NewList:     func() runtime.Object { return &corev1.NodeList{} },
	}
}

// pod is what the tests write.
type pod struct {
	namespace, name, node, phase string
	labels                       map[string]string
}

func (p pod) key() string { return p.namespace + "/" + p.name }

// value is the stored form.
func (p pod) value() []byte {
	set, _ := json.Marshal(p.labels)
	if p.labels == nil {
		set = []byte("{}")
	}
	return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"labels":%s},"spec":{"nodeName":%q},"status":{"phase":%q}}`,
		p.name, p.namespace, set, p.node, p.phase)
}

func nodeValue(name string) []byte {
	return fmt.Appendf(nil, `{"kind":"Node","apiVersion":"v1","metadata":{"name":%q}}`, name)
}

// object is the pod as the cache decodes it.
func (p pod) object(t testing.TB, c *Cache, revision storage.Revision) *Object {
	t.Helper()
	o, err := c.Decode(p.key(), p.value(), revision)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// put is a change of a pod.
func put(t testing.TB, c *Cache, p pod, revision storage.Revision) Change {
	return Change{Key: p.key(), Object: p.object(t, c, revision), Revision: revision}
}

func gone(key string, revision storage.Revision) Change { return Change{Key: key, Revision: revision} }

// filled is a cache with the pods, each at revision 1, filled at 10.
func filled(t testing.TB, opts Options, pods ...pod) *Cache {
	t.Helper()
	c := New(podResource(), opts)
	slices.SortFunc(pods, func(a, b pod) int { return cmpStrings(a.key(), b.key()) })
	var objects []*Object
	for _, p := range pods {
		objects = append(objects, p.object(t, c, 1))
	}
	if _, err := c.Fill(objects, 10); err != nil {
		t.Fatal(err)
	}
	return c
}

func cmpStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// selecting compiles a selection of pods.
func selecting(t testing.TB, namespace, name, label, field string) *Selection {
	t.Helper()
	ls, err := labels.Parse(label)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := fields.ParseSelector(field)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSelection(podResource(), namespace, name, ls, fs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func watching(t testing.TB, c *Cache, opts WatchOptions) *Watcher {
	t.Helper()
	w, err := c.Watch(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// drain reads all that is there, in small bites.
func drain(t testing.TB, w *Watcher) []Event {
	t.Helper()
	var all []Event
	var buf [3]Event
	for {
		n, err := w.Read(buf[:])
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
		all = append(all, buf[:n]...)
	}
}

// told writes events down as "ADDED a/x@5".
func told(events []Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s@%d", e.Type, e.Object.Key, e.Revision))
	}
	return out
}

func expect(t testing.TB, events []Event, want ...string) {
	t.Helper()
	if got := told(events); !slices.Equal(got, want) {
		t.Fatalf("events are\n%q, want\n%q", got, want)
	}
}

// rig is a store with a feed that runs.
type rig struct {
	store *memory.Store
	pods  *Cache
	nodes *Cache
	feed  *Feed
}

// startRig runs a feed over the store in a synctest bubble until the test ends.
func startRig(t *testing.T, store *memory.Store, source Source, opts FeedOptions) *rig {
	t.Helper()
	r := &rig{store: store, pods: New(podResource(), Options{}), nodes: New(nodeResource(), Options{})}
	if source == nil {
		source = store
	}
	r.feed = NewFeed(source, []*Cache{r.pods, r.nodes}, opts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.feed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the feed ended: %v", err)
		}
	})
	synctest.Wait()
	return r
}

func openStore(t testing.TB) *memory.Store {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// write creates or replaces a pod in the store.
func write(t testing.TB, store storage.Store, p pod) storage.Revision {
	t.Helper()
	return writeKey(t, store, "/registry/pods/"+p.key(), p.value())
}

func writeKey(t testing.TB, store storage.Store, key string, value []byte) storage.Revision {
	t.Helper()
	var revision storage.Revision
	current, err := store.Get(t.Context(), key, 0)
	if err == nil {
		revision, err = store.Update(t.Context(), key, value, current.Modified, 0)
	} else {
		revision, err = store.Create(t.Context(), key, value, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func erase(t testing.TB, store storage.Store, key string) storage.Revision {
	t.Helper()
	current, err := store.Get(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := store.Delete(t.Context(), key, current.Modified)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func rev(n int) storage.Revision { return storage.Revision(n) }
