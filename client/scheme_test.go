package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/scheme"
)

// widget has no TypeMeta: its kind comes from the scheme alone.
type widget struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func (w *widget) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (w *widget) DeepCopyObject() runtime.Object { c := *w; return &c }

var widgets = scheme.Mapping{
	Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Scope: scheme.Namespaced,
}

func TestRegisteredTypesNeedNoKind(t *testing.T) {
	s := scheme.New()
	if err := scheme.Register[*widget](s, widgets); err != nil {
		t.Fatal(err)
	}
	rec := &recorder{}
	c, _ := serve(t, Options{Scheme: s, ContentType: Protobuf}, rec)
	obj := &widget{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "ns"}}
	obj.Spec.Size = 3
	if _, err := For[*widget](c).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := rec.last(t)
	if got.uri != "/apis/example.com/v1/namespaces/ns/widgets" || got.contentType != "application/json" ||
		!strings.HasPrefix(got.body, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":`) || !strings.Contains(got.body, `"size":3`) {
		t.Errorf("the server saw %+v", got)
	}
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w", "namespace": "ns"}}}
	if _, err := Dynamic(c, gvr).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := rec.last(t); !strings.Contains(got.body, `"kind":"Widget"`) || u.GetKind() != "" {
		t.Errorf("dynamic: the server saw %+v", got)
	}
}

func TestTypesThatAreNotRegistered(t *testing.T) {
	rec := &recorder{}
	c, _ := serve(t, Options{}, rec)
	ctx := t.Context()
	r := For[*widget](c)
	_, get := r.Namespace("ns").Get(ctx, "w", metav1.GetOptions{})
	_, list := r.List(ctx, metav1.ListOptions{})
	_, watch := r.Watch(ctx, metav1.ListOptions{})
	_, difference := r.Difference(ctx, nil, metav1.ListOptions{})
	for verb, err := range map[string]error{"err": r.Err(), "get": get, "list": list, "watch": watch, "difference": difference} {
		if !errors.Is(err, scheme.ErrNotRegistered) || !strings.Contains(err.Error(), "scheme.Register[*client.widget](c.Scheme()") || verb != "err" && !strings.HasPrefix(err.Error(), verb+" *client.widget: ") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	for name, err := range map[string]error{
		"metadata":    For[*metav1.PartialObjectMetadata](c).Err(),
		"subresource": For[*autoscalingv1.Scale](c).Err(),
		"interface":   For[Object](c).Err(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := For[*corev1.Pod](nil).List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("a nil client: no error")
	}
	if len(rec.all) > 0 {
		t.Errorf("requests were sent: %+v", rec.all)
	}
}

func TestForKnowsTheEndpoint(t *testing.T) {
	r := For[*corev1.Pod](nil)
	if got := r.GroupVersionResource(); got != corev1.SchemeGroupVersion.WithResource("pods") {
		t.Errorf("got %v", got)
	}
	if m, ok := r.Mapping(); !ok || m.Scope != scheme.Namespaced || m.Kind.Kind != "Pod" {
		t.Errorf("got %v, %v", m, ok)
	}
	if first, second := r.New(), r.New(); first == nil || first == second {
		t.Error("New must give a new object each time")
	}
}

// A URL that lacks a namespace, or has one too many, is answered 404 like an object
// that does not exist. No such request is sent.
func TestScopeIsCheckedBeforeSending(t *testing.T) {
	rec := &recorder{}
	c, _ := serve(t, Options{}, rec)
	ctx := t.Context()
	pods, nodes := For[*corev1.Pod](c), For[*corev1.Node](c)
	dynamicPods := Dynamic(c, podsResource)
	pod, node := &corev1.Pod{}, &corev1.Node{}
	pod.Name, node.Name = "a", "a"
	inNamespace := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}}
	var scale autoscalingv1.Scale
	errOf := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"get":              errOf(pods.Get(ctx, "a", metav1.GetOptions{})),
		"create":           errOf(pods.Create(ctx, pod, metav1.CreateOptions{})),
		"update":           errOf(pods.Update(ctx, pod, metav1.UpdateOptions{})),
		"status":           errOf(pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})),
		"patch":            errOf(pods.Patch(ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})),
		"delete":           pods.Delete(ctx, "a", metav1.DeleteOptions{}),
		"deletecollection": pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		"subresource":      pods.SubResource("scale").Get(ctx, "a", &scale, metav1.GetOptions{}),
		"dynamic":          errOf(dynamicPods.Get(ctx, "a", metav1.GetOptions{})),
		"metadata":         errOf(Metadata(c, podsResource).Get(ctx, "a", metav1.GetOptions{})),

		"cluster get":    errOf(nodes.Namespace("ns").Get(ctx, "a", metav1.GetOptions{})),
		"cluster list":   errOf(nodes.Namespace("ns").List(ctx, metav1.ListOptions{})),
		"cluster watch":  errOf(nodes.Namespace("ns").Watch(ctx, metav1.ListOptions{})),
		"cluster create": errOf(For[*rbacv1.ClusterRole](c).Create(ctx, inNamespace, metav1.CreateOptions{})),

		"create without a name": errOf(pods.Namespace("ns").Create(ctx, &corev1.Pod{}, metav1.CreateOptions{})),
		"update without a name": errOf(nodes.Update(ctx, &corev1.Node{}, metav1.UpdateOptions{})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if len(rec.all) > 0 {
		t.Errorf("requests were sent: %+v", rec.all)
	}
}

func TestScopeCheckAllows(t *testing.T) {
	c, _ := serve(t, Options{}, &recorder{})
	ctx := t.Context()
	pods := For[*corev1.Pod](c)
	generated := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-", Namespace: "ns"}}
	unknown := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
	errOf := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"generateName":        errOf(pods.Create(ctx, generated, metav1.CreateOptions{})),
		"review":              errOf(For[*authorizationv1.SubjectAccessReview](c).Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{})),
		"all namespaces":      errOf(pods.List(ctx, metav1.ListOptions{})),
		"cluster":             errOf(For[*corev1.Node](c).Get(ctx, "a", metav1.GetOptions{})),
		"unknown":             errOf(Dynamic(c, unknown).Get(ctx, "a", metav1.GetOptions{})),
		"unknown, namespaced": errOf(Dynamic(c, unknown).Namespace("ns").Get(ctx, "a", metav1.GetOptions{})),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A resource whose scope is unknown is asked for; the 404 for a path that does not exist
// is told apart from that for an object that does not.
func TestNotFoundOfAResourceOfUnknownScope(t *testing.T) {
	for body, hint := range map[string]bool{
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{},"message":"the server could not find the requested resource"}`: true,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"a","kind":"things"},"message":"things \"a\" not found"}`: false,
	} {
		c, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) { answerJSON(w, 404, body) }})
		things := Dynamic(c, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"})
		_, got := things.Get(t.Context(), "a", metav1.GetOptions{})
		_, inNamespace := things.Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
		deleted := things.Delete(t.Context(), "a", metav1.DeleteOptions{})
		if !apierrors.IsNotFound(got) || strings.Contains(got.Error(), "call Namespace") != hint || strings.Contains(deleted.Error(), "call Namespace") != hint {
			t.Errorf("without a namespace: %v; %v", got, deleted)
		}
		if !apierrors.IsNotFound(inNamespace) || strings.Contains(inNamespace.Error(), "call Namespace") {
			t.Errorf("in a namespace: %v", inNamespace)
		}
	}
}
