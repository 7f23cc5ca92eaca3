package informer_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/levelwiretest"
)

// forgetter is a network to a server that can be made to forget: watches from
// before a version are answered with 410.
type forgetter struct {
	next http.RoundTripper

	mu      sync.Mutex
	open    map[io.Closer]struct{} // watches
	down    bool                   // watches are refused
	horizon int64
	without bool // the server does not know what a difference is
	asked   int  // questions for a difference
}

// forgetful returns a client of server over a forgetter.
func forgetful(t *testing.T, server *levelwiretest.Server, opts client.Options) (*forgetter, *client.Client) {
	t.Helper()
	n := &forgetter{open: map[io.Closer]struct{}{}}
	opts.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		n.next = next
		return n
	}
	return n, server.Client(opts)
}

func (n *forgetter) RoundTrip(r *http.Request) (*http.Response, error) {
	watch := r.URL.Query().Get("watch") != ""
	difference := strings.HasPrefix(r.URL.Path, "/levelwire/")
	from, _ := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64) // "" is that of a list
	n.mu.Lock()
	defer n.mu.Unlock()
	if difference {
		n.asked++
	}
	switch {
	case watch && n.down:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case watch && from > 0 && from < n.horizon:
		return instead(r, http.StatusGone, "Expired"), nil
	case difference && n.without:
		return instead(r, http.StatusNotFound, "NotFound"), nil
	}
	n.mu.Unlock()
	resp, err := n.next.RoundTrip(r)
	n.mu.Lock()
	if watch && err == nil {
		n.open[resp.Body] = struct{}{}
		if n.down || from > 0 && from < n.horizon { // since it was asked for
			_ = resp.Body.Close()
		}
	}
	return resp, err
}

func instead(r *http.Request, code int, reason string) *http.Response {
	status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code, reason)
	return &http.Response{StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), ContentLength: int64(len(status))}
}

// forget ends all watches, and lets them be opened again when away has been
// called, after whose resourceVersion they cannot resume any more.
func (n *forgetter) forget(t *testing.T, away func() (version string)) {
	t.Helper()
	n.mu.Lock()
	n.down = true
	for body := range n.open {
		_ = body.Close()
	}
	clear(n.open)
	n.mu.Unlock()
	horizon, err := strconv.ParseInt(away(), 10, 64)
	must(t, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down, n.horizon = false, horizon
}

// impatient reopens watches without much delay.
var impatient = reflector.Options{Backoff: reflector.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}}

// versions are what an informer or a list has.
func versions[T client.Object](objects []T) map[string]string {
	all := map[string]string{}
	for _, obj := range objects {
		all[obj.GetNamespace()+"/"+obj.GetName()] = obj.GetResourceVersion()
	}
	return all
}

// TestExpiredResourceVersionsAreFollowedByDifferences: informers of all kinds,
// whose objects change while they are away, end up with what a list would have
// brought, and have listed only once.
func TestExpiredResourceVersionsAreFollowedByDifferences(t *testing.T) {
	for _, media := range []client.ContentType{client.JSON, client.Protobuf} {
		t.Run(string(media), func(t *testing.T) {
			ctx, server := bounded(t), levelwiretest.Start(t)
			writer := server.Client(client.Options{})
			namespaces(ctx, t, writer, "a", "b", "c")
			network, c := forgetful(t, server, client.Options{ContentType: media})
			f := informer.NewFactory(c, informer.Options{Reflector: impatient})
			gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
			selections := []informer.ListOptions{{}, {Namespace: "a"}, {LabelSelector: "mine=yes"}, {Namespaces: []string{"a", "b"}}, {FieldSelector: "metadata.name!=x1"}}
			var all []*informer.SharedInformer[*corev1.ConfigMap]
			for _, selected := range selections {
				all = append(all, informer.For[*corev1.ConfigMap](f, selected))
			}
			metadata, dynamic := informer.Metadata(f, gvr, selections[2]), informer.Dynamic(f, gvr, selections[2])
			f.Start(ctx)
			defer f.Shutdown()
			must(t, f.WaitForSync(ctx))
			random := rand.New(rand.NewPCG(3, 4))
			for round := range 6 {
				var version string
				network.forget(t, func() string {
					version = disturb(ctx, t, writer, random, 1+round*5)
					return version
				})
				for i, informer := range all {
					must(t, informer.WaitForResourceVersion(ctx, version))
					if got, want := versions(informer.Lister().List("", labels.Everything())), listed(ctx, t, writer, selections[i]); !maps.Equal(got, want) {
						t.Fatalf("round %d, %s: got %v, want %v", round, informer.Name(), got, want)
					}
				}
				must(t, metadata.WaitForResourceVersion(ctx, version))
				must(t, dynamic.WaitForResourceVersion(ctx, version))
				want := listed(ctx, t, writer, selections[2])
				if got := versions(metadata.Lister().List("", labels.Everything())); !maps.Equal(got, want) {
					t.Fatalf("round %d, metadata: got %v, want %v", round, got, want)
				}
				if got := versions(dynamic.Lister().List("", labels.Everything())); !maps.Equal(got, want) {
					t.Fatalf("round %d, dynamic: got %v, want %v", round, got, want)
				}
			}
			for _, informer := range f.Informers() {
				stats := informer.Stats().Reflector
				if stats.Lists[reflector.ListExpired] != 0 || stats.Differences[reflector.DifferenceApplied] < 6 || len(stats.Differences) != 1 {
					t.Errorf("%s: lists %v, differences %v", informer.Name(), stats.Lists, stats.Differences)
				}
			}
		})
	}
}

// disturb creates, changes and deletes ConfigMaps, and returns the last version.
func disturb(ctx context.Context, t *testing.T, c *client.Client, random *rand.Rand, times int) (version string) {
	t.Helper()
	for range times {
		namespace := string("abc"[random.IntN(3)])
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("x", random.IntN(20))}, Data: map[string]string{"n": fmt.Sprint(random.Int())}}
		if random.IntN(2) == 0 {
			cm.ObjectMeta = mine(cm.ObjectMeta)
		}
		endpoint := client.For[*corev1.ConfigMap](c).Namespace(namespace)
		done, err := endpoint.Create(ctx, cm, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			if random.IntN(3) == 0 {
				must(t, endpoint.Delete(ctx, cm.Name, metav1.DeleteOptions{}))
			}
			cm.Name += "-" + fmt.Sprint(random.Int())
			done, err = endpoint.Create(ctx, cm, metav1.CreateOptions{})
		}
		must(t, err)
		version = done.ResourceVersion
	}
	return version
}

func listed(ctx context.Context, t *testing.T, c *client.Client, selected informer.ListOptions) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, namespace := range append(selected.Namespaces, selected.Namespace)[:max(1, len(selected.Namespaces))] {
		list, err := client.For[*corev1.ConfigMap](c).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selected.LabelSelector, FieldSelector: selected.FieldSelector})
		must(t, err)
		maps.Copy(all, versions(list.Items))
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestServersWithoutDifferencesAreAskedOnce: all informers of a client know then.
func TestServersWithoutDifferencesAreAskedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		off   bool
		asked int
	}{"unsupported": {false, 1}, "switched off": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			ctx, server := bounded(t), levelwiretest.Start(t)
			network, c := forgetful(t, server, client.Options{})
			network.without = true
			opts := impatient
			opts.NoDifferences = test.off
			f := informer.NewFactory(c, informer.Options{Reflector: opts})
			configMaps := informer.For[*corev1.ConfigMap](f, informer.ListOptions{Namespace: "default"})
			f.Start(ctx)
			defer f.Shutdown()
			must(t, f.WaitForSync(ctx))
			made := 0
			for range 3 {
				var version string
				network.forget(t, func() string {
					made++
					version = createConfigMap(t, c, fmt.Sprint("x", made)).ResourceVersion
					return version
				})
				must(t, configMaps.WaitForResourceVersion(ctx, version))
			}
			network.mu.Lock()
			defer network.mu.Unlock()
			if n := configMaps.Stats().Reflector.Lists[reflector.ListExpired]; n != 3 || network.asked != test.asked {
				t.Errorf("%d lists, asked %d times for a difference", n, network.asked)
			}
		})
	}
}

// TestColdStartThroughADifference: the file is too old for a watch to resume
// from, but most of its objects have not changed.
func TestColdStartThroughADifference(t *testing.T) {
	ctx, server, dir := bounded(t), levelwiretest.Start(t), t.TempDir()
	writer := server.Client(client.Options{})
	for i := range 50 {
		createConfigMap(t, writer, fmt.Sprint("kept-", i))
	}
	createConfigMap(t, writer, "deleted-while-away")
	visit(t, writer, dir, func(*informer.SharedInformer[*corev1.ConfigMap]) {})
	must(t, client.For[*corev1.ConfigMap](writer).Namespace("default").Delete(ctx, "deleted-while-away", metav1.DeleteOptions{}))
	missed := createConfigMap(t, writer, "created-while-away")
	network, c := forgetful(t, server, client.Options{})
	network.forget(t, func() string { return missed.ResourceVersion })
	visit(t, c, dir, func(configMaps *informer.SharedInformer[*corev1.ConfigMap]) {
		lister, err := configMaps.ListerAfter(ctx, missed.ResourceVersion)
		must(t, err)
		for name, want := range map[string]bool{"kept-7": true, "deleted-while-away": false, "created-while-away": true} {
			if _, ok := lister.Get("default", name); ok != want {
				t.Errorf("%s is there: %v", name, ok)
			}
		}
		stats := configMaps.Stats()
		if stats.Reflector.ListCount() != 0 || stats.Disk.Restored != 51 || stats.Reflector.DifferenceObjects != 1 || configMaps.Freshness().Restored {
			t.Errorf("%+v, %+v", stats.Reflector, stats.Disk)
		}
	})
}

// TestDifferencesTransformOnce: what is kept has been transformed when it came.
func TestDifferencesTransformOnce(t *testing.T) {
	ctx, server := bounded(t), levelwiretest.Start(t)
	network, c := forgetful(t, server, client.Options{})
	createConfigMap(t, c, "kept")
	f := informer.NewFactory(c, informer.Options{Reflector: impatient})
	configMaps := informer.For[*corev1.ConfigMap](f, informer.ListOptions{Namespace: "default"})
	must(t, configMaps.SetTransform(func(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		cm.Data = map[string]string{"transformed": cm.Data["transformed"] + "once"}
		return cm, nil
	}))
	f.Start(ctx)
	defer f.Shutdown()
	must(t, f.WaitForSync(ctx))
	before, _ := configMaps.Lister().Get("default", "kept")
	var version string
	network.forget(t, func() string {
		version = createConfigMap(t, c, "missed").ResourceVersion
		return version
	})
	must(t, configMaps.WaitForResourceVersion(ctx, version))
	for _, name := range []string{"kept", "missed"} {
		if cm, ok := configMaps.Lister().Get("default", name); !ok || cm.Data["transformed"] != "once" || name == "kept" && cm != before {
			t.Errorf("%s: %v", name, cm)
		}
	}
	if n := configMaps.Stats().Reflector.Differences[reflector.DifferenceApplied]; n != 1 {
		t.Errorf("%d differences", n)
	}
}

// TestDifferencesOfCustomResources: they are bytes that differ like any others.
func TestDifferencesOfCustomResources(t *testing.T) {
	ctx, server := bounded(t), levelwiretest.Start(t)
	writer := server.Client(client.Options{})
	define(ctx, t, writer, "first")
	network, c := forgetful(t, server, client.Options{})
	f := informer.NewFactory(c, informer.Options{Reflector: impatient})
	things := informer.Dynamic(f, widgets, informer.ListOptions{})
	f.Start(ctx)
	defer f.Shutdown()
	must(t, f.WaitForSync(ctx))
	second := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"size": int64(3)}}}
	second.SetName("second")
	made, err := client.Dynamic(writer, widgets).Namespace("default").Create(ctx, second, metav1.CreateOptions{})
	must(t, err)
	must(t, things.WaitForResourceVersion(ctx, made.GetResourceVersion()))
	network.forget(t, func() string {
		made.Object["spec"] = map[string]any{"size": int64(4)}
		made, err = client.Dynamic(writer, widgets).Namespace("default").Update(ctx, made, metav1.UpdateOptions{})
		must(t, err)
		return made.GetResourceVersion()
	})
	must(t, things.WaitForResourceVersion(ctx, made.GetResourceVersion()))
	got, ok := things.Lister().Get("default", "second")
	if size, _, _ := unstructured.NestedInt64(got.Object, "spec", "size"); !ok || size != 4 || got.GetKind() != "Widget" {
		t.Errorf("got %v", got)
	}
	if stats := things.Stats().Reflector; stats.ListCount() != 1 || stats.Differences[reflector.DifferenceApplied] != 1 {
		t.Errorf("%+v", stats)
	}
}
