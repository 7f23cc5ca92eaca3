package relay

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/internal/testwait"
)

// etcdClient returns a client of kube-apiserver's etcd.
func etcdClient(t *testing.T, direct front) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{direct.cluster.EtcdURL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// compact removes all history from etcd, as kube-apiserver does with what is older than five minutes.
func compact(t *testing.T, etcd *clientv3.Client) {
	t.Helper()
	now, err := etcd.Get(t.Context(), "any")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}

// historiesOfKubeAPIServer: while kube-apiserver is killed again and again, and etcd compacted, no watcher loses an object,
// nothing that was deleted comes back, and no list is older than it may be.
func historiesOfKubeAPIServer(t *testing.T, direct, one, three front) {
	maps := client.For[*corev1.ConfigMap](direct.Client(client.Options{})).Namespace(metav1.NamespaceDefault)
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil { // what other tests have made
		t.Fatal(err)
	}
	p := beginAt(t, hosts{upstream: direct.host(), front: one.host(), relays: []string{one.host(), three.host()}})
	etcd := etcdClient(t, direct)
	for range 3 {
		p.suffer(10*time.Second, func() {}) //passes: clients write and watch until the next fault
		direct.cluster.Servers()[0].Kill()
		compact(t, etcd)
		if err := direct.cluster.AwaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.end(false)
}

// countsLists counts the lists of config maps, and the watches that begin with the state.
type countsLists struct {
	next  http.RoundTripper
	lists *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c countsLists) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	if strings.HasSuffix(req.URL.Path, "/configmaps") && req.Method == http.MethodGet && (query.Get("watch") == "" || query.Get("sendInitialEvents") == "true") {
		c.lists.Add(1)
	}
	return c.next.RoundTrip(req)
}

// informed is an informer, ours or client-go's.
type informed struct {
	name  string
	lists *atomic.Int64
	held  func() []string // names and versions
}

// informersOfKubeAPIServer: informers behind relays follow when kube-apiserver is killed, also with etcd's history gone, and do
// not list again.
func informersOfKubeAPIServer(t *testing.T, direct, one, three front) {
	maps := newNamespace(t, direct, "informers")
	for i := range 20 {
		create(t, maps, fmt.Sprint("first-", i))
	}
	var all []*informed
	for name, s := range map[string]front{"one relay": one, "three relays": three} {
		all = append(all, ourInformer(t, s, "ours, through "+name), clientGoInformer(t, s, "client-go's, through "+name))
	}
	etcd := etcdClient(t, direct)
	agree := func(when string) {
		t.Helper()
		var want []string
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Items {
			want = append(want, m.Name+" "+m.ResourceVersion)
		}
		slices.Sort(want)
		for _, i := range all {
			testwait.Stable(t, when+": "+i.name+" holds what kube-apiserver has", func() (any, bool) {
				held := i.held()
				return held, slices.Equal(held, want)
			})
		}
	}
	agree("at first")
	for round := range 3 {
		create(t, maps, fmt.Sprint("before-", round))
		direct.cluster.Servers()[0].Kill()
		if round > 0 {
			compact(t, etcd)
		}
		if err := direct.cluster.AwaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := maps.Delete(t.Context(), fmt.Sprint("first-", round), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		create(t, maps, fmt.Sprint("after-", round))
		agree(fmt.Sprint("after ", round+1, " kills"))
	}
	for _, i := range all {
		if lists := i.lists.Load(); lists != 1 {
			t.Errorf("the informer %s has listed %d times", i.name, lists)
		}
	}
}

// counted has the lists of a configuration counted.
func counted(config *rest.Config) (*rest.Config, *atomic.Int64) {
	lists := &atomic.Int64{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countsLists{next, lists} })
	return config, lists
}

func ourInformer(t *testing.T, s front, name string) *informed {
	t.Helper()
	config, lists := counted(s.Config())
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	factory := informer.NewFactory(c, informer.Options{Namespace: "informers"})
	maps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{})
	ctx, stop := context.WithCancel(t.Context())
	factory.Start(ctx)
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
	})
	return &informed{name, lists, func() (held []string) {
		for _, m := range maps.Lister().List("informers", labels.Everything()) {
			held = append(held, m.Name+" "+m.ResourceVersion)
		}
		slices.Sort(held)
		return held
	}}
}

func clientGoInformer(t *testing.T, s front, name string) *informed {
	t.Helper()
	config, lists := counted(s.Config())
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	from := cache.NewListWatchFromClient(c, "configmaps", "informers", fields.Everything())
	reflector := cache.NewReflectorWithOptions(from, &corev1.ConfigMap{}, store, cache.ReflectorOptions{Name: name})
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		reflector.Run(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	return &informed{name, lists, func() (held []string) {
		for _, object := range store.List() {
			m, _ := object.(*corev1.ConfigMap)
			held = append(held, m.Name+" "+m.ResourceVersion)
		}
		slices.Sort(held)
		return held
	}}
}
