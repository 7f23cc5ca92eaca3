package relay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// TestDocumentAccepts: documents are kept for the headers that clients are known to send, and
// not for what a client makes up.
func TestDocumentAccepts(t *testing.T) {
	r := relayOf(t, http.NotFound)
	for accept, want := range map[string]bool{
		"": true, "*/*": true, "application/json": true, "application/json, */*": true,
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json": true,
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf":                            true,
		"application/json;q=0.123": false, "text/html": false, "application/json,application/x-1": false,
	} {
		req := httptest.NewRequest(http.MethodGet, "/apis", nil)
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		if got := r.MayDescribe(req); got != want {
			t.Errorf("Accept: %s: %v", accept, got)
		}
	}
}

// readers gets a value when a body begins to be read.
type readers chan struct{}

// observed is a transport whose answers' bodies say when they begin to be read.
type observed struct {
	next    http.RoundTripper
	reading readers
}

func (o *observed) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(req)
	if err == nil {
		response.Body = &observedBody{ReadCloser: response.Body, reading: o.reading}
	}
	return response, err
}

type observedBody struct {
	io.ReadCloser
	once    sync.Once
	reading readers
}

func (b *observedBody) Read(p []byte) (int, error) {
	b.once.Do(func() { b.reading <- struct{}{} })
	return b.ReadCloser.Read(p)
}

// TestManyDocuments: requests for documents that the relay does not have take no more than a
// few downloads at a time, and the place of none that it has.
func TestManyDocuments(t *testing.T) {
	release, reading := make(chan struct{}), make(readers, maxEmptyDocuments+1)
	r := relayOf(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/apis" {
			_, _ = io.WriteString(w, "here")
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-release
	}, func(c *rest.Config) {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &observed{next, reading} })
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.running = ctx
	had := r.documents.use(documentKey{path: "/apis"})
	if content, err := had.get(ctx); err != nil || string(content.body) != "here" {
		t.Fatal(content, err)
	}
	<-reading
	var wait sync.WaitGroup
	for i := range maxEmptyDocuments {
		d := r.documents.use(documentKey{path: fmt.Sprintf("/apis/group-%d", i)})
		if d == nil {
			t.Fatalf("document %d is refused", i)
		}
		wait.Go(func() { _, _ = d.get(ctx) })
	}
	if r.documents.use(documentKey{path: "/apis/more"}) != nil || r.documents.use(had.key) != had {
		t.Error("another document is asked for, or the one that the relay has is gone")
	}
	for range maxDownloads {
		<-reading
	}
	if n := len(r.documents.downloads); n != maxDownloads {
		t.Errorf("%d downloads at a time", n)
	}
	close(release)
	wait.Wait()
	r.documents.mu.Lock()
	defer r.documents.mu.Unlock()
	if r.documents.empty != 0 || len(r.documents.held) != maxEmptyDocuments+1 {
		t.Errorf("%d documents, %d without content", len(r.documents.held), r.documents.empty)
	}
}
