package client

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client/internal/transfer"
	"github.com/levelwire/levelwire/client/internal/wiretest"
)

// TestTransferOfAWatch cuts the stream into parts behind whole events, within the second event and
// within its beginning.
func TestTransferOfAWatch(t *testing.T) {
	for _, behind := range []int{0, 1, 3, 40} {
		eachWire(t, func(t *testing.T, opts Options, contentType string, protobuf bool) {
			synctest.Test(t, func(t *testing.T) { watchInParts(t, opts, contentType, protobuf, behind) })
		})
	}
}

// watchInParts sends an event and so many bytes of the next, and the rest of that a minute later.
func watchInParts(t *testing.T, opts Options, contentType string, protobuf bool, behind int) {
	first := frame(t, watch.Added, wiretest.Pod(1), protobuf)
	second := frame(t, watch.Added, wiretest.Pod(2), protobuf)
	client, _ := serve(t, opts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(append(first[:len(first):len(first)], second[:behind]...))
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Minute)
		_, _ = w.Write(second[behind:])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	var received transfer.Transfer
	w, err := For[*corev1.Pod](client).Watch(transfer.With(t.Context(), &received), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan error)
	read := func() {
		_, err := w.Next()
		next <- err
	}
	go read()
	if err := <-next; err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	go read()
	time.Sleep(time.Second)
	synctest.Wait()
	if since, partial := received.PartialSince(); partial != (behind > 0) || partial && since.After(begun) {
		t.Errorf("%d bytes of an event have come: partial %t since %v", behind, partial, since)
	}
	if got, want := received.Bytes(), int64(len(first)+behind); got != want {
		t.Errorf("%d bytes were received, want %d", got, want)
	}
	if err := <-next; err != nil {
		t.Error(err)
	}
	if since, partial := received.PartialSince(); partial != (behind > 0) || partial && since.After(begun) {
		t.Errorf("%d bytes of the event had come: partial %t since %v", behind, partial, since)
	}
	go read()
	synctest.Wait()
	if _, partial := received.PartialSince(); partial {
		t.Error("partial behind the event")
	}
	w.Close()
	<-next
}

// TestTransferOfOtherAnswers counts lists, differences and objects, and no refusals.
func TestTransferOfOtherAnswers(t *testing.T) {
	held := samplePods(3)
	for name, test := range map[string]struct {
		handler http.Handler
		ask     func(r Resource[*corev1.Pod], received *transfer.Transfer) error
		none    bool
	}{
		"list": {handler: answerWith("application/json", []byte(`{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[]}`)), ask: func(r Resource[*corev1.Pod], received *transfer.Transfer) error {
			_, err := r.List(transfer.With(t.Context(), received), metav1.ListOptions{})
			return err
		}},
		"object": {handler: answerWith("application/json", []byte(`{"kind":"Pod","metadata":{"name":"a","resourceVersion":"5"}}`)), ask: func(r Resource[*corev1.Pod], received *transfer.Transfer) error {
			_, err := r.Namespace("ns").Get(transfer.With(t.Context(), received), "a", metav1.GetOptions{})
			return err
		}},
		"difference": {handler: &differenceServer{pods: held, media: JSON}, ask: func(r Resource[*corev1.Pod], received *transfer.Transfer) error {
			_, err := r.Difference(transfer.With(t.Context(), received), held[:2], metav1.ListOptions{ResourceVersion: "5"})
			return err
		}},
		"refusal": {none: true, handler: http.NotFoundHandler(), ask: func(r Resource[*corev1.Pod], received *transfer.Transfer) error {
			if _, err := r.List(transfer.With(t.Context(), received), metav1.ListOptions{}); err == nil {
				t.Error("no error")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := serve(t, Options{}, test.handler)
			var received transfer.Transfer
			if err := test.ask(For[*corev1.Pod](client), &received); err != nil {
				t.Fatal(err)
			}
			if got := received.Bytes(); (got == 0) != test.none {
				t.Errorf("%d bytes", got)
			}
		})
	}
}
