package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/scheme"
)

// A binding or an eviction has succeeded once the server has created it, whatever it
// says. A page of a proxy, which comes with 200, is no success of a create, and
// neither is what holds no answer where there must be one.
func TestSubResourceCreateAnswers(t *testing.T) {
	status := `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	token := `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":{"name":"made"}}`
	for _, test := range []struct {
		subresource string
		code        int
		contentType string
		body        string
		says        string // "": success
	}{
		{"binding", 201, "application/json", status, ""},
		{"binding", 201, "application/json", `{"kind":"Binding"}`, ""},
		{"binding", 201, "text/plain", "", ""},
		{"binding", 201, "application/cbor", "\xd9\xd9\xf7", ""},
		{"eviction", 201, "application/json", status, ""},
		{"eviction", 201, "application/yaml", "kind: Status", ""},
		{"eviction", 200, "application/json", status, ""},
		{"binding", 200, "text/html", "<html>log in</html>", "neither JSON nor protobuf"},
		{"token", 201, "application/json", token, ""},
		{"token", 201, "application/json", status, "the answer is a Status"},
		{"token", 201, "application/json", "", "the answer is empty"},
		{"token", 201, "text/plain", "", "the answer is empty"},
		{"token", 200, "text/html", "<html>log in</html>", "neither JSON nor protobuf"},
		{"token", 201, "application/cbor", "\xd9\xd9\xf7", "neither JSON nor protobuf"},
	} {
		client, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.contentType)
			w.WriteHeader(test.code)
			_, _ = w.Write([]byte(test.body))
		}))
		body := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Any", APIVersion: "v1"}}
		err := For[*corev1.Pod](client).Namespace("ns").SubResource(test.subresource).Create(t.Context(), "a", body, metav1.CreateOptions{})
		var decode *DecodeError
		if test.says == "" && err != nil || test.says != "" && (!errors.As(err, &decode) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s, %d %s %q: %v", test.subresource, test.code, test.contentType, test.body, err)
		}
		if want := map[bool]string{true: "made"}[test.body == token]; body.Name != want {
			t.Errorf("%s %q: the body's name is %q", test.subresource, test.body, body.Name)
		}
	}
}

// An answer takes the place of what the value held: of a Scale that is read a second time, 0
// replicas are not in the JSON, and a list would be appended to by protobuf.
func TestSubResourceAnswersReplaceTheValue(t *testing.T) {
	const key = "example.com/key"
	for _, contentType := range []ContentType{JSON, Protobuf} {
		client, _ := serve(t, Options{ContentType: contentType}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "b", Finalizers: []string{key}}}
			data, media, err := codec.Encode(scheme.Default, answer, contentType == Protobuf)
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", media)
			_, _ = w.Write(data)
		}))
		scales := For[*appsv1.Deployment](client).Namespace("ns").SubResource("scale")
		for verb, send := range map[string]func(scale *autoscalingv1.Scale) error{
			"get": func(scale *autoscalingv1.Scale) error {
				return scales.Get(t.Context(), "b", scale, metav1.GetOptions{})
			},
			"create": func(scale *autoscalingv1.Scale) error {
				return scales.Create(t.Context(), "b", scale, metav1.CreateOptions{})
			},
			"update": func(scale *autoscalingv1.Scale) error {
				return scales.Update(t.Context(), "b", scale, metav1.UpdateOptions{})
			},
			"patch": func(scale *autoscalingv1.Scale) error {
				return scales.Patch(t.Context(), "b", types.MergePatchType, []byte(`{}`), scale, metav1.PatchOptions{})
			},
		} {
			labels := map[string]string{key: "a"}
			scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels, Finalizers: []string{key}}, Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
			if err := send(scale); err != nil {
				t.Errorf("%s %s: %v", verb, contentType, err)
			}
			if scale.Name != "b" || scale.Spec.Replicas != 0 || len(scale.Labels) != 0 || len(scale.Finalizers) != 1 {
				t.Errorf("%s %s: got %+v", verb, contentType, scale)
			}
		}
	}
}

// An answer that is not understood leaves the value as it was.
func TestSubResourceAnswerThatIsBroken(t *testing.T) {
	client, _ := serve(t, Options{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, `{"metadata":{"name":"b"},"spec":{"replicas":"many"}}`)
	}))
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	var decode *DecodeError
	err := For[*appsv1.Deployment](client).Namespace("ns").SubResource("scale").Get(t.Context(), "b", scale, metav1.GetOptions{})
	if !errors.As(err, &decode) || scale.Name != "a" {
		t.Errorf("got %+v, %v", scale, err)
	}
}

// A stream is passed on as it comes, with its query, and is not compressed.
func TestSubResourceStream(t *testing.T) {
	rec := &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "one\ntwo\n") }}
	client, _ := serve(t, Options{ContentType: Protobuf}, rec)
	pods := For[*corev1.Pod](client).Namespace("ns")
	log, err := pods.SubResource("log").Stream(t.Context(), "a", &corev1.PodLogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if got := rec.last(t); got.uri != "/api/v1/namespaces/ns/pods/a/log?follow=true" || got.encoding != "identity" || got.accept != "application/json, */*" {
		t.Errorf("the server saw %+v", got)
	}
	if got := client.Stats().BytesReceived; got != 8 {
		t.Errorf("%d bytes received", got)
	}
	if _, err := pods.SubResource("log").Stream(t.Context(), "", nil); err == nil {
		t.Error("without a name: no error")
	}
}

func TestURL(t *testing.T) {
	client, _ := serve(t, Options{}, &recorder{})
	pods := For[*corev1.Pod](client).Namespace("ns")
	for want, name := range map[string][]string{
		"http://server/api/v1/namespaces/ns/pods":        {""},
		"http://server/api/v1/namespaces/ns/pods/a":      {"a"},
		"http://server/api/v1/namespaces/ns/pods/a/exec": {"a", "exec"},
	} {
		if got, err := pods.URL(name[0], name[1:]...); err != nil || got.String() != want {
			t.Errorf("%v: %v, %v", name, got, err)
		}
	}
	if got, err := pods.URL("../a"); err == nil {
		t.Errorf("got %v", got)
	}
}
