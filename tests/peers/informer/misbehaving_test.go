package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// misbehaving is a server of one resource, widgets. Its lists and watches are counted from
// 1; streaming lists are refused as by a server that does not know them.
type misbehaving struct {
	// list and watch answer the nth request of their kind.
	list, watch    func(n int64, w http.ResponseWriter, r *http.Request)
	cluster        bool // the resource is cluster-scoped
	lists, watches atomic.Int64
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func (s *misbehaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	namespaced := strings.Contains(r.URL.Path, "/namespaces/")
	switch q := r.URL.Query(); {
	case r.URL.Path == "/apis/example.com/v1":
		_, _ = fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[{"name":"widgets","kind":"Widget","namespaced":%v,"verbs":["list","watch"]}]}`, !s.cluster)
	case !strings.HasSuffix(r.URL.Path, "/widgets"), r.Method != http.MethodGet, s.cluster && namespaced:
		refuse(w, http.StatusNotFound, "NotFound")
	case q.Get("sendInitialEvents") != "":
		refuse(w, http.StatusUnprocessableEntity, "Invalid")
	case q.Get("watch") != "":
		s.watch(s.watches.Add(1), w, r)
	default:
		s.list(s.lists.Add(1), w, r)
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason})
}

func send(w http.ResponseWriter, texts ...string) {
	for _, text := range texts {
		_, _ = w.Write([]byte(text))
	}
	_ = http.NewResponseController(w).Flush()
}

func hold(r *http.Request) { <-r.Context().Done() }

func widget(name, version string) string {
	return fmt.Sprintf(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"namespace":"default","name":%q,"uid":%q,"resourceVersion":%q}}`, name, name, version)
}

func event(typ, object string) string {
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", typ, object)
}

func widgetList(version, token string, items ...string) string {
	return fmt.Sprintf(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, token, strings.Join(items, ","))
}

func statusEvent(code int) string {
	return event("ERROR", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":%d,"reason":%q,"message":"on purpose"}`, code,
		map[int]string{410: "Expired", 500: "InternalError"}[code]))
}

// lists answers each list in turn, and the last one for ever.
func lists(bodies ...string) func(int64, http.ResponseWriter, *http.Request) {
	return func(n int64, w http.ResponseWriter, _ *http.Request) {
		send(w, bodies[min(int(n), len(bodies))-1])
	}
}

// from20 answers watches from version 20, and holds those from others.
func from20(answer func(w http.ResponseWriter, r *http.Request)) func(int64, http.ResponseWriter, *http.Request) {
	return func(_ int64, w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") == "20" {
			answer(w, r)
			return
		}
		send(w)
		hold(r)
	}
}

// seen is what an informer has come to.
type seen struct {
	keys    string
	updates int64 // calls of a handler
	synced  bool
}

// theirPatience is for how long client-go's informer is looked at, which waits for 0.8 to 1.6 s
// after a failure; what it shows after that is not of interest here.
const theirPatience = 1700 * time.Millisecond

// TestMisbehavingServers gives the same broken answers to client-go's informer and to ours,
// and asserts what ours does. What client-go's does is logged.
func TestMisbehavingServers(t *testing.T) {
	for name, test := range map[string]struct {
		server  func() *misbehaving
		keys    string // in the end
		updates int64  // calls of a handler
		// requests is the most that ours may send to come there.
		requests int64
	}{
		"an event without a name": {server: func() *misbehaving {
			return &misbehaving{list: lists(widgetList("20", "", widget("a", "10")), widgetList("30", "", widget("c", "25"))),
				watch: from20(func(w http.ResponseWriter, _ *http.Request) {
					send(w, event("DELETED", `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{}}`))
				})}
		}, keys: "c", requests: 5},
		"a later page that is no list": {server: func() *misbehaving {
			return &misbehaving{list: func(n int64, w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				switch {
				case n > 1 && q.Get("continue") != "":
					send(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[]}`)
				case n > 1 && q.Get("limit") != "":
					send(w, widgetList("30", "next", widget("a", "10"), widget("c", "25")))
				case n > 1:
					send(w, widgetList("30", "", widget("a", "10"), widget("b", "11"), widget("c", "25")))
				default:
					send(w, widgetList("20", "", widget("a", "10"), widget("b", "11")))
				}
			}, watch: from20(func(w http.ResponseWriter, _ *http.Request) { send(w, statusEvent(410)) })}
		}, keys: "a b c", requests: 6},
		"a deletion with the version of the last change": {server: func() *misbehaving {
			return &misbehaving{list: lists(widgetList("20", "", widget("a", "10"), widget("b", "11"))), watch: from20(func(w http.ResponseWriter, r *http.Request) {
				send(w, event("ADDED", widget("c", "30")), event("DELETED", widget("a", "10")))
				hold(r)
			})}
		}, keys: "b c", requests: 2},
		"the same error in each stream": {server: func() *misbehaving {
			return &misbehaving{list: lists(widgetList("20", "", widget("a", "10")), widgetList("40", "", widget("c", "35"))),
				watch: from20(func(w http.ResponseWriter, _ *http.Request) { send(w, statusEvent(500)) })}
		}, keys: "c", requests: 8},
		"a Retry-After of a day": {server: func() *misbehaving {
			return &misbehaving{list: lists(widgetList("20", "", widget("a", "10"))), watch: func(n int64, w http.ResponseWriter, r *http.Request) {
				if n == 1 {
					w.Header().Set("Retry-After", "86400")
					refuse(w, http.StatusTooManyRequests, "TooManyRequests")
					return
				}
				send(w, event("ADDED", widget("b", "21")))
				hold(r)
			}}
		}, keys: "a b", requests: 3},
		"a cluster-scoped kind in a factory with a namespace": {server: func() *misbehaving {
			return &misbehaving{cluster: true, list: lists(widgetList("20", "", widget("a", "10"))), watch: from20(func(w http.ResponseWriter, r *http.Request) { send(w); hold(r) })}
		}, keys: "a", requests: 2},
		"watches that are forbidden": {server: func() *misbehaving {
			return &misbehaving{list: lists(widgetList("20", "", widget("a", "10")), widgetList("20", "", widget("a", "10")), widgetList("30", "", widget("c", "25"))),
				watch: func(_ int64, w http.ResponseWriter, r *http.Request) {
					if r.URL.Query().Get("resourceVersion") == "30" { // the end of the case, or requests would go on while they are counted
						send(w)
						hold(r)
						return
					}
					refuse(w, http.StatusForbidden, "Forbidden")
				}}
		}, keys: "c", requests: 6},
		"an event of a version that is known": {server: func() *misbehaving {
			return &misbehaving{list: lists(widgetList("20", "", widget("a", "10"))), watch: from20(func(w http.ResponseWriter, r *http.Request) {
				send(w, event("MODIFIED", widget("a", "10")), event("ADDED", widget("a", "10")), event("ADDED", widget("b", "21")))
				hold(r)
			})}
		}, keys: "a b", requests: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := test.server(), test.server()
			want := seen{test.keys, test.updates, true}
			got := followOurs(t, ours, want)
			if requests := ours.lists.Load() + ours.watches.Load(); got != want || requests > test.requests {
				t.Errorf("Levelwire: %+v after %d lists and %d watches, want %+v after %d requests", got, ours.lists.Load(), ours.watches.Load(), want, test.requests)
			}
			t.Logf("client-go: %+v after %d lists and %d watches; Levelwire: %+v after %d and %d",
				followTheirs(t, theirs, want), theirs.lists.Load(), theirs.watches.Load(), got, ours.lists.Load(), ours.watches.Load())
		})
	}
}

// await polls until an informer has come to what is wanted, which is the end of each case. Handlers
// are called after the keys are shown.
func await(patience time.Duration, show func() seen, want seen) seen {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if got := show(); got == want || time.Now().After(end) {
			return got
		}
	}
}

func followOurs(t *testing.T, s *misbehaving, want seen) seen {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	defer server.CloseClientConnections()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	f := informer.NewFactory(c, informer.Options{Namespace: "default", Logger: slog.New(slog.DiscardHandler),
		Reflector: reflector.Options{Backoff: reflector.Backoff{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond}}})
	i := informer.Dynamic(f, widgets, informer.ListOptions{})
	var updates atomic.Int64
	if _, err := i.AddHandler(informer.HandlerFuncs[*unstructured.Unstructured]{Update: func(_, _ *unstructured.Unstructured) { updates.Add(1) }}, informer.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx)
	defer f.Shutdown()
	defer cancel()
	got := await(time.Minute, func() seen { return seen{namesOf(i.Lister().Keys()), updates.Load(), i.HasSynced()} }, want)
	if err := i.Err(); err != nil {
		t.Errorf("the informer has ended: %v", err)
	}
	return got
}

func followTheirs(t *testing.T, s *misbehaving, want seen) seen {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	defer server.CloseClientConnections()
	c, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c, 0, "default", nil)
	i := f.ForResource(widgets).Informer()
	var updates atomic.Int64
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { updates.Add(1) }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx.Done())
	defer f.Shutdown()
	defer cancel()
	return await(theirPatience, func() seen { return seen{namesOf(i.GetStore().ListKeys()), updates.Load(), i.HasSynced()} }, want)
}

func namesOf(keys []string) string {
	names := map[string]bool{}
	for _, key := range keys {
		names[key[strings.LastIndex(key, "/")+1:]] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}
