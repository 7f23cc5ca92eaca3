package client

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/scheme"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// seen is what a server saw of one request.
type seen struct {
	method, uri, contentType, accept, agent, encoding, body string
}

// recorder answers with what answer writes and remembers requests.
type recorder struct {
	mu     sync.Mutex
	all    []seen
	answer func(n int, w http.ResponseWriter, r *http.Request)
}

func (s *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.all = append(s.all, seen{r.Method, r.RequestURI, r.Header.Get("Content-Type"), r.Header.Get("Accept"),
		r.Header.Get("User-Agent"), r.Header.Get("Accept-Encoding"), string(body)})
	n := len(s.all)
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(n, w, r)
		return
	}
	// It does for an object of any kind and for a list.
	answerJSON(w, http.StatusOK, `{"metadata":{"name":"a","resourceVersion":"7"},"items":[]}`)
}

func (s *recorder) last(t *testing.T) seen {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		t.Fatal("no request arrived")
	}
	return s.all[len(s.all)-1]
}

func answerJSON(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

func TestVerbsOnTheWire(t *testing.T) {
	for version, opts := range httpVersions {
		t.Run(version, func(t *testing.T) {
			rec := &recorder{}
			opts.UserAgent = "tester"
			client, _ := serve(t, opts, rec)
			pods := For[*corev1.Pod](client).Namespace("ns")
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}}
			ctx := t.Context()
			seconds := int64(3)
			for _, test := range []struct {
				name        string
				call        func() error
				method, uri string
				contentType string
				body        string // a part of it
			}{
				{"get", func() error { _, err := pods.Get(ctx, "a", metav1.GetOptions{ResourceVersion: "5"}); return err },
					"GET", "/api/v1/namespaces/ns/pods/a?resourceVersion=5", "", ""},
				{"list", func() error {
					_, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "a=b", Limit: 5, Watch: true})
					return err
				}, "GET", "/api/v1/namespaces/ns/pods?labelSelector=a%3Db&limit=5", "", ""},
				{"create in the object's namespace", func() error {
					_, err := For[*corev1.Pod](client).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{"All"}})
					return err
				}, "POST", "/api/v1/namespaces/ns/pods?dryRun=All", "application/json", `"kind":"Pod"`},
				{"update", func() error { _, err := pods.Update(ctx, pod, metav1.UpdateOptions{}); return err },
					"PUT", "/api/v1/namespaces/ns/pods/a", "application/json", `"name":"a"`},
				{"status", func() error { _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); return err },
					"PUT", "/api/v1/namespaces/ns/pods/a/status", "application/json", `"status"`},
				{"patch", func() error {
					_, err := pods.Patch(ctx, "a", types.MergePatchType, []byte(`{"x":1}`), metav1.PatchOptions{FieldManager: "me"}, "status")
					return err
				}, "PATCH", "/api/v1/namespaces/ns/pods/a/status?fieldManager=me", "application/merge-patch+json", `{"x":1}`},
				{"delete", func() error {
					return pods.Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: &seconds})
				}, "DELETE", "/api/v1/namespaces/ns/pods/a", "application/json", `"gracePeriodSeconds":3`},
				{"deletecollection", func() error {
					return pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "x=y"})
				}, "DELETE", "/api/v1/namespaces/ns/pods?fieldSelector=x%3Dy", "application/json", `"kind":"DeleteOptions"`},
				{"bind", func() error {
					return pods.SubResource("binding").Create(ctx, "a", &corev1.Binding{Target: corev1.ObjectReference{Name: "n"}}, metav1.CreateOptions{})
				}, "POST", "/api/v1/namespaces/ns/pods/a/binding", "application/json", `"kind":"Binding"`},
				{"cluster role", func() error {
					_, err := For[*rbacv1.ClusterRole](client).Get(ctx, "system:node", metav1.GetOptions{})
					return err
				}, "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node", "", ""},
				{"scale", func() error {
					scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
					return pods.SubResource("scale").Update(ctx, "a", scale, metav1.UpdateOptions{})
				}, "PUT", "/api/v1/namespaces/ns/pods/a/scale", "application/json", `"replicas":4`},
			} {
				if err := test.call(); err != nil {
					t.Errorf("%s: %v", test.name, err)
					continue
				}
				got := rec.last(t)
				if got.method != test.method || got.uri != test.uri || got.contentType != test.contentType ||
					!strings.Contains(got.body, test.body) || got.agent != "tester" {
					t.Errorf("%s: the server saw %+v", test.name, got)
				}
			}
		})
	}
}

func TestAnswersAreDecoded(t *testing.T) {
	client, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}`)
	}})
	pod, err := For[*corev1.Pod](client).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || pod.Name != "a" || pod.ResourceVersion != "7" || pod.Kind != "" {
		t.Errorf("typed: %+v, %v", pod, err)
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	u, err := Dynamic(client, gvr).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || u.GetName() != "a" || u.GetKind() != "Pod" {
		t.Errorf("dynamic: %+v, %v", u, err)
	}
	m, err := Metadata(client, gvr).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || m.Name != "a" {
		t.Errorf("metadata: %+v, %v", m, err)
	}
	var scale autoscalingv1.Scale
	err = For[*corev1.Pod](client).Namespace("ns").SubResource("scale").Get(t.Context(), "a", &scale, metav1.GetOptions{})
	if err != nil || scale.Name != "a" {
		t.Errorf("another type: %+v, %v", scale, err)
	}
}

func TestNamesThatWouldPointElsewhere(t *testing.T) {
	rec := &recorder{}
	client, _ := serve(t, Options{}, rec)
	pods := For[*corev1.Pod](client)
	for _, name := range []string{"", "..", "a/b", "a%2fb"} {
		if _, err := pods.Namespace("ns").Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			t.Errorf("name %q: no error", name)
		}
		if _, err := pods.Namespace(name).Get(t.Context(), "", metav1.GetOptions{}); err == nil {
			t.Errorf("namespace %q without a name: no error", name)
		}
	}
	// A list of what cannot exist would be empty for ever.
	for _, namespace := range []string{"Default", "kube_system", "apps/web", strings.Repeat("a", 64)} {
		if _, err := pods.Namespace(namespace).List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "no namespace has such a name") {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
	for _, subresource := range []string{"", ".", "..", "../../b", "proxy/../../b"} {
		if err := pods.Namespace("ns").SubResource(subresource).Get(t.Context(), "a", &corev1.Pod{}, metav1.GetOptions{}); err == nil {
			t.Errorf("subresource %q: no error", subresource)
		}
	}
	if len(rec.all) > 0 {
		t.Errorf("requests were sent: %+v", rec.all)
	}
}

// Without a resource, the URL of a collection in a namespace is that of the namespace, which a
// deletion of all objects would delete.
func TestResourcesWithoutAVersionOrName(t *testing.T) {
	rec := &recorder{}
	client, _ := serve(t, Options{}, rec)
	for _, gvr := range []schema.GroupVersionResource{{}, {Version: "v1"}, {Group: "apps", Resource: "deployments"}} {
		dynamic, metadata := Dynamic(client, gvr).Namespace("ns"), Metadata(client, gvr).Namespace("ns")
		typed := ForResource(client, gvr, func() *corev1.Pod { return &corev1.Pod{} }).Namespace("ns")
		_, url := dynamic.URL("a")
		for name, err := range map[string]error{
			"deletecollection": dynamic.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
			"delete":           metadata.Delete(t.Context(), "a", metav1.DeleteOptions{}),
			"typed":            typed.Delete(t.Context(), "a", metav1.DeleteOptions{}),
			"url":              url,
			"err":              DynamicMapping(client, scheme.Mapping{Kind: gvr.GroupVersion().WithKind("A"), Resource: gvr.Resource}).Err(),
		} {
			if err == nil || !strings.Contains(err.Error(), "has no version or no name") {
				t.Errorf("%v, %s: %v", gvr, name, err)
			}
		}
	}
	if len(rec.all) > 0 {
		t.Errorf("requests were sent: %+v", rec.all)
	}
}

func TestRefusalsAreStatusErrors(t *testing.T) {
	status := func(s metav1.Status) string {
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		s.Status = metav1.StatusFailure
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, test := range []struct {
		name        string
		code        int
		contentType string
		body        string
		check       func(error) bool
	}{
		{"not found", 404, "application/json", status(metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404}), apierrors.IsNotFound},
		{"expired", 410, "application/json", status(metav1.Status{Reason: metav1.StatusReasonExpired, Code: 410}), apierrors.IsResourceExpired},
		{"no code in the body", 409, "application/json", status(metav1.Status{Reason: metav1.StatusReasonConflict}),
			func(err error) bool {
				var s apierrors.APIStatus
				return errors.As(err, &s) && s.Status().Code == 409 && apierrors.IsConflict(err)
			}},
		{"a proxy's page", 502, "text/html", "<h1>no</h1>", func(err error) bool {
			var s apierrors.APIStatus
			return errors.As(err, &s) && s.Status().Code == 502
		}},
		{"forbidden by something else", 403, "", "no entry", apierrors.IsForbidden},
		{"a Status that is cut", 400, "application/json", `{"kind":"Status"`, apierrors.IsBadRequest},
		{"a Success with a failing code", 401, "application/json", `{"kind":"Status","status":"Success"}`, apierrors.IsUnauthorized},
		{"redirect without a place", 304, "", "", func(err error) bool { return err != nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			}})
			pods := For[*corev1.Pod](client)
			_, err := pods.Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
			if !test.check(err) {
				t.Errorf("get: %#v", err)
			}
			if _, err = pods.List(t.Context(), metav1.ListOptions{}); !test.check(err) {
				t.Errorf("list: %#v", err)
			}
			if _, err = pods.Watch(t.Context(), metav1.ListOptions{}); !test.check(err) {
				t.Errorf("watch: %#v", err)
			}
		})
	}
}

func TestProtobufStatus(t *testing.T) {
	status := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a").Status()
	body, _, err := codec.Encode(scheme.Default, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: status.Status,
		Reason: status.Reason, Code: status.Code, Message: status.Message}, true)
	if err != nil {
		t.Fatal(err)
	}
	client, _ := serve(t, Options{ContentType: Protobuf}, &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", string(Protobuf))
		w.WriteHeader(404)
		_, _ = w.Write(body)
	}})
	_, err = For[*corev1.Pod](client).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || err.Error() != `pods "a" not found` {
		t.Errorf("got %v", err)
	}
}

func TestRetryOnlyWhereItIsSafe(t *testing.T) {
	for _, test := range []struct {
		name  string
		code  int
		after string
		call  func(*Client, *testing.T) error
		retry RetryOptions
		tries int
		takes time.Duration
		most  time.Duration // with the random part
	}{
		{"429 for a read", 429, "2", get, RetryOptions{Max: 3}, 4, 6 * time.Second, (4 + 6 + 10) * time.Second},
		{"429 for a write", 429, "1", create, RetryOptions{Max: 2}, 3, 2 * time.Second, (2 + 3) * time.Second},
		{"429 without a time", 429, "", get, RetryOptions{Max: 1}, 1, 0, 0},
		{"429 with a very long time", 429, "9999", get, RetryOptions{Max: 1, MaxWait: 4 * time.Second}, 2, 4 * time.Second, 8 * time.Second},
		{"503 for a read", 503, "1", get, RetryOptions{Max: 2}, 3, 2 * time.Second, (2 + 3) * time.Second},
		{"503 for a write may have been done", 503, "1", create, RetryOptions{}, 1, 0, 0},
		{"503 without a time", 503, "", get, RetryOptions{}, 1, 0, 0},
		{"504 says that waiting did not help", 504, "1", get, RetryOptions{}, 1, 0, 0},
		{"a watch has its own back-off", 429, "1", watchOnce, RetryOptions{}, 1, 0, 0},
		{"switched off", 429, "1", get, RetryOptions{Max: -1}, 1, 0, 0},
		{"ten by default", 429, "1", get, RetryOptions{}, 11, 10 * time.Second, (10 + 31 + 5*30) * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
					if test.after != "" {
						w.Header().Set("Retry-After", test.after)
					}
					w.WriteHeader(test.code)
				}}
				client, _ := serve(t, Options{Retry: test.retry}, rec)
				start := time.Now()
				err := test.call(client, t)
				var status apierrors.APIStatus
				if !errors.As(err, &status) || int(status.Status().Code) != test.code {
					t.Errorf("got %v", err)
				}
				took := time.Since(start)
				if len(rec.all) != test.tries || took < test.takes || took > test.most {
					t.Errorf("%d tries in %v, want %d in %v to %v", len(rec.all), took, test.tries, test.takes, test.most)
				}
				if got := client.Stats(); got.Requests != int64(test.tries) || got.Retries != int64(test.tries-1) || got.RetryWait != took {
					t.Errorf("stats: %+v", got)
				}
			})
		})
	}
}

func get(c *Client, t *testing.T) error {
	_, err := For[*corev1.Pod](c).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
	return err
}

func create(c *Client, t *testing.T) error {
	_, err := For[*corev1.Pod](c).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}}, metav1.CreateOptions{})
	return err
}

func watchOnce(c *Client, t *testing.T) error {
	_, err := For[*corev1.Pod](c).Watch(t.Context(), metav1.ListOptions{})
	return err
}

// A caller whose deadline comes before the next try hears the server's reason
// at once.
func TestNoRetryBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(429)
		}})
		ctx, cancel := contextTimeout(t, 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := For[*corev1.Pod](client).Namespace("ns").Get(ctx, "a", metav1.GetOptions{})
		if !apierrors.IsTooManyRequests(err) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestAcceptSaysWhatIsWanted(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
	for _, test := range []struct {
		name   string
		ct     ContentType
		call   func(*Client, *testing.T) error
		accept string
	}{
		{"JSON", JSON, get, "application/json"},
		{"default", "", get, "application/json"},
		{"protobuf", Protobuf, get, "application/vnd.kubernetes.protobuf,application/json"},
		{"dynamic is JSON", Protobuf, func(c *Client, t *testing.T) error {
			_, err := Dynamic(c, gvr).Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}, "application/json"},
		{"custom types are JSON", Protobuf, func(c *Client, t *testing.T) error {
			_, err := ForResource(c, gvr, func() *unstructured.Unstructured { return &unstructured.Unstructured{} }).Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}, "application/json"},
		{"metadata", JSON, func(c *Client, t *testing.T) error {
			_, err := Metadata(c, gvr).Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"},
		{"a list of metadata", Protobuf, func(c *Client, t *testing.T) error {
			_, err := Metadata(c, gvr).List(t.Context(), metav1.ListOptions{})
			return err
		}, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
			"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"},
	} {
		rec := &recorder{}
		client, _ := serve(t, Options{ContentType: test.ct}, rec)
		if err := test.call(client, t); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := rec.last(t).accept; got != test.accept {
			t.Errorf("%s: accept %q, want %q", test.name, got, test.accept)
		}
	}
}

func TestAnswerThatIsNotAnAPIServer(t *testing.T) {
	client, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>hello</html>")
	}))
	pods := For[*corev1.Pod](client)
	_, getErr := pods.Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
	_, listErr := pods.List(t.Context(), metav1.ListOptions{})
	_, watchErr := pods.Watch(t.Context(), metav1.ListOptions{})
	for _, err := range []error{getErr, listErr, watchErr} {
		var decode *DecodeError
		if !errors.As(err, &decode) {
			t.Errorf("got %v", err)
		}
	}
}

func TestObjectOverTheLimit(t *testing.T) {
	client, _ := serve(t, Options{MaxFrameBytes: 40}, &recorder{})
	if err := get(client, t); !errors.Is(err, ErrFrameTooLarge) {
		t.Errorf("got %v", err)
	}
	client, _ = serve(t, Options{MaxFrameBytes: -1}, &recorder{})
	if err := get(client, t); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
