package relay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

func withDeltas(c *server.Config) { c.Relay.Deltas = true }

// large returns a config map of a size, which two of one generation have in common.
func large(name string, generation, size int) *corev1.ConfigMap {
	random := rand.New(rand.NewPCG(uint64(generation), 0))
	var text strings.Builder
	for text.Len() < size {
		fmt.Fprintf(&text, "variable-%d: %x\n", random.IntN(1000), random.Uint64())
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: map[string]string{"generation": fmt.Sprint(generation)}},
		Data:       map[string]string{"text": text.String(), "state": "new"},
	}
}

// follow reads the events of a watch until the object with a name is deleted.
func follow[T client.Object](t *testing.T, w *client.Watch[T], last string) (events []client.WatchEvent[T]) {
	t.Helper()
	for event, err := range w.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == "BOOKMARK" {
			continue
		}
		if events = append(events, event); event.Type == "DELETED" && event.Object.GetName() == last {
			return events
		}
	}
	t.Fatal("the stream has ended")
	return nil
}

// rollOut replaces objects one after the other as a rollout does: each one is updated twice
// and deleted, another one is created and updated twice.
func rollOut(t *testing.T, to client.Resource[*corev1.ConfigMap], objects []*corev1.ConfigMap, size int) (last string) {
	t.Helper()
	update := func(o *corev1.ConfigMap, states ...string) {
		var err error
		for _, state := range states {
			o.Data["state"] = state
			if o, err = to.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, o := range objects {
		next, err := to.Create(t.Context(), large(fmt.Sprint("second-", i), 2, size), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		update(next, "scheduled", "running")
		update(o, "terminating", "ended")
		if err := to.Delete(t.Context(), o.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		last = o.Name
	}
	return last
}

// TestThinLink: over a link of 1 Mbit/s a relay takes less than a twentieth of the bytes of
// a client, and its clients see the same events.
func TestThinLink(t *testing.T) {
	const count, size = 10, 50_000
	upstream := levelwiretest.Start(t)
	direct := configMaps(t, upstream)
	var objects []*corev1.ConfigMap
	for i := range count {
		o, err := direct.Create(t.Context(), large(fmt.Sprint("first-", i), 1, size), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	config, thin := behindProxy(t, upstream)
	relay := startRelay(t, config, withDeltas)
	version := objects[count-1].ResourceVersion
	through, err := configMaps(t, relay).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close()
	create(t, direct, "begin")
	if event, err := through.Next(); err != nil || event.Object.Name != "begin" {
		t.Fatalf("%v, %v", event, err)
	}
	thin.Limit(faultnet.ToClient, 1_000_000/8)
	direct2, plain := behindProxy(t, upstream)
	c, err := client.New(direct2, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	w, err := client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if event, err := w.Next(); err != nil || event.Object.Name != "begin" {
		t.Fatalf("%v, %v", event, err)
	}
	before, beforePlain := thin.Stats().Bytes[faultnet.ToClient], plain.Stats().Bytes[faultnet.ToClient]
	last := rollOut(t, direct, objects, size)
	want, got := follow(t, w, last), follow(t, through, last)
	bytes, plainBytes := thin.Stats().Bytes[faultnet.ToClient]-before, plain.Stats().Bytes[faultnet.ToClient]-beforePlain
	t.Logf("%d events: %d bytes to the relay, %d to a client, a ratio of %.0f", len(want), bytes, plainBytes, float64(plainBytes)/float64(bytes))
	if bytes*20 > plainBytes {
		t.Errorf("%d bytes to the relay, %d to a client", bytes, plainBytes)
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%d events through the relay, %d at the upstream, and they differ", len(got), len(want))
	}
	wantDeltas(t, relay, 1, 0)
}

// wantDeltas checks how many deltas a relay has got at least, and how many streams it has
// begun anew.
func wantDeltas(t *testing.T, relay *levelwiretest.Server, atLeast, failed float64) {
	t.Helper()
	if n := metric(t, relay, "levelwire_relay_deltas_total"); n < atLeast {
		t.Errorf("%v deltas", n)
	}
	if n := metric(t, relay, "levelwire_relay_deltas_failed_total"); n != failed {
		t.Errorf("%v deltas have failed, want %v", n, failed)
	}
}

// TestDeltasOfCustomResources: their JSON is made canonical by the relay, and is a base all
// the same.
func TestDeltasOfCustomResources(t *testing.T) {
	upstream := levelwiretest.Start(t)
	admin := upstream.Client(client.Options{})
	levelwiretest.ApplyFiles(t, admin, "testdata/widgets.yaml")
	relay := startRelay(t, startRelay(t, upstream.Config(), withDeltas).Config(), withDeltas)
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	endpoint := func(c *client.Client) client.Resource[*unstructured.Unstructured] {
		return client.ForResource(c, gvr, func() *unstructured.Unstructured { return &unstructured.Unstructured{} }).Namespace(metav1.NamespaceDefault)
	}
	direct, through := endpoint(admin), endpoint(relay.Client(client.Options{}))
	list, err := through.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 3 {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": fmt.Sprint("widget-", i)}, "spec": map[string]any{"zebra": "a", "colour": "blue", "size": int64(i)},
		}}
		if o, err = direct.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		want := []*unstructured.Unstructured{o}
		for _, colour := range []string{"red", "green"} {
			o = o.DeepCopy()
			_ = unstructured.SetNestedField(o.Object, colour, "spec", "colour")
			if o, err = direct.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			want = append(want, o)
		}
		for _, o := range want {
			if event, err := w.Next(); err != nil || !equality.Semantic.DeepEqual(event.Object, o) {
				t.Fatalf("%v, %v, want %v", event, err, o)
			}
		}
	}
	wantDeltas(t, relay, 9, 0)
}

// TestDamagedDelta: the relay begins its stream anew without deltas, and its clients notice
// nothing.
func TestDamagedDelta(t *testing.T) {
	upstream := levelwiretest.Start(t)
	damage := make(chan struct{}, 1) // the next delta is to be damaged
	relay := startRelay(t, damagedDeltas(t, upstream, damage), withDeltas)
	direct, through := configMaps(t, upstream), configMaps(t, relay)
	o := create(t, direct, "changes")
	w, err := through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: o.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 6 {
		if i == 2 {
			damage <- struct{}{}
		}
		o.Data = map[string]string{"x": fmt.Sprint(i)}
		if o, err = direct.Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if event, err := w.Next(); err != nil || !equality.Semantic.DeepEqual(event.Object, o) {
			t.Fatalf("%v, %v, want %v", event, err, o)
		}
	}
	wantDeltas(t, relay, 2, 1)
	if lists := metric(t, relay, "levelwire_relay_lists_total"); lists != 1 {
		t.Errorf("%v lists", lists)
	}
}

var digest = regexp.MustCompile(`"sha256":"....`)

// damagedDeltas returns the configuration of a server in front of another one that damages a
// delta for each value in damage.
func damagedDeltas(t *testing.T, s *levelwiretest.Server, damage chan struct{}) *rest.Config {
	t.Helper()
	config := s.Config()
	base, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(base) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			r.Body = damagedBody{r.Body, damage}
			return nil
		},
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return &rest.Config{Host: front.URL}
}

// damagedBody is an answer whose deltas are damaged.
type damagedBody struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
	damage chan struct{}
}

// Read implements io.Reader.
func (d damagedBody) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	if at := digest.FindIndex(p[:n]); at != nil {
		select {
		case <-d.damage:
			copy(p[at[1]-4:], bytes.Repeat([]byte("x"), 4))
		default:
		}
	}
	return n, err
}

// Close implements io.Closer.
func (d damagedBody) Close() error { return d.body.Close() }

// TestDeltasAreSharedByStreams: a stream that begins later has other objects to begin with. It
// gets whole objects until it has the same ones, and the upstream compresses no change twice.
func TestDeltasAreSharedByStreams(t *testing.T) {
	upstream := levelwiretest.Start(t)
	direct := configMaps(t, upstream)
	var relays []*levelwiretest.Server
	var watches []*client.Watch[*corev1.ConfigMap]
	begin := func() {
		relay := startRelay(t, upstream.Config(), withDeltas)
		list, err := configMaps(t, relay).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := configMaps(t, relay).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		relays, watches = append(relays, relay), append(watches, w)
	}
	const count = 12
	name := 0
	write := func() {
		for range count {
			name++
			made, err := direct.Create(t.Context(), large(fmt.Sprint("shared-", name), 1, 2000), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range watches {
				if event, err := w.Next(); err != nil || !equality.Semantic.DeepEqual(event.Object, made) {
					t.Fatalf("%v, %v, want %v", event, err, made)
				}
			}
		}
	}
	begin()
	write()
	begin()
	write()
	wantDeltas(t, relays[0], count, 0)
	wantDeltas(t, relays[1], 1, 0)
	if n := metric(t, upstream, `levelwire_encodes_total{form="delta"}`); n > 2*count {
		t.Errorf("%v deltas were made of %d changes", n, 2*count)
	}
}
