package reflector_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/levelwiretest"
)

// replica is a store that says when it has changed.
type replica struct {
	mu      sync.Mutex
	objects map[string]string // name to version
	changed chan struct{}     // has room for one
}

func newReplica() *replica {
	return &replica{objects: map[string]string{}, changed: make(chan struct{}, 1)}
}

func (r *replica) change(f func(map[string]string)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.objects)
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return nil
}

func (r *replica) Add(obj *corev1.ConfigMap) error {
	return r.change(func(m map[string]string) { m[obj.Name] = obj.ResourceVersion })
}

func (r *replica) Update(obj *corev1.ConfigMap) error { return r.Add(obj) }

func (r *replica) Delete(obj *corev1.ConfigMap) error {
	return r.change(func(m map[string]string) { delete(m, obj.Name) })
}

func (r *replica) Replace(list []*corev1.ConfigMap, _ string) error {
	return r.change(func(m map[string]string) {
		clear(m)
		for _, obj := range list {
			m[obj.Name] = obj.ResourceVersion
		}
	})
}

// await waits until the store holds exactly want.
func (r *replica) await(ctx context.Context, t testing.TB, want map[string]string) {
	t.Helper()
	for {
		r.mu.Lock()
		equal := maps.Equal(r.objects, want)
		r.mu.Unlock()
		if equal {
			return
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			t.Fatalf("the store did not converge: %d objects, want %d", len(r.objects), len(want))
		}
	}
}

// writer changes a namespace directly, and knows what must come of it.
type writer struct {
	t     *testing.T
	maps  client.Resource[*corev1.ConfigMap]
	state map[string]string
	n     int
}

// write creates, updates and deletes.
func (w *writer) write(ctx context.Context, objects int) {
	w.t.Helper()
	for range objects {
		w.n++
		name := fmt.Sprintf("object-%d", w.n)
		obj, err := w.maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}, metav1.CreateOptions{})
		if err == nil {
			obj.Data = map[string]string{"x": name}
			obj, err = w.maps.Update(ctx, obj, metav1.UpdateOptions{})
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.state[name] = obj.ResourceVersion
		if w.n%3 == 0 {
			gone := fmt.Sprintf("object-%d", w.n-1)
			if err := w.maps.Delete(ctx, gone, metav1.DeleteOptions{}); err != nil {
				w.t.Fatal(err)
			}
			delete(w.state, gone)
		}
	}
}

// clients returns one client that talks to the server directly, and one that
// does through a proxy.
func clients(t testing.TB, s *levelwiretest.Server, opts client.Options) (direct, proxied *client.Client, proxy *faultnet.Proxy) {
	t.Helper()
	cfg := s.Config()
	var err error
	if direct, err = client.New(cfg, client.Options{}); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	if proxy, err = faultnet.New(u.Host); err != nil {
		t.Fatal(err)
	}
	cfg.Host = "https://" + proxy.Addr()
	if proxied, err = client.New(cfg, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		direct.CloseIdleConnections()
		proxied.CloseIdleConnections()
		if err := proxy.Close(); err != nil {
			t.Errorf("proxy: %v", err)
		}
	})
	return direct, proxied, proxy
}

// written selects what the tests write: the server itself puts its
// certificates into every namespace.
func written(o *metav1.ListOptions) { o.FieldSelector = "metadata.name!=kube-root-ca.crt" }

// Whatever happens to the connection, the store converges to the server's
// state by resuming: there is one list, the first.
func TestFaultyNetworkNeedsNoSecondList(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := levelwiretest.Start(t)
	probes := client.Options{ReadIdleTimeout: 300 * time.Millisecond, PingTimeout: 300 * time.Millisecond}
	http1 := probes
	http1.ForceHTTP1 = true
	// Behind a proxy that keeps its side of TCP alive, only silence shows that an
	// HTTP/1.1 watch is dead.
	for name, test := range map[string]struct {
		opts    client.Options
		silence time.Duration
	}{
		"HTTP/1.1":          {http1, time.Second},
		"HTTP/2":            {probes, 0},
		"HTTP/2 + protobuf": {client.Options{ContentType: client.Protobuf, ReadIdleTimeout: probes.ReadIdleTimeout, PingTimeout: probes.PingTimeout}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			direct, proxied, proxy := clients(t, s, test.opts)
			failed := make(chan error, 1)
			store := newReplica()
			r, err := reflector.New(reflector.Resource(client.For[*corev1.ConfigMap](proxied).Namespace("default"), written),
				reflector.Store[*corev1.ConfigMap](store), reflector.Options{
					SilenceTimeout: test.silence, OpenTimeout: time.Second,
					Backoff: reflector.Backoff{Base: 20 * time.Millisecond, Max: 100 * time.Millisecond},
					OnError: func(_ string, err error) {
						select {
						case failed <- err:
						default:
						}
					},
				})
			if err != nil {
				t.Fatal(err)
			}
			runCtx, stop := context.WithCancel(ctx)
			ran := make(chan error, 1)
			go func() { ran <- r.Run(runCtx) }()
			w := &writer{t: t, maps: client.For[*corev1.ConfigMap](direct).Namespace("default"), state: map[string]string{}}
			if err := w.maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			w.write(ctx, 20)
			store.await(ctx, t, w.state)
			first := r.Stats() // on a busy machine the probes may end a list before it is complete

			for _, fault := range faults(proxy, failed) {
				before := r.Stats().ResumeCount()
				fault.do(func() { w.write(ctx, 20) })
				w.write(ctx, 3)
				store.await(ctx, t, w.state)
				proxy.Heal()
				if got := r.Stats().ResumeCount(); got == before {
					t.Errorf("%s: the watch was not opened again: the fault did nothing", fault.name)
				}
			}
			stats := r.Stats()
			if stats.ListCount() != first.ListCount() || stats.StreamingLists != first.StreamingLists || stats.StreamingLists == 0 || stats.DecodeErrors != 0 || stats.Stale != 0 {
				t.Errorf("%+v", stats)
			}
			t.Logf("%d watches, resumes %v", stats.Watches, stats.Resumes)
			stop()
			if err := <-ran; err != nil {
				t.Error(err)
			}
		})
	}
}

// fault spoils a network, lets writes happen meanwhile, and mends it.
type fault struct {
	name string
	do   func(meanwhile func())
}

func faults(proxy *faultnet.Proxy, failed chan error) []fault {
	// noticed waits for the next failure that the reflector reports.
	noticed := func() {
		select {
		case <-failed: // an older one
		default:
		}
		<-failed
	}
	return []fault{
		{"cut", func(meanwhile func()) { proxy.Cut(); meanwhile() }},
		{"cut and refused", func(meanwhile func()) {
			proxy.Refuse(true)
			proxy.Cut()
			meanwhile()
			noticed()
			proxy.Refuse(false)
		}},
		{"cut within an event", func(meanwhile func()) { proxy.CutAfter(faultnet.ToClient, 700); meanwhile() }},
		{"half closed", func(meanwhile func()) { proxy.CloseWrite(faultnet.ToClient); meanwhile() }},
		{"stalled", func(meanwhile func()) {
			proxy.Stall(faultnet.ToClient, true)
			meanwhile()
			noticed()
			proxy.Stall(faultnet.ToClient, false)
		}},
		{"half open", func(meanwhile func()) {
			proxy.Stall(faultnet.ToClient, true)
			proxy.Stall(faultnet.ToServer, true)
			meanwhile()
			noticed()
			proxy.Cut() // what was under way is lost
			proxy.Heal()
		}},
	}
}
