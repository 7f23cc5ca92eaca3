package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/scheme"
)

func TestServedScope(t *testing.T) {
	const namespaced, cluster = `{"name":"widgets","namespaced":true}`, `{"name":"widgets","namespaced":false}`
	for name, test := range map[string]struct {
		entry     string // "": the group version is not served
		groups    string // the list of groups; "": 404
		namespace string
		want      scheme.Scope
		fail      bool // the scope is not known
		wrong     bool // the namespace is
	}{
		"cluster-scoped":                     {entry: cluster, want: scheme.Cluster},
		"cluster-scoped, in a namespace":     {entry: cluster, namespace: "n", want: scheme.Cluster, wrong: true},
		"namespaced, in all":                 {entry: namespaced, want: scheme.Namespaced},
		"namespaced, in a namespace":         {entry: namespaced, namespace: "n", want: scheme.Namespaced},
		"among others":                       {entry: `{"name":"widgets/status","namespaced":true},{"name":"gadgets","namespaced":true},` + cluster, namespace: "n", want: scheme.Cluster, wrong: true},
		"its subresources only":              {entry: `{"name":"widgets/status","namespaced":false}`, namespace: "n"},
		"another resource":                   {entry: `{"name":"gadgets","namespaced":false}`, namespace: "n"},
		"no scope":                           {entry: `{"name":"widgets"}`, namespace: "n", fail: true},
		"no scope but null":                  {entry: `{"name":"widgets","namespaced":null}`, namespace: "n", fail: true},
		"no document":                        {entry: `7`, namespace: "n", fail: true},
		"no such group":                      {groups: `{"kind":"APIGroupList","groups":[]}`, namespace: "n"},
		"no such group, though it is listed": {groups: `{"kind":"APIGroupList","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1"}]}]}`, namespace: "n", fail: true},
		"no discovery":                       {namespace: "n", fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/apis/example.com/v1" && test.entry != "":
					answerJSON(w, http.StatusOK, `{"kind":"APIResourceList","resources":[`+test.entry+`]}`)
				case r.URL.Path == "/apis" && test.groups != "":
					answerJSON(w, http.StatusOK, test.groups)
				default:
					http.NotFound(w, r)
				}
			}))
			widgets := Dynamic(c, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace(test.namespace)
			if scope, err := widgets.ServedScope(t.Context()); scope != test.want || (err != nil) != test.fail {
				t.Errorf("scope %q, %v", scope, err)
			}
			var wrong *ScopeError
			if err := widgets.CheckScope(t.Context()); errors.As(err, &wrong) != test.wrong || (err != nil) != (test.wrong || test.fail) {
				t.Errorf("checked: %v", err)
			}
			if served, err := widgets.Served(t.Context()); served != (test.want != "" || strings.Contains(name, "no scope")) || err != nil && !test.fail {
				t.Errorf("served %v, %v", served, err)
			}
		})
	}
}

// A scope that cannot be wrong is not asked for, and one that the scheme has wrong is.
func TestCheckScopeOfTheScheme(t *testing.T) {
	var asked atomic.Int32
	c, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answerJSON(w, http.StatusOK, `{"kind":"APIResourceList","resources":[{"name":"pods","namespaced":false},{"name":"nodes","namespaced":true}]}`)
	}))
	for _, err := range []error{For[*corev1.Pod](c).CheckScope(t.Context()), Dynamic(c, podsResource).CheckScope(t.Context()),
		Metadata(c, schema.GroupVersionResource{Group: "x.org", Version: "v1", Resource: "xs"}).CheckScope(t.Context())} {
		if err != nil || asked.Load() != 0 {
			t.Errorf("in all namespaces: %v, %d requests", err, asked.Load())
		}
	}
	for registered, err := range map[scheme.Scope]error{
		scheme.Namespaced: For[*corev1.Pod](c).Namespace("n").CheckScope(t.Context()),
		scheme.Cluster:    For[*corev1.Node](c).CheckScope(t.Context()),
	} {
		var wrong *ScopeError
		if !errors.As(err, &wrong) || wrong.Registered != registered || !strings.Contains(err.Error(), "correct scheme.Mapping.Scope") {
			t.Errorf("registered as %s: %v", registered, err)
		}
	}
}

// The 404 for an unknown resource in a namespace says that there may be none.
func TestNotFoundInANamespaceNamesTheScope(t *testing.T) {
	c, _ := serve(t, Options{}, http.NotFoundHandler())
	widgets := Dynamic(c, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	for namespace, want := range map[string]bool{"n": true, "": false} {
		_, err := widgets.Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil || strings.Contains(err.Error(), "cluster-scoped") != want {
			t.Errorf("in %q: %v", namespace, err)
		}
	}
}

// Where the scheme does not know the scope, or a wrong one, the server is asked in the wrong
// place. Its 404 then says nothing of the object, and must not pass for one that does not exist.
func TestObjectsInTheWrongPlaceAreNotMissing(t *testing.T) {
	for _, page := range []bool{false, true} {
		for _, test := range []struct{ served, registered scheme.Scope }{
			{scheme.Namespaced, ""}, {scheme.Cluster, ""}, {scheme.Namespaced, scheme.Cluster}, {scheme.Cluster, scheme.Namespaced},
		} {
			name := fmt.Sprintf("served %s, registered %q, page %v", test.served, test.registered, page)
			requests := atomic.Int64{}
			c, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				switch {
				case r.URL.Path == "/apis/example.com/v1":
					answerJSON(w, http.StatusOK, fmt.Sprintf(`{"kind":"APIResourceList","resources":[{"name":"widgets","namespaced":%v}]}`, test.served == scheme.Namespaced))
				case page: // kube-apiserver's
					http.NotFound(w, r)
				default: // Levelwire's
					answerJSON(w, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource","details":{}}`)
				}
			}))
			kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
			widgets := DynamicMapping(c, scheme.Mapping{Kind: kind, Resource: "widgets", Scope: test.registered})
			widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}}}
			if test.served == scheme.Cluster {
				widgets = widgets.Namespace("n")
			}
			ctx := t.Context()
			errs := map[string]error{"delete": widgets.Delete(ctx, "w", metav1.DeleteOptions{})}
			_, errs["get"] = widgets.Get(ctx, "w", metav1.GetOptions{})
			_, errs["patch"] = widgets.Patch(ctx, "w", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			_, errs["create"] = widgets.Create(ctx, widget, metav1.CreateOptions{})
			_, errs["apply"] = widgets.Apply(ctx, widget, metav1.ApplyOptions{FieldManager: "m"})
			_, errs["change"] = widgets.UpdateWithRetry(ctx, "w", func(*unstructured.Unstructured) error { return nil })
			_, _, errs["create or update"] = widgets.CreateOrUpdate(ctx, widget, func(*unstructured.Unstructured) error { return nil })
			errs["delete all"] = widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			if test.registered == "" {
				errs["subresource"] = widgets.SubResource("status").Get(ctx, "w", &unstructured.Unstructured{}, metav1.GetOptions{})
			}
			for verb, err := range errs {
				var scope *ScopeError
				if !errors.As(err, &scope) || scope.Scope != test.served || apierrors.IsNotFound(err) || IgnoreNotFound(err) == nil {
					t.Errorf("%s: %s: got %v", name, verb, err)
				}
			}
			if n := requests.Load(); n != 2*int64(len(errs)) {
				t.Errorf("%s: %d requests for %d calls", name, n, len(errs))
			}
		}
	}
}

// The scopes of Kubernetes' own types are certain: a resource that is not served costs one request.
func TestScopesOfKubernetesAreNotAskedFor(t *testing.T) {
	requests := atomic.Int64{}
	c, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		answerJSON(w, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource","details":{}}`)
	}))
	if _, err := For[*corev1.Pod](c).Namespace("n").Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) || requests.Load() != 1 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}
