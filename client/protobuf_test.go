package client

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client/internal/codec"
)

// A resource whose server does not read protobuf is sent JSON, for a time; the
// others, and the answers, stay as they are.
func TestRefusedProtobufBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "pods") && strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
				w.WriteHeader(http.StatusUnsupportedMediaType)
				return
			}
			answerJSON(w, 200, `{"metadata":{"name":"a"}}`)
		}}
		client, _ := serve(t, Options{ContentType: Protobuf}, rec)
		for range 2 {
			if err := create(client, t); err != nil {
				t.Fatal(err)
			}
		}
		if len(rec.all) != 3 {
			t.Errorf("%d requests: the refusal was not remembered", len(rec.all))
		}
		if got := rec.last(t); got.contentType != "application/json" || !strings.HasPrefix(got.body, "{") || !strings.Contains(got.accept, "protobuf") {
			t.Errorf("pods: the server saw %+v", got)
		}
		if got := client.Stats().ProtobufRefused; len(got) != 1 || got[0].Resource != "pods" {
			t.Errorf("stats: %v", got)
		}
		if _, err := For[*corev1.ConfigMap](client).Namespace("a").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := rec.last(t); got.contentType != string(Protobuf) {
			t.Errorf("config maps: the server saw %+v", got)
		}

		time.Sleep(10 * time.Minute)
		if got := client.Stats().ProtobufRefused; len(got) != 0 {
			t.Errorf("ten minutes later: %v", got)
		}
		rec.answer = nil // the server was upgraded
		if err := create(client, t); err != nil {
			t.Fatal(err)
		}
		if got := rec.last(t); got.contentType != string(Protobuf) {
			t.Errorf("after an upgrade: the server saw %+v", got)
		}
	})
}

// Not even requests that run at the same time fail.
func TestRefusedProtobufOfConcurrentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			if strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
				w.WriteHeader(http.StatusUnsupportedMediaType)
				return
			}
			answerJSON(w, 200, `{"metadata":{"name":"a"}}`)
		}}
		client, _ := serve(t, Options{ContentType: Protobuf}, rec)
		failed := make(chan error, 5)
		for range cap(failed) {
			go func() { failed <- create(client, t) }()
		}
		for range cap(failed) {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
	})
}

// A refusal of something else than protobuf is the answer, and nothing is concluded
// from it.
func TestRefusedJSONBody(t *testing.T) {
	for _, contentType := range []ContentType{JSON, Protobuf} {
		rec := &recorder{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			answerJSON(w, 415, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"UnsupportedMediaType","code":415}`)
		}}
		client, _ := serve(t, Options{ContentType: contentType}, rec)
		_, err := For[*corev1.Pod](client).Namespace("a").Patch(t.Context(), "a", types.StrategicMergePatchType, []byte("{}"), metav1.PatchOptions{})
		if !apierrors.IsUnsupportedMediaType(err) || len(rec.all) != 1 || len(client.Stats().ProtobufRefused) != 0 {
			t.Errorf("%s: %d requests, %v, %+v", contentType, len(rec.all), err, client.Stats())
		}
	}
}

// A server that has no answer in protobuf is asked for JSON, bodies stay as they are.
func TestRefusedProtobufAnswer(t *testing.T) {
	rec := &recorder{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "protobuf") {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		answerJSON(w, 200, `{"metadata":{"name":"a"}}`)
	}}
	client, _ := serve(t, Options{ContentType: Protobuf}, rec)
	if err := get(client, t); err != nil {
		t.Fatal(err)
	}
	if err := create(client, t); err != nil || len(rec.all) != 3 {
		t.Errorf("%d requests, %v", len(rec.all), err)
	}
	if got := rec.last(t); got.accept != "application/json" || got.contentType != codec.Protobuf {
		t.Errorf("the server saw %+v", got)
	}
	if got := client.Stats().ProtobufRefused; len(got) != 1 {
		t.Errorf("stats: %v", got)
	}
}
