package relay

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
)

// TestWatchesThatWaitForACacheAreBounded: while the upstream does not send a collection, more
// watches of it than may wait are refused, and the client is asked to come again.
func TestWatchesThatWaitForACacheAreBounded(t *testing.T) {
	sent := make(chan struct{})
	relay := startRelay(t, standIn(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["list","watch"]}]}`)
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			if r.URL.Query().Get("sendInitialEvents") == "true" {
				select {
				case <-sent:
				case <-r.Context().Done():
				}
				fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}), func(c *server.Config) { c.MaxWatches = 4 })
	c := relay.Client(client.Options{Retry: client.RetryOptions{Max: -1}})
	const path = "/api/v1/configmaps?watch=true&resourceVersion=0&timeoutSeconds=1" //passes: the watch ends by it, after it has waited
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			if code := status(t, c, "GET", path); code != http.StatusOK {
				t.Errorf("a watch that has waited: %d", code)
			}
		})
	}
	testwait.Stable(t, "four watches wait", func() (any, bool) {
		seen := metric(t, relay, `levelwire_user_shares_in_use{resource="unprepared_watches"}`)
		return seen, seen == 4
	})
	response, err := c.Raw(t.Context(), client.RawRequest{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
		t.Errorf("the fifth: %s, Retry-After %q", response.Status, response.Header.Get("Retry-After"))
	}
	close(sent)
	waiting.Wait()
	if left := metric(t, relay, `levelwire_user_shares_in_use{resource="unprepared_watches"}`); left != 0 {
		t.Errorf("%v watches wait for nothing", left)
	}
}
