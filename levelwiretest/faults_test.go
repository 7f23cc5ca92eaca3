package levelwiretest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := new(levelwiretest.Faults)
		api := client.For[*corev1.ConfigMap](levelwiretest.NewClient(t, client.Options{WrapTransport: faults.Wrap})).Namespace("default")
		create := func(name string) error {
			_, err := api.Create(t.Context(), configMap(name, "x"), metav1.CreateOptions{})
			return err
		}
		exists := func(name string) bool {
			_, err := api.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil
		}

		conflict := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("on purpose"))
		faults.Add(levelwiretest.Fault{Verb: "create", Resource: "configmaps", Times: 1, Err: conflict})
		if err := create("a"); !apierrors.IsConflict(err) || exists("a") {
			t.Errorf("the answer is %v, want a conflict and no object", err)
		}
		if err := create("a"); err != nil {
			t.Errorf("the second time: %v", err)
		}

		remove := faults.Add(levelwiretest.Fault{Verb: "create", LoseAnswer: true})
		if err := create("b"); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || !exists("b") {
			t.Errorf("a lost answer is %v, want an error of the connection and the object", err)
		}
		remove()

		begin := time.Now()
		faults.Add(levelwiretest.Fault{Verb: "get", Name: "a", Times: 2, Delay: time.Minute})
		exists("b")
		exists("a")
		exists("a")
		exists("a")
		if took := time.Since(begin); took < 2*time.Minute || took > 2*time.Minute+time.Second {
			t.Errorf("two delays of a minute took %v", took)
		}

		faults.Add(levelwiretest.Fault{Verb: "get", Times: 1, React: func(req levelwiretest.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if req.Name != "a" || req.Namespace != "default" || req.Resource != "configmaps" {
				t.Errorf("the reactor was given %+v", req)
			}
			resp, err := next()
			if err == nil {
				resp.StatusCode = http.StatusTeapot
			}
			return resp, err
		}})
		if exists("a") {
			t.Error("the reactor's answer did not reach the client")
		}

		faults.SetDown(true)
		if err := create("c"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a server that is down: %v", err)
		}
		faults.SetDown(false)
		if err := create("c"); err != nil {
			t.Error(err)
		}
	})
}

// TestFaultsSayWhenToComeBack: a refusal that says when to come back says so as a server does, in the header that clients read.
func TestFaultsSayWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := new(levelwiretest.Faults)
		api := client.For[*corev1.ConfigMap](levelwiretest.NewClient(t, client.Options{WrapTransport: faults.Wrap})).Namespace("default")
		fault := levelwiretest.Fault{Verb: "create", Times: 2, Err: apierrors.NewTooManyRequests("on purpose", 7)}
		faults.Add(fault)
		begin := time.Now()
		if _, err := api.Create(t.Context(), configMap("a", "x"), metav1.CreateOptions{}); err != nil {
			t.Errorf("the client did not come back: %v", err)
		}
		if took, n := time.Since(begin), faults.Count(fault); took < 14*time.Second || n != 3 {
			t.Errorf("%d requests in %v, want 3 and twice 7 seconds", n, took)
		}
	})
}

// TestCutWatches: an informer resumes, and lists once, until its watches expire.
func TestCutWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := new(levelwiretest.Faults)
		c := levelwiretest.NewClient(t, client.Options{WrapTransport: faults.Wrap})
		factory := informer.NewFactory(c, informer.Options{})
		defer factory.Shutdown()
		cached := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Namespace: "default"}).Lister()
		factory.Start(t.Context())
		if err := factory.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, name := range []string{"a", "b", "c"} {
			if n := faults.CutWatches(); n != 1 {
				t.Errorf("%d watches were cut, want 1", n)
			}
			if _, err := client.For[*corev1.ConfigMap](c).Create(t.Context(), configMap(name, "x"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if _, ok := cached.Get("default", name); !ok {
				t.Errorf("%s is not in the cache a minute after the cut", name)
			}
		}
		of := func(verb string) int { return faults.Count(levelwiretest.Fault{Verb: verb, Resource: "configmaps"}) }
		if of("list") != 1 || of("difference") != 0 || of("watch") != 4 || of("create") != 3 {
			t.Errorf("%d lists, %d differences, %d watches, %d creates; want a list, no difference, a watch at first and after each cut, 3 creates",
				of("list"), of("difference"), of("watch"), of("create"))
		}

		faults.Add(levelwiretest.Fault{Verb: "watch", Times: 1, Err: apierrors.NewResourceExpired("on purpose")})
		faults.Add(levelwiretest.Fault{Verb: "difference", Err: apierrors.NewNotFound(schema.GroupResource{}, "difference")})
		faults.CutWatches()
		time.Sleep(time.Minute)
		if of("list") != 2 || of("difference") == 0 {
			t.Errorf("%d lists and %d differences after a watch expired, want a difference to be tried, and a second list", of("list"), of("difference"))
		}
	})
}

func TestRequestsAreDescribed(t *testing.T) {
	for _, test := range []struct{ method, url, want string }{
		{"GET", "/api/v1/pods", "list pods"},
		{"GET", "/api/v1/pods?watch=true", "watch pods"},
		{"GET", "/api/v1/pods?watch=1&sendInitialEvents=true", "watch pods from the beginning"},
		{"POST", "/levelwire/v1/difference/api/v1/namespaces/a/pods", "difference pods a"},
		{"GET", "/api/v1/namespaces", "list namespaces"},
		{"GET", "/api/v1/namespaces/a", "get namespaces a a"},
		{"PUT", "/api/v1/namespaces/a/finalize", "update namespaces a a finalize"},
		{"GET", "/api/v1/namespaces/a/status", "get namespaces a a status"},
		{"GET", "/api/v1/namespaces/a/pods", "list pods a"},
		{"DELETE", "/api/v1/namespaces/a/pods", "deletecollection pods a"},
		{"DELETE", "/prefix/apis/apps/v1/namespaces/a/deployments/web", "delete deployments a web"},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/web/scale", "patch deployments a web scale"},
		{"POST", "/api/v1/namespaces/a/pods/web/eviction", "create pods a web eviction"},
		{"GET", "/version", "get"},
		{"GET", "/apis/apps/v1", "get"},
	} {
		faults := new(levelwiretest.Faults)
		rt := faults.Wrap(refusing{})
		req, err := http.NewRequestWithContext(t.Context(), test.method, "http://server"+test.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = rt.RoundTrip(req) //nolint:bodyclose // There is none.
		got := faults.Requests()[0]
		text := got.Verb
		for _, part := range []string{got.Resource, got.Namespace, got.Name, got.Subresource} {
			if part != "" {
				text += " " + part
			}
		}
		if got.InitialEvents {
			text += " from the beginning"
		}
		if text != test.want {
			t.Errorf("%s %s is %q, want %q", test.method, test.url, text, test.want)
		}
	}
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

// lateServer answers watches with a body that has an event whatever happens.
type lateServer struct {
	opening, reading func() // what happens meanwhile; nil: nothing
}

func (s lateServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.opening != nil {
		s.opening()
	}
	return &http.Response{StatusCode: http.StatusOK, Request: req, Body: io.NopCloser(lateBody{s.reading})}, nil
}

type lateBody struct{ reading func() }

func (b lateBody) Read(p []byte) (int, error) {
	if b.reading != nil {
		b.reading()
	}
	return copy(p, `{"type":"ADDED"}`), nil
}

// TestNothingIsSeenAfterTheCut: what the server writes while the connection is cut, or opened when
// the server goes down, reaches nobody.
func TestNothingIsSeenAfterTheCut(t *testing.T) {
	for _, test := range []struct {
		name   string
		server func(*levelwiretest.Faults) lateServer
	}{
		{"cut while it is read", func(f *levelwiretest.Faults) lateServer {
			return lateServer{reading: func() { f.CutWatches() }}
		}},
		{"down while it is read", func(f *levelwiretest.Faults) lateServer {
			return lateServer{reading: func() { f.SetDown(true) }}
		}},
		{"down while it is opened", func(f *levelwiretest.Faults) lateServer {
			return lateServer{opening: func() { f.SetDown(true) }}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			faults := new(levelwiretest.Faults)
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/configmaps?watch=true", nil)
			resp, err := faults.Wrap(test.server(faults)).RoundTrip(req)
			var seen int
			if err == nil {
				seen, err = resp.Body.Read(make([]byte, 100))
				if closed := resp.Body.Close(); closed != nil {
					t.Error(closed)
				}
			}
			if seen > 0 || err == nil {
				t.Errorf("%d bytes are seen, and the error is %v", seen, err)
			}
		})
	}
}

// A fault that cannot happen is a mistake of the test, which would pass without it.
func TestFaultsThatCannotHappen(t *testing.T) {
	err := errors.New("on purpose")
	for what, fault := range map[string]levelwiretest.Fault{
		"verb":               {Verb: "Update", Err: err},
		"resource \"Pod\"":   {Resource: "Pod", Err: err},
		"resource \"apps/v1": {Resource: "apps/v1/deployments", Err: err},
		"subresource":        {Resource: "pods", Subresource: "status/x", Err: err},
		"-1 times":           {Times: -1, Err: err},
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, what) {
					t.Errorf("%s: panicked with %q", what, said)
				}
			}()
			new(levelwiretest.Faults).Add(fault)
		}()
	}
}
