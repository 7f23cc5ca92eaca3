package client

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The error for a resource that the server does not serve says which it is and what to
// look at, and apierrors and IsStatus see the server's answer.
func TestResourcesThatAreNotServed(t *testing.T) {
	for name, sent := range map[string]bool{"a Status": true, "the page of kube-apiserver": false} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
				if !sent {
					http.NotFound(w, r)
					return
				}
				answerJSON(w, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource","details":{}}`)
			}})
			ctx := t.Context()
			cactuses := Dynamic(c, schema.GroupVersionResource{Group: "x.org", Version: "v1", Resource: "cactuses"})
			_, get := cactuses.Namespace("n").Get(ctx, "c", metav1.GetOptions{})
			_, list := cactuses.List(ctx, metav1.ListOptions{})
			_, watch := cactuses.Watch(ctx, metav1.ListOptions{})
			for verb, err := range map[string]error{"get": get, "list": list, "watch": watch} {
				notFound := sent || verb != "get" // of one object, the page says nothing
				if apierrors.IsNotFound(err) != notFound || IsStatus(err) != sent {
					t.Errorf("%s: %v is not the server's answer", verb, err)
				}
				want := verb + ` cactuses.x.org/v1: the server does not serve it: is its CustomResourceDefinition installed, and is its plural "cactuses" right (scheme.Mapping.Resource)?`
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s: got %v", verb, err)
				}
			}
			if _, err := cactuses.Get(ctx, "c", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "call Namespace") {
				t.Errorf("without a namespace: %v", err)
			}
			if _, err := For[*corev1.Pod](c).List(ctx, metav1.ListOptions{}); err == nil || strings.Contains(err.Error(), "CustomResourceDefinition") || !strings.Contains(err.Error(), "pods/v1") {
				t.Errorf("pods: %v", err)
			}
		})
	}
}

// An object that does not exist is none of that.
func TestObjectsThatDoNotExistKeepTheirError(t *testing.T) {
	c, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"pods \"p\" not found","details":{"name":"p","kind":"pods"}}`)
	}})
	if _, err := For[*corev1.Pod](c).Namespace("n").Get(t.Context(), "p", metav1.GetOptions{}); err == nil || err.Error() != `pods "p" not found` {
		t.Errorf("got %v", err)
	}
}

func TestApplyConflictsNameTheObject(t *testing.T) {
	c, _ := serve(t, Options{}, &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"conflict",
			"details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"other\" using v1","field":".data.a"}]}}`)
	}})
	cells := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-cells"}, Data: map[string]string{"a": "1"}}
	_, err := For[*corev1.ConfigMap](c).Apply(t.Context(), cells, metav1.ApplyOptions{FieldManager: "f"})
	if err == nil || !apierrors.IsConflict(err) || !strings.HasPrefix(err.Error(), "apply configmaps default/a-cells: other field managers") {
		t.Errorf("got %v", err)
	}
}

func TestPageErrorsNameTheResource(t *testing.T) {
	c, _ := serve(t, Options{}, pageServer(map[string]string{"x": `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"gone"}`,
		"": `{"kind":"Status"`}))
	for _, token := range []string{"x", ""} {
		for _, err := range For[*corev1.Pod](c).Pages(t.Context(), metav1.ListOptions{Continue: token}) {
			if err == nil || strings.Count(err.Error(), "list pods: ") != 1 {
				t.Errorf("continue token %q: got %v", token, err)
			}
		}
	}
}

// Servers answer 415 for a strategic merge patch of a custom resource. The error says what to
// send in its place.
func TestStrategicMergePatchOfACustomResource(t *testing.T) {
	c, _ := serve(t, Options{}, answerWithCode(http.StatusUnsupportedMediaType, "application/json",
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"UnsupportedMediaType","code":415,"message":"the body of the request was in an unknown format"}`))
	cactuses := Dynamic(c, schema.GroupVersionResource{Group: "x.org", Version: "v1", Resource: "cactuses"}).Namespace("n")
	for kind, explained := range map[types.PatchType]bool{types.StrategicMergePatchType: true, types.MergePatchType: false} {
		_, whole := cactuses.Patch(t.Context(), "c", kind, []byte(`{}`), metav1.PatchOptions{})
		status := cactuses.SubResource("status").Patch(t.Context(), "c", kind, []byte(`{}`), &unstructured.Unstructured{}, metav1.PatchOptions{})
		for what, err := range map[string]error{"the object": whole, "the status": status} {
			if !apierrors.IsUnsupportedMediaType(err) || strings.Contains(err.Error(), "patch cactuses.x.org: the server takes no strategic merge patch of this kind") != explained {
				t.Errorf("%s of %s: %v", kind, what, err)
			}
		}
	}
}
