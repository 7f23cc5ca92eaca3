package wait_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/wait"
)

const phase = `{"metadata":{"name":"web","namespace":"default","uid":"%s","resourceVersion":"%d"},"status":{"phase":"%s"}}`

// script answers requests in order; the last answer is repeated.
func script(t *testing.T, answers ...http.HandlerFunc) (client.Resource[*corev1.Pod], *atomic.Int64) {
	t.Helper()
	c, n := scriptedClient(t, answers...)
	return client.For[*corev1.Pod](c).Namespace("default"), n
}

func scriptedClient(t *testing.T, answers ...http.HandlerFunc) (*client.Client, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := min(int(n.Add(1)), len(answers)) - 1
		if got := r.URL.Query().Get("fieldSelector"); got != "metadata.name=web" {
			t.Errorf("field selector %q", got)
		}
		w.Header().Set("Content-Type", "application/json")
		answers[at](w, r)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c, &n
}

func list(items ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[%s]}`, strings.Join(items, ","))
	}
}

func events(all ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for n := 0; n < len(all); n += 2 {
			_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`, all[n], all[n+1])
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, http.StatusText(code), code))
	}
}

func pod(uid string, version int, p corev1.PodPhase) string {
	return fmt.Sprintf(phase, uid, version, p)
}

func isRunning(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func TestUntil(t *testing.T) {
	pending, running := pod("1", 5, corev1.PodPending), pod("1", 7, corev1.PodRunning)
	for name, test := range map[string]struct {
		answers  []http.HandlerFunc
		requests int64
	}{
		"at once":                {[]http.HandlerFunc{list(running)}, 1},
		"by an event":            {[]http.HandlerFunc{list(pending), events("MODIFIED", pending, "MODIFIED", running)}, 2},
		"created later":          {[]http.HandlerFunc{list(), events("ADDED", running)}, 2},
		"a watch that ends":      {[]http.HandlerFunc{list(pending), events(), list(running)}, 3},
		"a server that restarts": {[]http.HandlerFunc{list(pending), status(500), status(500), list(running)}, 4},
		"others in the list":     {[]http.HandlerFunc{list(other(running), pending), events("MODIFIED", running)}, 2},
		"only others":            {[]http.HandlerFunc{list(other(running)), events("MODIFIED", other(running), "ADDED", running)}, 2},
		"events without names":   {[]http.HandlerFunc{list(pending), events("MODIFIED", nameless(running)), list(pending), events("MODIFIED", running)}, 4},
		"a deleted object":       {[]http.HandlerFunc{list(pending), events("DELETED", running), list(), events("ADDED", running)}, 4},
	} {
		pods, requests := script(t, test.answers...)
		got, err := wait.Until(t.Context(), pods, "web", isRunning)
		if err != nil || !isRunning(got) || requests.Load() != test.requests {
			t.Errorf("%s: %v, %v after %d requests", name, got, err, requests.Load())
		}
	}
}

func TestUntilDeleted(t *testing.T) {
	first, second := pod("1", 5, corev1.PodRunning), pod("2", 7, corev1.PodRunning)
	for name, test := range map[string]struct {
		answers  []http.HandlerFunc
		requests int64
	}{
		"gone already":            {[]http.HandlerFunc{list()}, 1},
		"deleted":                 {[]http.HandlerFunc{list(first), events("DELETED", first)}, 2},
		"another one of the name": {[]http.HandlerFunc{list(first), events("MODIFIED", second)}, 2},
		"others":                  {[]http.HandlerFunc{list(other(second), first), events("DELETED", other(second), "MODIFIED", other(second), "DELETED", first), list(first)}, 2},
		"events without names":    {[]http.HandlerFunc{list(first), events("DELETED", `{}`), list(first), events("MODIFIED", nameless(second)), list()}, 5},
		"lists without names":     {[]http.HandlerFunc{list(first), events(), list(`{}`), list(nameless(second)), list()}, 5},
	} {
		pods, requests := script(t, test.answers...)
		if err := wait.UntilDeleted(t.Context(), pods, "web", "1"); err != nil || requests.Load() != test.requests {
			t.Errorf("%s: %v after %d requests", name, err, requests.Load())
		}
	}
}

// other is the same of another name, and nameless of none.
func other(object string) string    { return strings.Replace(object, `"web"`, `"db"`, 1) }
func nameless(object string) string { return strings.Replace(object, `"name":"web",`, ``, 1) }

func TestUntilFails(t *testing.T) {
	pending := pod("1", 5, corev1.PodPending)
	pods, requests := script(t, status(500))
	if _, err := wait.Until(t.Context(), pods, "web", isRunning); err == nil || requests.Load() != 1 {
		t.Errorf("the first request failed: %v after %d requests", err, requests.Load())
	}
	pods, _ = script(t, list(pending), status(http.StatusForbidden))
	if _, err := wait.Until(t.Context(), pods, "web", isRunning); !apierrors.IsForbidden(err) {
		t.Errorf("forbidden: %v", err)
	}
	if _, err := wait.Until(t.Context(), pods, "", isRunning); err == nil {
		t.Error("an empty name was accepted")
	}
	if _, err := wait.Until(t.Context(), pods, "web", nil); err == nil {
		t.Error("a condition of nil was accepted")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	pods, _ = script(t, list(pending), status(500), func(http.ResponseWriter, *http.Request) {
		cancel(context.DeadlineExceeded) // Until has seen the 500: it asks again
	})
	if _, err := wait.Until(ctx, pods, "web", isRunning); err == nil || !strings.Contains(err.Error(), "context deadline exceeded") || !apierrors.IsInternalError(err) {
		t.Errorf("the context ended: %v", err)
	}
}

// A wait that ends with its context says how the object was: the program's user sees
// nothing else of it.
func TestAnErrorSaysHowTheObjectWas(t *testing.T) {
	deleted := strings.Replace(pod("1", 5, corev1.PodRunning), `"uid"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","uid"`, 1)
	held := strings.Replace(deleted, `"uid"`, `"finalizers":["example.com/disk"],"uid"`, 1)
	for want, answers := range map[string][]http.HandlerFunc{
		`wait for pods "web", which does not exist: context deadline exceeded`:                                           {list()},
		`wait for pods "web", which is at resourceVersion 7: context deadline exceeded`:                                  {list(), events("ADDED", pod("1", 7, corev1.PodPending))},
		`wait for pods "web", which is being deleted: context deadline exceeded`:                                         {list(deleted)},
		`wait for pods "web", which is being deleted and has finalizers ["example.com/disk"]: context deadline exceeded`: {list(held)},
		`wait for pods "web": context deadline exceeded`:                                                                 nil,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		pods, _ := script(t, append(answers, func(http.ResponseWriter, *http.Request) { cancel(context.DeadlineExceeded) })...)
		_, err := wait.Until(ctx, pods, "web", func(*corev1.Pod) bool { return false })
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Several namespaces may have an object of the name: the wait is for none of them.
func TestAWaitNeedsANamespace(t *testing.T) {
	const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"web","namespace":%q,"resourceVersion":"7"}}`
	inNamespace, inCluster := fmt.Sprintf(widget, "other"), fmt.Sprintf(widget, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exists := func(*corev1.Pod) bool { return true }
	c, requests := scriptedClient(t, list(pod("1", 5, corev1.PodRunning)))
	if _, err := wait.Until(ctx, client.For[*corev1.Pod](c), "web", exists); err == nil || !strings.Contains(err.Error(), "call Namespace") {
		t.Errorf("a pod of some namespace: %v", err)
	}
	if err := wait.UntilDeleted(ctx, client.For[*corev1.Pod](c), "web", ""); err == nil || !strings.Contains(err.Error(), "call Namespace") {
		t.Errorf("the deletion of some pod: %v", err)
	}
	if requests.Load() != 0 {
		t.Errorf("%d requests", requests.Load())
	}
	for name, test := range map[string]struct {
		answers []http.HandlerFunc
		refused bool
	}{
		"found in a namespace":   {[]http.HandlerFunc{list(inNamespace)}, true},
		"created in a namespace": {[]http.HandlerFunc{list(), events("ADDED", inNamespace)}, true},
		"found":                  {[]http.HandlerFunc{list(inCluster)}, false},
		"created":                {[]http.HandlerFunc{list(), events("ADDED", inCluster)}, false},
	} {
		c, _ := scriptedClient(t, test.answers...)
		widgets := client.Dynamic(c, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
		_, err := wait.Until(ctx, widgets, "web", func(*unstructured.Unstructured) bool { return true })
		if refused := err != nil && strings.Contains(err.Error(), "call Namespace"); refused != test.refused || !refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Roles and bindings may have names that mean something in a selector.
func TestNamesThatASelectorHasToEscape(t *testing.T) {
	const name = "a=b,c"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
		if err != nil || !selector.Matches(fields.Set{"metadata.name": name}) {
			t.Errorf("the field selector is %v, %v", selector, err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":%q}}]}`, name)
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	if _, err := wait.Until(t.Context(), client.For[*rbacv1.ClusterRole](c), name, func(*rbacv1.ClusterRole) bool { return true }); err != nil {
		t.Error(err)
	}
}
