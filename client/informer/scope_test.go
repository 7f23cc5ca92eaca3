package informer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/internal/faultnet"
)

var widgetsResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// widgetServer serves one custom resource, whose definition the test replaces.
type widgetServer struct {
	mu sync.Mutex
	// discovery is the resource's entry in /apis/example.com/v1; "": there is no such
	// group, "403": it is refused.
	discovery string
	cluster   bool     // of the requests that it answers
	forbidden bool     // to ask for all namespaces
	pages     bool     // a 404 is the page of kube-apiserver and no Status
	objects   []string // "namespace/name", or "name"
	version   int
	changed   chan struct{} // closed by set
	refused   int           // requests in a namespace of a cluster-scoped resource
	asked     int           // of discovery
}

// The entries of discovery.
const (
	clusterWidgets    = `{"name":"widgets","kind":"Widget","namespaced":false}`
	namespacedWidgets = `{"name":"widgets","kind":"Widget","namespaced":true}`
)

// set replaces the definition and the objects, and ends the watches.
func (s *widgetServer) set(discovery string, objects ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discovery, s.objects = discovery, objects
	s.cluster = discovery != "" && !strings.Contains(discovery, "true")
	s.version += 10
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *widgetServer) counts() (refused, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused, s.asked
}

func (s *widgetServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	body, code, watched := s.answer(r)
	changed := s.changed
	s.mu.Unlock()
	if code == http.StatusNotFound && s.pages {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
	if !watched {
		return
	}
	_ = http.NewResponseController(w).Flush()
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	select {
	case <-changed:
	case <-end.C:
	case <-r.Context().Done():
	}
}

// answer needs mu.
func (s *widgetServer) answer(r *http.Request) (body string, code int, watched bool) {
	refusal := func(code int, reason metav1.StatusReason) (string, int, bool) {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"the server refuses"}`, code, reason), code, false
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/apis/example.com/v1")
	switch {
	case r.URL.Path == "/apis":
		return `{"kind":"APIGroupList","groups":[]}`, 200, false
	case ok && path == "":
		s.asked++
		switch s.discovery {
		case "":
			return refusal(404, metav1.StatusReasonNotFound)
		case "403":
			return refusal(403, metav1.StatusReasonForbidden)
		}
		return `{"kind":"APIResourceList","resources":[` + s.discovery + `]}`, 200, false
	}
	namespace, _ := strings.CutPrefix(path, "/namespaces/")
	namespace, limited := strings.CutSuffix(namespace, "/widgets")
	limited = limited && namespace != ""
	switch {
	case !ok || s.discovery == "" || path != "/widgets" && !limited:
		return refusal(404, metav1.StatusReasonNotFound)
	case limited && s.cluster:
		s.refused++
		return refusal(404, metav1.StatusReasonNotFound)
	case !limited && !s.cluster && s.forbidden:
		return refusal(403, metav1.StatusReasonForbidden)
	}
	var objects []string
	for _, object := range s.objects {
		if !limited || strings.HasPrefix(object, namespace+"/") {
			objects = append(objects, widget(object, s.version))
		}
	}
	if r.URL.Query().Get("watch") != "true" {
		return fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, s.version, strings.Join(objects, ",")), 200, false
	}
	if r.URL.Query().Get("resourceVersion") != strconv.Itoa(s.version) { // all are newer
		for _, object := range objects {
			body += fmt.Sprintf(`{"type":"ADDED","object":%s}`, object)
		}
	}
	return body + fmt.Sprintf(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`, s.version), 200, true
}

// widget is an object by its key.
func widget(key string, version int) string {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		namespace, name = "", key
	}
	return fmt.Sprintf(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"namespace":%q,"name":%q,"resourceVersion":"%d"}}`, namespace, name, version)
}

// Widget is a type that programs register.
type Widget struct {
	metav1.PartialObjectMetadata
}

// widgetInformer is what the tests look at.
type widgetInformer struct {
	informer.Informer
	keys    func() []string
	options func() informer.ListOptions
}

func looked[T client.Object](i *informer.SharedInformer[T]) widgetInformer {
	return widgetInformer{i, func() []string { return slices.Sorted(slices.Values(i.Lister().Keys())) }, i.ListOptions}
}

func dynamicWidgets(f *informer.Factory, opts informer.ListOptions) widgetInformer {
	return looked(informer.Dynamic(f, widgetsResource, opts))
}

// widgetTest is an informer of widgets and its server, in a bubble.
type widgetTest struct {
	prepare func(s *widgetServer) // before the informer starts
	scheme  *scheme.Scheme
	opts    informer.Options
	list    informer.ListOptions
	inform  func(*informer.Factory, informer.ListOptions) widgetInformer // default: dynamicWidgets
}

// run calls check a millisecond after the start: no back-off is that short.
func (w widgetTest) run(t *testing.T, check func(t *testing.T, s *widgetServer, i widgetInformer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &widgetServer{changed: make(chan struct{})}
		w.prepare(s)
		pipe := faultnet.NewPipe()
		server := &http.Server{Handler: s}
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(pipe) }()
		c, err := client.New(&rest.Config{Host: "http://widgets"}, client.Options{Dial: pipe.Dial, ForceHTTP1: true, Scheme: w.scheme})
		if err != nil {
			t.Fatal(err)
		}
		f := informer.NewFactory(c, w.opts)
		if w.inform == nil {
			w.inform = dynamicWidgets
		}
		i := w.inform(f, w.list)
		ctx, cancel := context.WithCancel(t.Context())
		f.Start(ctx)
		pass(time.Millisecond)
		check(t, s, i)
		cancel()
		f.Shutdown()
		c.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// has checks the cache of an informer that runs.
func (i widgetInformer) has(t *testing.T, when, namespace string, keys ...string) {
	t.Helper()
	if got := i.keys(); !slices.Equal(got, keys) || i.Err() != nil {
		t.Errorf("%s: the cache has %q, not %q; Err %v, last error %v", when, got, keys, i.Err(), i.Stats().Reflector.LastError)
	}
	if err := i.Healthy(time.Hour); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	if got := i.options().Namespace; got != namespace {
		t.Errorf("%s: the informer is of the namespace %q, not %q", when, got, namespace)
	}
}

var inDefault = informer.Options{Namespace: "default"}

func TestFactoryNamespaceIsNoneOfClusterScopedResources(t *testing.T) {
	for name, inform := range map[string]func(*informer.Factory, informer.ListOptions) widgetInformer{
		"dynamic": dynamicWidgets,
		"metadata": func(f *informer.Factory, opts informer.ListOptions) widgetInformer {
			return looked(informer.Metadata(f, widgetsResource, opts))
		},
		"of a Go type": func(f *informer.Factory, opts informer.ListOptions) widgetInformer {
			return looked(informer.ForResource(f, widgetsResource, func() *Widget { return &Widget{} }, opts))
		},
	} {
		for mode, test := range map[string]widgetTest{
			"streaming lists": {opts: inDefault},
			"pages":           {opts: informer.Options{Namespace: "default", Reflector: reflector.Options{PagedList: true}}},
			"polls":           {opts: informer.Options{Namespace: "default", Reflector: reflector.Options{PagedList: true, PollTimeout: 10 * time.Second}}},
			"not interned":    {opts: informer.Options{Namespace: "default", NoInterning: true}},
			"given as well":   {opts: inDefault, list: informer.ListOptions{Namespace: "default"}},
		} {
			for refusal, page := range map[string]bool{"a Status": false, "a page": true} {
				t.Run(name+", "+mode+", "+refusal, func(t *testing.T) {
					test.inform = inform
					test.prepare = func(s *widgetServer) { s.pages = page; s.set(clusterWidgets, "a", "b") }
					test.run(t, func(t *testing.T, s *widgetServer, i widgetInformer) {
						i.has(t, "at the start", "", "a", "b")
						s.set(clusterWidgets, "b", "c")
						pass(10 * time.Minute)
						if refused, asked := s.counts(); refused != 1 || asked != 1 {
							t.Errorf("%d requests in the namespace, %d of discovery", refused, asked)
						}
					})
				})
			}
		}
	}
}

// What compares the cache with the server follows the scope as well.
func TestConsistencyCheckOfAClusterScopedResource(t *testing.T) {
	widgetTest{
		opts:    informer.Options{Namespace: "default", ConsistencyCheckInterval: time.Minute},
		prepare: func(s *widgetServer) { s.set(clusterWidgets, "a") },
	}.run(t, func(t *testing.T, _ *widgetServer, i widgetInformer) {
		pass(10 * time.Minute)
		if c := i.Stats().ConsistencyCheck; c.Rounds < 5 || c.Abandoned > 0 || c.Missing+c.Changed+c.Extra > 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A namespace that was given can only be a mistake: the informer ends and says so.
func TestNamespaceOfAClusterScopedResourceIsAnError(t *testing.T) {
	for name, test := range map[string]widgetTest{
		"in all namespaces":            {list: informer.ListOptions{Namespace: "a"}},
		"in the factory's":             {list: informer.ListOptions{Namespace: "a"}, opts: inDefault},
		"several":                      {list: informer.ListOptions{Namespaces: []string{"a", "b"}}, opts: inDefault},
		"pages":                        {list: informer.ListOptions{Namespace: "a"}, opts: informer.Options{Reflector: reflector.Options{PagedList: true}}},
		"polls":                        {list: informer.ListOptions{Namespace: "a"}, opts: informer.Options{Reflector: reflector.Options{PagedList: true, PollTimeout: time.Second}}},
		"replaced while it is watched": {list: informer.ListOptions{Namespace: "a"}, prepare: func(s *widgetServer) { s.set(namespacedWidgets, "a/x") }},
	} {
		t.Run(name, func(t *testing.T) {
			replaced := test.prepare != nil
			if !replaced {
				test.prepare = func(s *widgetServer) { s.set(clusterWidgets, "x") }
			}
			test.run(t, func(t *testing.T, s *widgetServer, i widgetInformer) {
				if replaced {
					i.has(t, "before", "a", "a/x")
					s.set(clusterWidgets, "x")
					pass(time.Minute)
				}
				var wrong *client.ScopeError
				if !errors.As(i.Err(), &wrong) || wrong.Namespace != "a" && wrong.Namespace != "b" || wrong.Scope != scheme.Cluster {
					t.Errorf("Err %v, last error %v", i.Err(), i.Stats().Reflector.LastError)
					return
				}
				if !strings.Contains(i.Err().Error(), "widgets.example.com/v1 is cluster-scoped: give no namespace") {
					t.Error(i.Err())
				}
				select {
				case <-i.Done():
				default:
					t.Error("the informer has not stopped")
				}
			})
		})
	}
}

// Only an answer that says which scope the resource has decides about it.
func TestScopeIsBelievedOnlyIfDiscoverySaysIt(t *testing.T) {
	for name, discovery := range map[string]string{
		"not served":    "",
		"forbidden":     "403",
		"not a scope":   `{"name":"widgets","kind":"Widget"}`,
		"another":       `{"name":"gadgets","kind":"Gadget","namespaced":false}`,
		"a subresource": `{"name":"widgets/status","kind":"Widget","namespaced":false}`,
		"not a list":    `7`,
	} {
		for limit, list := range map[string]informer.ListOptions{"the factory's": {}, "given": {Namespace: "other"}} {
			t.Run(name+", "+limit, func(t *testing.T) {
				widgetTest{opts: inDefault, list: list, prepare: func(s *widgetServer) { s.set(discovery, "x") }}.
					run(t, func(t *testing.T, s *widgetServer, i widgetInformer) {
						pass(10 * time.Minute)
						if namespace := i.options().Namespace; i.Err() != nil || namespace == "" || len(i.keys()) > 0 {
							t.Errorf("Err %v, namespace %q, the cache has %q", i.Err(), namespace, i.keys())
						}
						s.set(clusterWidgets, "x") // its definition is there at last
						pass(time.Minute)
						if limit == "given" {
							var wrong *client.ScopeError
							if !errors.As(i.Err(), &wrong) {
								t.Errorf("Err %v", i.Err())
							}
							return
						}
						i.has(t, "served at last", "", "x")
					})
			})
		}
	}
}

// A definition that is deleted may come back with the other scope. The cache then has what
// is there now, and of namespaced objects only those in the factory's namespace.
func TestScopeThatChanges(t *testing.T) {
	for name, test := range map[string]struct {
		forbidden bool          // outside of namespaces
		gone      time.Duration // in between
		opts      reflector.Options
	}{
		"at once":             {},
		"a while later":       {gone: 10 * time.Second},
		"long after":          {gone: time.Hour},
		"at once, narrow":     {forbidden: true},
		"long after, narrow":  {forbidden: true, gone: time.Hour},
		"at once, pages":      {opts: reflector.Options{PagedList: true}},
		"at once, polls":      {opts: reflector.Options{PagedList: true, PollTimeout: 10 * time.Second}},
		"long after, polls":   {gone: time.Hour, opts: reflector.Options{PagedList: true, PollTimeout: 10 * time.Second}},
		"at once, no history": {opts: reflector.Options{NoDifferences: true}},
	} {
		t.Run(name, func(t *testing.T) {
			widgetTest{
				opts:    informer.Options{Namespace: "default", Reflector: test.opts},
				prepare: func(s *widgetServer) { s.forbidden = test.forbidden; s.set(namespacedWidgets, "default/a", "other/b") },
			}.run(t, func(t *testing.T, s *widgetServer, i widgetInformer) {
				become := func(discovery string, objects ...string) {
					if test.gone > 0 {
						s.set("")
						pass(test.gone)
					}
					s.set(discovery, objects...)
					pass(2 * time.Minute) // the longest back-off, twice
				}
				i.has(t, "namespaced", "default", "default/a")
				become(clusterWidgets, "a")
				i.has(t, "cluster-scoped", "", "a")
				become(namespacedWidgets, "default/c", "other/d")
				i.has(t, "namespaced again", "default", "default/c")
				become(clusterWidgets, "c")
				i.has(t, "cluster-scoped again", "", "c")
			})
		})
	}
}

// A type that is registered with the wrong scope is a mistake of the program.
func TestRegisteredScopeThatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		registered scheme.Scope
		discovery  string
		objects    []string
		forbidden  bool
		wrong      bool
	}{
		"cluster-scoped":                      {registered: scheme.Cluster, discovery: clusterWidgets, objects: []string{"a"}},
		"namespaced":                          {registered: scheme.Namespaced, discovery: namespacedWidgets, objects: []string{"default/a"}},
		"not namespaced":                      {registered: scheme.Namespaced, discovery: clusterWidgets, objects: []string{"a"}, wrong: true},
		"not cluster-scoped":                  {registered: scheme.Cluster, discovery: namespacedWidgets, objects: []string{"other/a"}, wrong: true},
		"not cluster-scoped, refused":         {registered: scheme.Cluster, discovery: namespacedWidgets, forbidden: true, wrong: true},
		"cluster-scoped, refused for a while": {registered: scheme.Cluster, discovery: "403", forbidden: true},
	} {
		for mode, opts := range map[string]reflector.Options{"streaming lists": {}, "pages": {PagedList: true}} {
			t.Run(name+", "+mode, func(t *testing.T) {
				known := scheme.New()
				if err := scheme.Register[*Widget](known, scheme.Mapping{Kind: widgetsResource.GroupVersion().WithKind("Widget"), Scope: test.registered}); err != nil {
					t.Fatal(err)
				}
				widgetTest{
					scheme: known, opts: informer.Options{Namespace: "default", Reflector: opts},
					inform: func(f *informer.Factory, opts informer.ListOptions) widgetInformer {
						return looked(informer.For[*Widget](f, opts))
					},
					prepare: func(s *widgetServer) { s.forbidden = test.forbidden; s.set(test.discovery, test.objects...) },
				}.run(t, func(t *testing.T, _ *widgetServer, i widgetInformer) {
					pass(time.Minute)
					var wrong *client.ScopeError
					if errors.As(i.Err(), &wrong) != test.wrong || !test.wrong && i.Err() != nil {
						t.Errorf("Err %v, last error %v", i.Err(), i.Stats().Reflector.LastError)
						return
					}
					if test.wrong && (wrong.Registered != test.registered || !strings.Contains(i.Err().Error(), "correct scheme.Mapping.Scope")) {
						t.Error(i.Err())
					}
					if got := i.keys(); !test.wrong && !slices.Equal(got, test.objects) {
						t.Errorf("the cache has %q", got)
					}
				})
			})
		}
	}
}

// A server whose cluster-scoped objects name a namespace all the same is believed, and asked
// once for each list and watch.
func TestClusterScopedObjectsThatNameANamespace(t *testing.T) {
	for mode, test := range map[string]struct {
		pages bool
		asked int // after the 404, and about the objects of the streaming list and of the second watch
	}{"streaming lists": {asked: 3}, "pages": {pages: true, asked: 2}} {
		t.Run(mode, func(t *testing.T) {
			widgetTest{
				opts:    informer.Options{Namespace: "default", Reflector: reflector.Options{PagedList: test.pages}},
				prepare: func(s *widgetServer) { s.set(clusterWidgets, "odd/a", "odd/b") },
			}.run(t, func(t *testing.T, s *widgetServer, i widgetInformer) {
				i.has(t, "at the start", "", "odd/a", "odd/b")
				s.set(clusterWidgets, "odd/a", "odd/b", "odd/c")
				pass(time.Second)
				i.has(t, "later", "", "odd/a", "odd/b", "odd/c")
				if _, asked := s.counts(); asked != test.asked {
					t.Errorf("discovery was asked %d times", asked)
				}
			})
		})
	}
}

// A program that starts again resumes in the scope of what it has on disk, and never shows
// objects of the other one as confirmed.
func TestScopeAfterARestart(t *testing.T) {
	directory := t.TempDir()
	for n, test := range []struct {
		discovery string
		objects   []string
		namespace string
		keys      []string
		lists     int64
	}{
		{clusterWidgets, []string{"a"}, "", []string{"a"}, 1},
		{clusterWidgets, []string{"a", "b"}, "", []string{"a", "b"}, 0},
		{namespacedWidgets, []string{"default/c", "other/d"}, "default", []string{"default/c"}, 1},
		{namespacedWidgets, []string{"default/c", "default/e"}, "default", []string{"default/c", "default/e"}, 0},
		{clusterWidgets, []string{"f"}, "", []string{"f"}, 1},
	} {
		widgetTest{
			opts: informer.Options{Namespace: "default", Disk: informer.DiskOptions{Directory: directory,
				Identify: func(context.Context) (string, error) { return "here", nil }}},
			prepare: func(s *widgetServer) { s.version = 100 * n; s.set(test.discovery, test.objects...) },
		}.run(t, func(t *testing.T, _ *widgetServer, i widgetInformer) {
			pass(time.Minute)
			i.has(t, strings.Join(test.objects, " "), test.namespace, test.keys...)
			if s := i.Stats().Reflector; s.StreamingLists+s.PagedLists != test.lists {
				t.Errorf("%q: %d lists", test.objects, s.StreamingLists+s.PagedLists)
			}
		})
	}
}
