package apiserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/server/internal/resource"
)

const openAPIv3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"

var readWrite = []string{"get", "patch", "update"}

// openAPIURLs returns where the documents of version 3 are, with their hashes.
func (c *cluster) openAPIURLs(t testing.TB) map[string]string {
	t.Helper()
	got := c.get("/openapi/v3")
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	must(t, json.Unmarshal(got.body, &index))
	urls := map[string]string{}
	for place, entry := range index.Paths {
		urls[place] = entry.ServerRelativeURL
	}
	return urls
}

// Clients keep a document for ever under the hash in its URL. A URL with an old
// hash leads to the new one.
func TestOpenAPIDocumentsMayBeKept(t *testing.T) {
	c := newCluster(t)
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	url := c.openAPIURLs(t)["apis/apps/v1"]
	got := c.get(url)
	if got.code != 200 || got.header.Get("Cache-Control") != "public, immutable" {
		t.Errorf("%s: %d, %v", url, got.code, got.header)
	}
	if expires, err := http.ParseTime(got.header.Get("Expires")); err != nil || time.Until(expires) < 364*24*time.Hour {
		t.Errorf("expires %q", got.header.Get("Expires"))
	}
	tag := got.header.Get("ETag")
	if !strings.HasSuffix(url, "?hash="+strings.Trim(tag, `"`)) {
		t.Errorf("tag %s of %s", tag, url)
	}
	if again := c.get(url, "If-None-Match: "+tag); again.code != http.StatusNotModified || len(again.body) != 0 {
		t.Errorf("with its own tag: %d", again.code)
	}
	plain, _, _ := strings.Cut(url, "?")
	if got := c.get(plain); got.code != 200 || got.header.Get("Cache-Control") != "" || got.header.Get("ETag") != tag {
		t.Errorf("without a hash: %d %v", got.code, got.header)
	}
	if got := c.get(plain + "?hash=OLD"); got.code != http.StatusMovedPermanently || got.header.Get("Location") != url {
		t.Errorf("with an old hash: %d to %q", got.code, got.header.Get("Location"))
	}
	if got := c.do(http.MethodHead, url, ""); got.code != 200 || len(got.body) != 0 {
		t.Errorf("HEAD: %d", got.code)
	}
	index := c.get("/openapi/v3")
	if again := c.get("/openapi/v3", "If-None-Match: "+index.header.Get("ETag")); again.code != http.StatusNotModified {
		t.Errorf("the index with its own tag: %d", again.code)
	}
}

func TestOpenAPIEncodings(t *testing.T) {
	c := newCluster(t)
	const path = "/openapi/v3/api/v1"
	plain := c.get(path, "Accept-Encoding: identity")
	var d spec3.OpenAPI
	must(t, json.Unmarshal(plain.body, &d))
	packed := c.get(path, "Accept-Encoding: gzip")
	z, err := gzip.NewReader(bytes.NewReader(packed.body))
	must(t, err)
	unpacked, err := io.ReadAll(z)
	must(t, err)
	if packed.header.Get("Content-Encoding") != "gzip" || !bytes.Equal(unpacked, plain.body) || packed.header.Get("ETag") != plain.header.Get("ETag") {
		t.Errorf("compressed: %v, %d bytes", packed.header, len(unpacked))
	}
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json;q=0.5": "application/json",
		"application/com.github.proto-openapi.spec.v3@v1.0+protobuf":                         openAPIv3Protobuf,
		"application/com.github.proto-openapi.spec.v3.v1.0+protobuf, application/json":       openAPIv3Protobuf,
		"application/json, application/com.github.proto-openapi.spec.v3@v1.0+protobuf;q=0.5": "application/json",
		"application/vnd.kubernetes.protobuf, */*;q=0.1":                                     "application/json",
	} {
		got := c.get(path, "Accept: "+accept)
		if got.code != 200 || got.header.Get("Content-Type") != want {
			t.Errorf("%q: %d %s, want %s", accept, got.code, got.header.Get("Content-Type"), want)
			continue
		}
		var message openapi_v3.Document
		if want == openAPIv3Protobuf {
			must(t, proto.Unmarshal(got.body, &message))
			if len(message.Components.Schemas.AdditionalProperties) != len(d.Components.Schemas) {
				t.Errorf("%d models in protobuf, %d in JSON", len(message.Components.Schemas.AdditionalProperties), len(d.Components.Schemas))
			}
		}
	}
	for _, path := range []string{path, "/openapi/v2"} {
		if got := c.get(path, "Accept: text/html"); got.code != http.StatusNotAcceptable {
			t.Errorf("%s as HTML: %d", path, got.code)
		}
	}
}

// A change of one group makes its document and no other, and is seen at once.
func TestOpenAPIFollowsTheTable(t *testing.T) {
	c := newCluster(t)
	before := c.openAPIURLs(t)
	thing := newThing()
	thing.OpenAPI = func() *spec.Schema { return colored("red") }
	must(t, c.table.Add(thing))
	first := c.openAPIURLs(t)
	if first["apis/example.com/v1"] == "" || len(first) != len(before)+1 {
		t.Errorf("after: %v", first)
	}
	if got := string(c.get(first["apis/example.com/v1"]).body); !strings.Contains(got, `"com.example.v1.Thing":`) || !strings.Contains(got, "red") {
		t.Errorf("got %s", got)
	}
	if got := string(c.get("/openapi/v2").body); !strings.Contains(got, `"com.example.v1.Thing":`) {
		t.Error("version 2 does not have the new kind")
	}
	changed := newThing()
	changed.OpenAPI = func() *spec.Schema { return colored("blue") }
	must(t, c.table.Replace([]schema.GroupVersionResource{thing.GroupVersionResource()}, changed))
	second := c.openAPIURLs(t)
	for place, url := range second {
		if same := url == first[place]; same != (place != "apis/example.com/v1") {
			t.Errorf("%s was at %s and is at %s", place, first[place], url)
		}
	}
	if got := string(c.get(second["apis/example.com/v1"]).body); !strings.Contains(got, "blue") {
		t.Errorf("got %s", got)
	}
	must(t, c.table.Remove(changed.GroupVersionResource()))
	if got := string(c.get("/openapi/v2").body); strings.Contains(got, "com.example.v1.Thing") {
		t.Error("version 2 still has the removed kind")
	}
}

func colored(color string) *spec.Schema {
	return (&spec.Schema{}).Typed("object", "").SetProperty("color", *spec.StringProperty().WithDescription(color))
}

func TestSubresourcesAreDiscovered(t *testing.T) {
	c := newCluster(t)
	found := map[string][]string{}
	for _, path := range []string{"/api", "/apis"} {
		list := decode[apidiscoveryv2.APIGroupDiscoveryList](t, c.get(path, "Accept: "+acceptV2))
		for _, group := range list.Items {
			for _, res := range group.Versions[0].Resources {
				for _, sub := range res.Subresources {
					found[res.Resource+"/"+sub.Subresource+" "+sub.ResponseKind.Kind] = sub.Verbs
				}
			}
		}
	}
	for name, verbs := range map[string][]string{
		"pods/binding Binding":                                          {"create"},
		"pods/eviction Eviction":                                        {"create"},
		"pods/ephemeralcontainers Pod":                                  readWrite,
		"pods/resize Pod":                                               readWrite,
		"pods/status Pod":                                               readWrite,
		"namespaces/finalize Namespace":                                 {"update"},
		"serviceaccounts/token TokenRequest":                            {"create"},
		"deployments/scale Scale":                                       readWrite,
		"replicationcontrollers/scale Scale":                            readWrite,
		"certificatesigningrequests/approval CertificateSigningRequest": readWrite,
	} {
		if !slices.Equal(found[name], verbs) {
			t.Errorf("%s offers %v, want %v", name, found[name], verbs)
		}
	}
	for name := range found {
		if strings.Contains(name, "/log ") || strings.Contains(name, "/exec ") || strings.Contains(name, "/proxy ") {
			t.Errorf("%s is offered, and refused to clients that use it", name)
		}
	}
}

// BenchmarkDefinitions installs 500 custom kinds, each in a group of its own,
// and asks after each one for what kubectl and controllers ask for.
func BenchmarkDefinitions(b *testing.B) {
	for name, path := range map[string]string{"discovery": "/apis", "openapi": "/openapi/v3"} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				c := newCluster(b)
				serve := c.server.documentHandler(path)
				request, err := http.NewRequest(http.MethodGet, path, nil)
				must(b, err)
				request.Header.Set("Accept", acceptV2)
				serve(&discardWriter{header: http.Header{}}, request)
				b.StartTimer()
				for i := range 500 {
					must(b, c.table.Add(numbered(i)))
					serve(&discardWriter{header: http.Header{}}, request)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/500, "us/definition")
		})
	}
}

func numbered(i int) *resource.Resource {
	res := newThing()
	res.Group = fmt.Sprintf("g%03d.example.com", i)
	res.StorePrefix = "/registry/" + res.Group + "/things/"
	return res
}
