package cached_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/cached"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/scheme"
)

// newReader returns a reader that caches on first use, of a server whose resources are
// all empty.
func newReader(t *testing.T, items ...string) (*client.Client, *cached.Reader) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"1"},"items":[`+strings.Join(items, ",")+`]}`)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	opts := informer.Options{Logger: slog.New(slog.DiscardHandler)}
	opts.Reflector.PagedList = true
	factory := informer.NewFactory(c, opts)
	t.Cleanup(factory.Shutdown)
	reader := cached.NewReader(factory, cached.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	reader.CacheOnFirstUse(ctx)
	return c, reader
}

type unregistered struct{ corev1.Pod }

// A read that names no namespace where one is needed, or one where none may be, is
// refused by the cache as it is by the client.
func TestErrorsAreTheClients(t *testing.T) {
	c, r := newReader(t)
	ctx := t.Context()
	get := func(_ any, err error) error { return err }
	for _, test := range []struct {
		name           string
		cached, direct error
		says           string
	}{
		{"no namespace", get(cached.For[*corev1.Pod](r).Get(ctx, "p", metav1.GetOptions{})),
			get(client.For[*corev1.Pod](c).Get(ctx, "p", metav1.GetOptions{})), "no namespace is given"},
		{"a namespace too many", get(cached.For[*corev1.Node](r).Namespace("n").Get(ctx, "p", metav1.GetOptions{})),
			get(client.For[*corev1.Node](c).Namespace("n").Get(ctx, "p", metav1.GetOptions{})), "cluster-scoped"},
		{"a list with a namespace too many", get(cached.For[*corev1.Node](r).Namespace("n").List(ctx, metav1.ListOptions{})),
			get(client.For[*corev1.Node](c).Namespace("n").List(ctx, metav1.ListOptions{})), "cluster-scoped"},
		{"no name", get(cached.For[*corev1.Pod](r).Namespace("n").Get(ctx, "", metav1.GetOptions{})),
			get(client.For[*corev1.Pod](c).Namespace("n").Get(ctx, "", metav1.GetOptions{})), "name is empty"},
		{"an unregistered type", get(cached.For[*unregistered](r).Namespace("n").Get(ctx, "p", metav1.GetOptions{})),
			get(client.For[*unregistered](c).Namespace("n").Get(ctx, "p", metav1.GetOptions{})), "not registered"},
	} {
		if test.cached == nil || test.direct == nil || test.cached.Error() != test.direct.Error() || !strings.Contains(test.cached.Error(), test.says) {
			t.Errorf("%s: the cache says %v, the client %v", test.name, test.cached, test.direct)
		}
	}
}

// A resource of an unknown scope may need a namespace.
func TestNotFoundWithoutNamespace(t *testing.T) {
	_, r := newReader(t)
	widgets := cached.Dynamic(r, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	if _, err := widgets.Get(t.Context(), "w", metav1.GetOptions{}); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "call Namespace") {
		t.Errorf("got %v", err)
	}
	if _, err := widgets.Namespace("n").Get(t.Context(), "w", metav1.GetOptions{}); !apierrors.IsNotFound(err) || strings.Contains(err.Error(), "call Namespace") {
		t.Errorf("got %v", err)
	}
}

// The objects that are there show where the one that is looked for cannot be.
func TestNotFoundInTheWrongPlace(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for _, test := range []struct {
		inNamespace, asked string
		scope              scheme.Scope // "": the object is not found
	}{
		{"n", "", scheme.Namespaced}, {"", "n", scheme.Cluster}, {"n", "n", ""}, {"n", "other", ""}, {"", "", ""},
	} {
		_, r := newReader(t, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":%q,"resourceVersion":"1"}}`, test.inNamespace))
		_, get := cached.Dynamic(r, gvr).Namespace(test.asked).Get(t.Context(), "other", metav1.GetOptions{})
		_, metadata := cached.Metadata(r, gvr).Namespace(test.asked).Get(t.Context(), "other", metav1.GetOptions{})
		for _, err := range []error{get, metadata} {
			var wrong *client.ScopeError
			if errors.As(err, &wrong) != (test.scope != "") || apierrors.IsNotFound(err) != (test.scope == "") || wrong != nil && wrong.Scope != test.scope {
				t.Errorf("%+v: got %v", test, err)
			}
		}
	}
}
