package informer_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/internal/faultnet"
)

// lives is a factory of pods with a server that its handler stands for.
type lives struct {
	factory *informer.Factory
	pods    *informer.SharedInformer[*corev1.Pod]
	pipe    atomic.Pointer[faultnet.Pipe] // what is dialed
}

// live runs test with a factory of pods, and with servers that are ended behind it.
func live(t *testing.T, handler http.Handler, test func(t *testing.T, l *lives, another func(http.Handler) *http.Server)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lives{}
		var ended []func()
		serve := func(handler http.Handler) *http.Server {
			pipe, protocols := faultnet.NewPipe(), new(http.Protocols)
			protocols.SetUnencryptedHTTP2(true)
			json := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				handler.ServeHTTP(w, r)
			})
			server := &http.Server{Handler: json, Protocols: protocols, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
			served := make(chan struct{})
			go func() { defer close(served); _ = server.Serve(pipe) }()
			l.pipe.Store(pipe)
			ended = append(ended, func() { _ = server.Close(); <-served })
			return server
		}
		serve(handler)
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			return l.pipe.Load().Dial(ctx, network, address)
		}
		quiet := slog.New(slog.DiscardHandler)
		c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{Dial: dial, UnencryptedHTTP2: true, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		l.factory = informer.NewFactory(c, informer.Options{Logger: quiet, Reflector: reflector.Options{PagedList: true}})
		l.pods = informer.For[*corev1.Pod](l.factory, informer.ListOptions{})
		test(t, l, serve)
		l.factory.Shutdown()
		c.CloseIdleConnections()
		for _, end := range ended {
			end()
		}
	})
}

// has checks the cache's keys.
func (l *lives) has(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if have := slices.Sorted(slices.Values(l.pods.Lister().Keys())); !slices.Equal(have, want) {
		t.Errorf("the cache has %v, want %v", have, want)
	}
}

// TestGoAwayWithinAStream: a server that stops lets the stream go on, and takes no others; then it
// ends. What it still sends is used, and another server is asked for what follows, without a list.
func TestGoAwayWithinAStream(t *testing.T) {
	var more chan struct{}
	var lists, watches atomic.Int32
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			lists.Add(1)
			oddBody(oddList)(w, r)
			return
		}
		watches.Add(1)
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = io.WriteString(w, oddEvent[:40])
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Second)
		_, _ = io.WriteString(w, oddEvent[40:]+"\n")
	})
	live(t, handler, func(t *testing.T, l *lives, another func(http.Handler) *http.Server) {
		more = make(chan struct{}) // of the bubble
		var from atomic.Pointer[string]
		first := another(handler)
		l.factory.Start(t.Context())
		time.Sleep(time.Minute)
		l.has(t, "x/a")
		stopped := make(chan error)
		go func() { stopped <- first.Shutdown(t.Context()) }() // GOAWAY, and the stream goes on
		time.Sleep(10 * time.Second)
		another(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			version := r.URL.Query().Get("resourceVersion")
			from.Store(&version)
			oddLines(`{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"x","uid":"1","resourceVersion":"12"}}}`)(w, r)
		}))
		close(more)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		l.has(t, "x/b")
		if v := from.Load(); v == nil || *v != "11" || lists.Load() != 1 || watches.Load() != 1 {
			t.Errorf("the second server was asked from %v, the first for %d lists and %d watches", v, lists.Load(), watches.Load())
		}
		if err := l.pods.Healthy(time.Minute); err != nil {
			t.Error(err)
		}
	})
}

// TestContextsThatEnd: the context of Start ends before a list is there, within one, or when it is
// complete; what waits ends, and says why, and the server is left in peace.
func TestContextsThatEnd(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	half := oddLines(oddList[:60])
	for name, test := range map[string]struct {
		list   http.HandlerFunc
		synced bool
	}{"before a list": {hang, false}, "within a list": {half, false}, "after a list": {oddBody(oddList), true}} {
		t.Run(name, func(t *testing.T) {
			var open atomic.Int32
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				open.Add(1)
				defer open.Add(-1)
				if r.URL.Query().Get("watch") == "" {
					test.list(w, r)
					return
				}
				oddLines()(w, r)
			})
			live(t, handler, func(t *testing.T, l *lives, _ func(http.Handler) *http.Server) {
				ctx, cancel := context.WithCancel(t.Context())
				l.factory.Start(ctx)
				l.factory.Start(ctx) // it runs once
				waited := make(chan error, 1)
				go func() { waited <- l.factory.WaitForSync(t.Context()) }()
				time.Sleep(10 * time.Second)
				if open.Load() != 1 {
					t.Errorf("%d requests are open", open.Load())
				}
				cancel()
				if err := <-waited; (err == nil) != test.synced {
					t.Errorf("waited: %v", err)
				}
				time.Sleep(time.Second)
				if open.Load() != 0 {
					t.Errorf("%d requests are open at the end", open.Load())
				}
				if err := l.pods.Healthy(time.Hour); err == nil {
					t.Error("healthy, and stopped")
				}
				l.factory.Start(t.Context()) // what has stopped does not begin again
				time.Sleep(10 * time.Second)
				if open.Load() != 0 || l.factory.StartInformer(t.Context(), l.pods) != nil {
					t.Errorf("%d requests are open after another start", open.Load())
				}
			})
		})
	}
}

// TestHandlersInTheWay: a handler that panics, that blocks for minutes, or ends the context of the
// factory, keeps no other handler and no cache from going on, and no Shutdown from ending.
func TestHandlersInTheWay(t *testing.T) {
	ctx, cancel := context.Background(), func() {}
	for name, handle := range map[string]func(){
		"panics": func() { panic("handler") },
		"blocks": func() { time.Sleep(7 * time.Minute) },
		"stops":  func() { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "" {
					oddBody(oddList)(w, r)
					return
				}
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(time.Minute):
					oddLines(oddEvent)(w, r)
				case <-r.Context().Done():
				}
			})
			live(t, handler, func(t *testing.T, l *lives, _ func(http.Handler) *http.Server) {
				ctx, cancel = context.WithCancel(t.Context())
				defer cancel()
				var other atomic.Int32
				for _, f := range []func(){handle, func() { other.Add(1) }} {
					if _, err := l.pods.AddHandler(informer.HandlerFuncs[*corev1.Pod]{Add: func(*corev1.Pod, bool) { f() }}, informer.HandlerOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				l.factory.Start(ctx)
				time.Sleep(2 * time.Minute)
				if name == "stops" {
					l.has(t, "x/a")
					return
				}
				l.has(t, "x/a", "x/b")
				if err := l.pods.Healthy(5 * time.Minute); err != nil || other.Load() != 2 {
					t.Errorf("%v, and the other handler was called %d times", err, other.Load())
				}
			})
		})
	}
}
