package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// flunderStore answers lists and watches of flunders at versions of its own.
type flunderStore struct {
	mu      sync.Mutex
	version int
	lists   int
	watches int
	added   chan int // versions of flunders that the open watch is to show
}

const flunderJSON = `{"kind":"Flunder","apiVersion":"wardle.example.com/v1alpha1","metadata":{"name":"f%d","namespace":"default","uid":"u%[1]d","resourceVersion":"%[1]d"}}`

func (s *flunderStore) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	s.mu.Lock()
	version := s.version
	switch {
	case query.Get("watch") != "true":
		if query.Get("limit") != "1" { // which asks for the version only
			s.lists++
		}
	case query.Get("sendInitialEvents") != "true" && !asksForProgress(query):
		s.watches++
	}
	s.mu.Unlock()
	switch {
	case query.Get("watch") != "true":
		fmt.Fprintf(w, `{"kind":"FlunderList","apiVersion":"wardle.example.com/v1alpha1","metadata":{"resourceVersion":"%d"},"items":[`+flunderJSON+`]}`, version, 7)
	case query.Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"no streaming lists"}`)
	case asksForProgress(query): // has no event for an answer
	default:
		s.stream(w, r)
	}
}

// asksForProgress reports whether a watch is one of those by which a relay asks how far it is, as it
// does on a slow machine: they are short.
func asksForProgress(query url.Values) bool {
	seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
	return err == nil && seconds < 60
}

func (s *flunderStore) stream(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	for control.Flush() == nil {
		select {
		case version := <-s.added:
			s.mu.Lock()
			s.version = version // no list may be behind what a watch has shown
			s.mu.Unlock()
			fmt.Fprintf(w, `{"type":"ADDED","object":`+flunderJSON+"}\n", version)
		case <-r.Context().Done():
			return
		}
	}
}

// TestAggregatedKindThroughARelay: a relay caches a kind of an aggregated server as it does any
// other, at that server's versions, which are not the upstream's.
func TestAggregatedKindThroughARelay(t *testing.T) {
	a := newAggregation(t)
	store := &flunderStore{version: 7, added: make(chan int)}
	a.f.answer(store.serve)
	relay := start(t, server.Config{DataDir: t.TempDir(), Relay: &server.Relay{Config: a.adminConfig(t)}})
	gvr := schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1alpha1", Resource: "flunders"}
	flunders := client.ForResource(relay.client(t), gvr, func() *unstructured.Unstructured { return &unstructured.Unstructured{} }).Namespace("default")

	list, err := flunders.List(deadline(t), metav1.ListOptions{ResourceVersion: "0"})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].GetName() != "f7" || list.ResourceVersion != "7" {
		t.Fatalf("listed %v at %s", list.Items, list.ResourceVersion)
	}
	for i := range 2 {
		w, err := flunders.Watch(deadline(t), metav1.ListOptions{ResourceVersion: "7"})
		must(t, err)
		defer w.Close()
		if i == 0 {
			store.added <- 8
		}
		event, err := w.Next()
		if must(t, err); event.Object.GetName() != "f8" || event.Object.GetResourceVersion() != "8" {
			t.Errorf("%v", event)
		}
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	if store.lists != 1 || store.watches != 1 {
		t.Errorf("the aggregated server had %d lists and %d watches, want one of each for all clients", store.lists, store.watches)
	}
}
