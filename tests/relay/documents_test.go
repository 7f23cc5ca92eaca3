package relay

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
)

// fetch returns an answer and its body.
func fetch(t *testing.T, s served, path string, header http.Header) (*http.Response, string) {
	t.Helper()
	response, body, err := fetchBy(t.Context(), s.Client(client.Options{Retry: client.RetryOptions{Max: -1}}), path, header)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return response, body
}

func fetchBy(ctx context.Context, c *client.Client, path string, header http.Header) (*http.Response, string, error) {
	response, err := c.Raw(ctx, client.RawRequest{Path: path, Header: header})
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}

// aggregatedDiscovery is what client-go's discovery accepts.
const aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// TestNewKindIsVisibleAtOnce: what the upstream says of itself is the same through relays, also
// of a kind that has just been made, and it is not sent again while it has not changed.
func TestNewKindIsVisibleAtOnce(t *testing.T) {
	upstream := levelwiretest.Start(t)
	one := startRelay(t, upstream.Config())
	compareDocuments(t, upstream, one, startRelay(t, one.Config()))
}

// compareDocuments compares what a server says of itself with what two relays in a row in front of it say.
func compareDocuments(t *testing.T, upstream, one, two served) {
	documents := []string{"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1?timeout=32s", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v2", "/version"}
	// On a busy machine an answer of the upstream may take so long that a relay gives the one
	// of before. It counts that.
	stale := 0.0
	staleSince := func() bool {
		before := stale
		stale = metric(t, one, "levelwire_relay_stale_documents_total") + metric(t, two, "levelwire_relay_stale_documents_total")
		return stale > before
	}
	compare := func(path, accept string) {
		t.Helper()
		header := http.Header{}
		if accept != "" {
			header.Set("Accept", accept)
		}
		direct, want := fetch(t, upstream, path, header)
		for i, relay := range []served{one, two} {
			through, got := fetch(t, relay, path, header)
			for got != want && path != "/api" && staleSince() {
				through, got = fetch(t, relay, path, header)
			}
			if through.StatusCode != direct.StatusCode || got != want && path != "/api" { // which has the server's address
				t.Errorf("%s through relay %d: %d and %d bytes, the upstream has %d and %d", path, i+1, through.StatusCode, len(got), direct.StatusCode, len(want))
			}
			for _, name := range []string{"Content-Type", "Etag"} {
				if through.Header.Get(name) != direct.Header.Get(name) {
					t.Errorf("%s through relay %d: %s %q, want %q", path, i+1, name, through.Header.Get(name), direct.Header.Get(name))
				}
			}
			if direct.StatusCode == http.StatusOK && through.Header.Get("Age") == "" {
				t.Errorf("%s through relay %d: no Age", path, i+1)
			}
		}
	}
	for _, path := range documents {
		compare(path, "")
	}
	compare("/apis", aggregatedDiscovery)
	definitions := client.For[*apiextensionsv1.CustomResourceDefinition](upstream.Client(client.Options{}))
	for i := range 3 {
		kind := fmt.Sprintf("Thing%d", i)
		plural := strings.ToLower(kind) + "s"
		preserve := true
		mustCreate(t, definitions, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}}}},
			},
		})
		testwait.Stable(t, "the upstream serves the kind", func() (any, bool) {
			_, body := fetch(t, upstream, "/apis/example.com/v1", nil)
			return body, strings.Contains(body, kind)
		})
		compare("/apis/example.com/v1", "")
		compare("/apis", aggregatedDiscovery)
		compare("/openapi/v3/apis/example.com/v1", "")
		if err := definitions.Delete(t.Context(), plural+".example.com", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		testwait.Stable(t, "the upstream does not serve the kind", func() (any, bool) {
			_, body := fetch(t, upstream, "/apis/example.com/v1", nil)
			return body, !strings.Contains(body, kind)
		})
		compare("/apis/example.com/v1", "")
		compare("/apis", aggregatedDiscovery)
	}
	response, _ := fetch(t, two, "/apis", http.Header{"Accept": {aggregatedDiscovery}})
	if tag := response.Header.Get("Etag"); tag == "" {
		t.Error("no ETag")
	} else if response, body := fetch(t, two, "/apis", http.Header{"Accept": {aggregatedDiscovery}, "If-None-Match": {tag}}); response.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("a client that has the document gets %s", response.Status)
	}
}

// TestDocumentsOfALostUpstream come from memory, and say how old they are. What the relay never
// had is unavailable.
func TestDocumentsOfALostUpstream(t *testing.T) {
	for name, lose := range map[string]func(*faultnet.Proxy){
		"cut":       func(p *faultnet.Proxy) { p.Refuse(true); p.Cut() },
		"half-open": func(p *faultnet.Proxy) { p.Stall(faultnet.ToClient, true) },
	} {
		t.Run(name, func(t *testing.T) {
			upstream := levelwiretest.Start(t)
			config, proxy := behindProxy(t, upstream)
			relay := startRelay(t, config)
			documents := []string{"/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version"}
			had := map[string]string{}
			for _, path := range documents {
				_, had[path] = fetch(t, relay, path, nil)
			}
			lose(proxy)
			testwait.Stable(t, "the age grows", func() (any, bool) {
				response, body := fetch(t, relay, "/apis", nil)
				if response.StatusCode != http.StatusOK || body != had["/apis"] {
					t.Fatal(response.Status)
				}
				seconds, err := strconv.Atoi(response.Header.Get("Age"))
				return seconds, err == nil && seconds >= 2
			})
			for _, path := range documents {
				if response, body := fetch(t, relay, path, nil); response.StatusCode != http.StatusOK || body != had[path] {
					t.Errorf("%s: %s", path, response.Status)
				}
			}
			if name == "cut" {
				if response, _ := fetch(t, relay, "/apis/batch/v1", nil); response.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("a document that the relay does not have: %s", response.Status)
				}
			}
			proxy.Heal()
			proxy.Refuse(false)
			testwait.Stable(t, "the documents are new again", func() (any, bool) {
				response, _ := fetch(t, relay, "/apis", nil)
				seconds, err := strconv.Atoi(response.Header.Get("Age"))
				return seconds, err == nil && seconds < 2
			})
		})
	}
}

// TestDocumentsAreAskedForOnce for all who wait at that moment, and are not sent again while
// they have not changed.
func TestDocumentsAreAskedForOnce(t *testing.T) {
	body := strings.Repeat("x", 200_000)
	tag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(body)))
	var asked, sent, answered atomic.Int64
	release, arrived := make(chan struct{}), make(chan struct{}, 1)
	relay := startRelay(t, standIn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/openapi/v2" {
			http.NotFound(w, r)
			return
		}
		if asked.Add(1) == 2 {
			arrived <- struct{}{}
			<-release
		}
		w.Header().Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent.Add(1)
		_, _ = io.WriteString(w, body)
	}))
	c := relay.Client(client.Options{Retry: client.RetryOptions{Max: -1}}) // all requests on one connection, which is there
	if _, got, err := fetchBy(t.Context(), c, "/openapi/v2", nil); err != nil || got != body {
		t.Fatalf("%v, %d bytes", err, len(got))
	}
	var wait sync.WaitGroup
	ask := func() {
		wait.Go(func() {
			response, got, err := fetchBy(t.Context(), c, "/openapi/v2", nil)
			if err != nil || got != body || response.StatusCode != http.StatusOK {
				t.Errorf("%v, %v, %d bytes", err, response, len(got))
			}
			answered.Add(1)
		})
	}
	ask()
	<-arrived
	const more = 30
	for range more {
		ask()
	}
	// On a busy machine the first may have waited for so long that it gets the document of
	// before, when the last have not come yet. Then those ask again.
	waiting := testwait.Stable(t, "all requests wait", func() (float64, bool) {
		waiting := metric(t, relay, `apiserver_current_inflight_requests{request_kind="readOnly"}`)
		return waiting, waiting >= 1+more || answered.Load() > 0
	})
	close(release)
	wait.Wait()
	if asked, sent := asked.Load(), sent.Load(); waiting >= 1+more && asked > more/2 || sent != 1 {
		t.Errorf("the upstream was asked %d times, and sent the document %d times", asked, sent)
	}
	for _, path := range []string{"/openapi/v2?x=1", "/openapi/../version", "/apis/..", "/apis//v1", "/apis/none.example/v1"} {
		if response, _ := fetch(t, relay, path, nil); response.StatusCode == http.StatusOK && path != "/openapi/v2?x=1" {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
}
