package relay

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server/internal/delta"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// sendsEvent returns the stream of a relay whose upstream sends one event, and perhaps says
// that it carries a delta.
func sendsEvent(t *testing.T, deltas bool, sent []byte) *eventStream {
	t.Helper()
	r := relayOf(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get(delta.Header) != delta.Zstd {
			t.Error("the relay asks for no deltas")
		}
		if deltas {
			w.Header().Set(delta.Header, delta.Zstd)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":%s}\n", sent)
	})
	r.opts.Deltas = true
	res := builtin.Table().Lookup("", "v1", "configmaps")
	s := &source{relay: r, res: res, endpoint: client.ForResource(r.client, res.GroupVersionResource(), func() *object { return &object{} })}
	stream, err := s.watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.watch.Close)
	return stream
}

// TestWhatLooksLikeADelta is an object like others, unless the upstream says that the events of
// the stream carry deltas.
func TestWhatLooksLikeADelta(t *testing.T) {
	of := func(version int) []byte {
		return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d","name":"a","namespace":"default"}}`, version)
	}
	ref := delta.Reference{Key: "default/a", ResourceVersion: 8}
	right, err := delta.Encode(delta.Head(ref, delta.Reference{}, "default", "a"), nil, of(8))
	if err != nil {
		t.Fatal(err)
	}
	event, err := sendsEvent(t, false, right).next()
	if err != nil || string(event.Object.json) != string(right) {
		t.Errorf("without deltas: %s, %v", event.Object.json, err)
	}
	event, err = sendsEvent(t, true, right).next()
	if err != nil || string(event.Object.json) != string(of(8)) {
		t.Errorf("with deltas: %s, %v", event.Object.json, err)
	}
	for name, head := range map[string][]byte{
		"version":   delta.Head(delta.Reference{ResourceVersion: 9}, delta.Reference{}, "default", "a"),
		"name":      delta.Head(ref, delta.Reference{}, "default", "b"),
		"namespace": delta.Head(ref, delta.Reference{}, "other", "a"),
	} {
		wrong, err := delta.Encode(head, nil, of(8))
		if err != nil {
			t.Fatal(err)
		}
		if event, err := sendsEvent(t, true, wrong).next(); err == nil || err == io.EOF {
			t.Errorf("of another %s: %s, %v", name, event.Object.json, err)
		}
	}
}
