package reflector

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/internal/faultnet"
)

// unwritten is a store that must not be written to.
type unwritten struct{ t *testing.T }

func (s unwritten) fail() error {
	s.t.Error("the store was written to")
	return nil
}

func (s unwritten) Add(*unstructured.Unstructured) error               { return s.fail() }
func (s unwritten) Update(*unstructured.Unstructured) error            { return s.fail() }
func (s unwritten) Delete(*unstructured.Unstructured) error            { return s.fail() }
func (s unwritten) Replace([]*unstructured.Unstructured, string) error { return s.fail() }

// A cluster-scoped resource cannot be listed or watched in a namespace: Run says so, and
// goes on while the server does not say that.
func TestNamespaceOfAClusterScopedResourceEndsRun(t *testing.T) {
	for name, test := range map[string]struct {
		discovery string
		opts      Options
		ends      bool
	}{
		"streaming lists": {discovery: `{"name":"widgets","namespaced":false}`, ends: true},
		"pages":           {discovery: `{"name":"widgets","namespaced":false}`, opts: Options{PagedList: true}, ends: true},
		"resumed":         {discovery: `{"name":"widgets","namespaced":false}`, opts: Options{ResumeFrom: "5"}, ends: true},
		"polls":           {discovery: `{"name":"widgets","namespaced":false}`, opts: Options{PagedList: true, PollTimeout: time.Second, ResumeFrom: "5"}, ends: true},
		"namespaced":      {discovery: `{"name":"widgets","namespaced":true}`},
		"no scope":        {discovery: `{"name":"widgets"}`},
		"not served":      {},
	} {
		t.Run(name, func(t *testing.T) {
			test.opts.GoneAfter = -1
			synctest.Test(t, func(t *testing.T) {
				pipe := faultnet.NewPipe()
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/apis/example.com/v1" {
						http.NotFound(w, r)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[`+test.discovery+`]}`)
				})}
				served := make(chan struct{})
				go func() { defer close(served); _ = server.Serve(pipe) }()
				c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{Dial: pipe.Dial, ForceHTTP1: true})
				if err != nil {
					t.Fatal(err)
				}
				widgets := client.Dynamic(c, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("n")
				r, err := New(Resource(widgets, func(opts *metav1.ListOptions) { opts.LabelSelector = "a=b" }), Store[*unstructured.Unstructured](unwritten{t}), test.opts)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour) //passes: ends the cases in which Run goes on, of the bubble's clock
				defer cancel()
				err = r.Run(ctx)
				var wrong *client.ScopeError
				if errors.As(err, &wrong) != test.ends || err != nil && (wrong.Namespace != "n" || wrong.Scope != scheme.Cluster) {
					t.Errorf("Run returned %v", err)
				}
				if (ctx.Err() == nil) != test.ends {
					t.Errorf("Run ended with its context: %v", ctx.Err())
				}
				c.CloseIdleConnections()
				_ = server.Close()
				<-served
			})
		})
	}
}
