package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/internal/testwait"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/apiserver/watchstream"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/storage"
)

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// hanging is an upstream of config maps whose streams bring nothing new until they are told to.
type hanging struct {
	mu      sync.Mutex
	version int    // that is current
	goAway  bool   // the next answer to a probe asks for another connection
	age     string // that answers to probes declare
	behind  string // how old they say that the caches of the upstream are
	probes  string // the address that the last probe came from
	streams string // the same of the last stream
	name    string // that the stream has been given
	// promises has questions for the version answered with the promise of a bookmark, and keeps
	// has it sent.
	promises, keeps bool
	unchanged       bool // second watches say that nothing has changed
	shorts          int  // such watches
	events          chan string
}

// bookmark is the event that says that the stream has everything up to a version.
func bookmark(version int, annotations string) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s}}}`+"\n", version, annotations)
}

// ServeHTTP implements http.Handler.
func (h *hanging) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	h.mu.Lock()
	defer h.mu.Unlock()
	query := req.URL.Query()
	switch {
	case req.URL.Path == "/version":
		h.probes = req.RemoteAddr
		if h.goAway {
			w.Header().Set("Connection", "close") // HTTP/2 sends GOAWAY for it
			h.goAway = false
		}
		if h.age != "" {
			w.Header().Set("Age", h.age)
		}
		if h.behind != "" {
			w.Header().Set(stalenessHeader, h.behind)
		}
	case req.URL.Path == "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list","watch"]}]}`)
	case query.Get("watch") == "":
		if asked := req.Header.Get(watchstream.ProgressHeader); h.promises && asked != "" && asked == h.name {
			w.Header().Set(watchstream.ProgressHeader, asked)
			if h.keeps {
				h.events <- bookmark(h.version, "")
			}
		}
		_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[]}`, h.version)
	case query.Get("sendInitialEvents") == "true":
		h.streams, h.name = req.RemoteAddr, req.Header.Get(watchstream.ProgressHeader)
		_, _ = io.WriteString(w, bookmark(h.version, `,"annotations":{"k8s.io/initial-events-end":"true"}`))
		h.mu.Unlock()
		defer h.mu.Lock()
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case event := <-h.events:
				_, _ = io.WriteString(w, event)
			case <-req.Context().Done():
				return
			}
		}
	default:
		h.shorts++
		if h.unchanged {
			_, _ = io.WriteString(w, bookmark(h.version, ""))
		}
	}
}

func (h *hanging) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// sameConnection reports whether the last probe came on the connection of the stream.
func (h *hanging) sameConnection() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.probes == h.streams
}

// declaredBy returns what a relay answers to the probes of others about its caches.
func declaredBy(t *testing.T, r *Relay) string {
	t.Helper()
	w := httptest.NewRecorder()
	if err := r.Describe(w, httptest.NewRequest(http.MethodGet, versionPath, nil)); err != nil {
		t.Fatal(err)
	}
	return w.Header().Get(stalenessHeader)
}

// runningRelayOf returns a relay that runs in front of an upstream, and whose time the test sets. Its context ends with the test.
func runningRelayOf(t *testing.T, upstream http.Handler) (*Relay, *clock) {
	t.Helper()
	server := httptest.NewUnstartedServer(upstream)
	server.EnableHTTP2 = true
	server.StartTLS()
	r, err := New(Options{Config: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, Builtin: builtin.Table()})
	if err != nil {
		t.Fatal(err)
	}
	now := &clock{now: time.Unix(1_000_000, 0)}
	r.contact.now = now.read
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		r.wait.Wait()
		r.client.CloseIdleConnections()
		server.Close()
	})
	r.running = ctx
	return r, now
}

// sourceOf returns the source of the config maps of an upstream, whose cache has been filled,
// and its relay, whose time the test sets.
func sourceOf(t *testing.T, upstream *hanging) (*source, *clock) {
	t.Helper()
	r, now := runningRelayOf(t, upstream)
	s, err := r.use(r.running, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.cache.Ready():
	case <-r.running.Done():
		t.Fatal("the cache is not filled")
	}
	return s, now
}

// TestStreamHangsWhileProbesAreQuick: probes that are answered on another connection do not
// make a stream current that brings nothing, and neither do answers from memory.
func TestStreamHangsWhileProbesAreQuick(t *testing.T) {
	upstream := &hanging{version: 7, events: make(chan string)}
	s, now := sourceOf(t, upstream)
	r, ctx := s.relay, t.Context()
	until := func(what string, holds func() bool) {
		t.Helper()
		testwait.Stable(t, what, func() (any, bool) {
			if holds() {
				return nil, true
			}
			r.probeOnce(ctx)
			return s.stream.age(), false
		})
	}
	age := func(want time.Duration) func() bool { return func() bool { return s.stream.age() == want } }

	now.advance(time.Second)
	until("the stream is current as of a probe on its connection", age(0))
	if !upstream.sameConnection() {
		t.Fatal("the stream and probes are on different connections")
	}
	upstream.set(func() { upstream.age = "70" })
	now.advance(time.Second)
	if r.probeOnce(ctx); s.stream.age() != time.Second {
		t.Errorf("after a probe that was answered from memory the age is %s", s.stream.age())
	}
	upstream.set(func() { upstream.age = "" })
	until("the stream is current again", age(0))

	upstream.set(func() { upstream.behind = "1.5" })
	now.advance(time.Second)
	r.probeOnce(ctx)
	now.advance(time.Second)
	until("the stream is as old as what it comes from", age(1500*time.Millisecond))
	if got := declaredBy(t, r); got != "1.500" {
		t.Errorf("the relay says that its caches are %q seconds old", got)
	}
	upstream.set(func() { upstream.behind = "3600" }) // one cache of the upstream, perhaps another one
	asked := r.counts.questions.Load()
	for s.stream.age() < verifyBesides-time.Second {
		now.advance(time.Second)
		r.probeOnce(ctx)
	}
	if r.counts.questions.Load() != asked || s.verifying.Load() {
		t.Errorf("the stream is verified at an age of %s", s.stream.age())
	}
	now.advance(time.Second)
	until("the stream is verified by itself", age(0))
	upstream.set(func() { upstream.behind = "nonsense" })
	now.advance(time.Second)
	until("the stream is current, as far as is known", age(0))
	upstream.set(func() { upstream.behind = "" })

	upstream.set(func() { upstream.goAway = true })
	until("probes are on another connection", func() bool { return !upstream.sameConnection() })
	upstream.set(func() { upstream.version = 8 })
	for i := range 10 {
		now.advance(time.Second)
		if r.probeOnce(ctx); s.stream.age() != time.Duration(i+1)*time.Second {
			t.Fatalf("%d s after a write that the stream has not brought, the age is %s", i+1, s.stream.age())
		}
	}
	upstream.events <- `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"8"}}}` + "\n"
	until("the stream has caught up", func() bool { return s.cache.Reached() == storage.Revision(8) && s.stream.age() < verifyFrom })
}

// TestProbeOvertakes: a probe counts when all that had arrived before its answer has been applied.
func TestProbeOvertakes(t *testing.T) {
	now := &clock{now: time.Unix(1_000_000, 0)}
	var of contact
	of.now = now.read
	s := &stream{contact: &of}
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	a := &arrivals{now: now.read, conn: here}
	s.live(s.begin(a), now.read())
	body := &arrivingBody{io.NopCloser(strings.NewReader("events that have arrived")), a}
	probe := func() bool { return s.probed(here, answered{now.read(), now.read(), now.read()}) }
	read := func(n int) {
		t.Helper()
		if n, err := io.ReadFull(body, make([]byte, n)); err != nil {
			t.Fatal(n, err)
		}
	}

	read(8)
	now.advance(time.Second)
	if !probe() || s.age() != time.Second {
		t.Errorf("a probe was answered before all was read: age %s", s.age())
	}
	read(8)
	if s.age() != time.Second {
		t.Errorf("more has arrived than was read: age %s", s.age())
	}
	if n, err := body.Read(make([]byte, 100)); n != 8 || err != nil {
		t.Fatal(n, err)
	}
	if s.age() != time.Second {
		t.Errorf("what was read last has not been applied: age %s", s.age())
	}
	a.begin() // the reader asks for more
	if s.age() != 0 {
		t.Errorf("all has been applied: age %s", s.age())
	}
	now.advance(time.Second)
	if s.probed(there, answered{now.read(), now.read(), now.read()}) || s.age() != time.Second {
		t.Errorf("a probe on another connection: age %s", s.age())
	}
	if !probe() || s.age() != 0 {
		t.Errorf("a probe while the reader waits: age %s", s.age())
	}
	now.advance(verifyFrom + time.Second)
	if probe() || s.age() != verifyFrom+time.Second {
		t.Errorf("a probe after a while without any: age %s", s.age())
	}
}
