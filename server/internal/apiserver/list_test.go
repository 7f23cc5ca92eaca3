package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/storage"
)

// seed writes three pods and then changes the second, so that the list is a
// different one at each revision. The cache has them when it returns.
func seed(c *cluster) map[string]storage.Revision {
	first := c.put(testPod("a", "one", map[string]string{"app": "x"}, "n1"))
	second := c.put(testPod("a", "two", map[string]string{"app": "y"}, "n2"))
	third := c.put(testPod("b", "three", map[string]string{"app": "x"}, "n1"))
	c.cached(third)
	return map[string]storage.Revision{"first": first, "second": second, "third": third, "future": third + 1000}
}

// tokenAfter is the continue token of a list of all pods after one of them, as
// Kubernetes makes it.
func tokenAfter(key string, revision storage.Revision) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":"%s\u0000"}`, revision, key))
}

func TestListGrid(t *testing.T) {
	c := newCluster(t, hurried)
	revs := seed(c)
	token := tokenAfter("a/one", revs["third"])
	pods := "/api/v1/pods?"
	rows := []struct {
		query  string
		code   int
		reason metav1.StatusReason
		items  string // "" for errors
	}{
		{"", 200, "", "a/one a/two b/three"},
		{"limit=2", 200, "", "a/one a/two"},
		{"resourceVersionMatch=Exact", 422, metav1.StatusReasonInvalid, ""},
		{"resourceVersionMatch=NotOlderThan", 422, metav1.StatusReasonInvalid, ""},
		{"resourceVersion=0", 200, "", "a/one a/two b/three"},
		{"resourceVersion=0&limit=1", 200, "", "a/one a/two b/three"},
		{"resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=1", 200, "", "a/one a/two b/three"},
		{"resourceVersion=0&resourceVersionMatch=Exact", 422, metav1.StatusReasonInvalid, ""},
		{"resourceVersion={second}", 200, "", "a/one a/two b/three"},
		{"resourceVersion={second}&limit=10", 200, "", "a/one a/two"},
		{"resourceVersion={second}&resourceVersionMatch=Exact", 200, "", "a/one a/two"},
		{"resourceVersion={second}&resourceVersionMatch=Exact&limit=1", 200, "", "a/one"},
		{"resourceVersion={second}&resourceVersionMatch=NotOlderThan&limit=10", 200, "", "a/one a/two b/three"},
		{"resourceVersion={second}&resourceVersionMatch=NotOlderThan&limit=2", 200, "", "a/one a/two"},
		{"resourceVersion=0&resourceVersionMatch=NotOlderThan", 200, "", "a/one a/two b/three"},
		{"resourceVersion={second}&resourceVersionMatch=Sometimes", 422, metav1.StatusReasonInvalid, ""},
		{"resourceVersion={future}", 504, metav1.StatusReasonTimeout, ""},
		{"resourceVersion={future}&resourceVersionMatch=NotOlderThan", 504, metav1.StatusReasonTimeout, ""},
		{"resourceVersion={future}&resourceVersionMatch=Exact", 504, metav1.StatusReasonTimeout, ""},
		{"resourceVersion={future}&limit=5", 504, metav1.StatusReasonTimeout, ""},
		{"resourceVersion=new", 400, metav1.StatusReasonBadRequest, ""},
		{"resourceVersion=-1", 400, metav1.StatusReasonBadRequest, ""},
		{"continue=" + token, 200, "", "a/two b/three"},
		{"continue=" + token + "&limit=1", 200, "", "a/two"},
		{"continue=" + token + "&resourceVersion=0&limit=1", 200, "", "a/two b/three"},
		{"continue=" + token + "&resourceVersion={third}", 400, metav1.StatusReasonBadRequest, ""},
		{"continue=" + token + "&resourceVersion=x", 400, metav1.StatusReasonBadRequest, ""},
		{"continue=" + token + "&resourceVersionMatch=Exact&resourceVersion={third}", 422, metav1.StatusReasonInvalid, ""},
		{"continue=" + token + "&resourceVersionMatch=NotOlderThan", 422, metav1.StatusReasonInvalid, ""},
		{"continue=" + token + "&sendInitialEvents=true", 422, metav1.StatusReasonInvalid, ""},
		{"continue=" + token + "&labelSelector=app%3Dx", 200, "", "b/three"},
		{"continue=garbage", 400, metav1.StatusReasonBadRequest, ""},
		{"sendInitialEvents=true", 422, metav1.StatusReasonInvalid, ""},
		{"sendInitialEvents=false", 422, metav1.StatusReasonInvalid, ""},
		{"resourceVersion=007", 400, metav1.StatusReasonBadRequest, ""},
		{"resourceVersion=1.0", 400, metav1.StatusReasonBadRequest, ""},
		{"resourceVersion=340282366920938463463374607431768211455", 400, metav1.StatusReasonBadRequest, ""},
		{"limit=many", 400, metav1.StatusReasonBadRequest, ""},
		{"limit=", 400, metav1.StatusReasonBadRequest, ""},
		{"limit=-1", 200, "", "a/one a/two b/three"},
		{"limit=-1&resourceVersion={second}", 200, "", "a/one a/two b/three"},
		{"continue=" + token + "&limit=-1", 200, "", "a/two b/three"},
		{"labelSelector=app%3Dx", 200, "", "a/one b/three"},
		{"labelSelector=app+in+(y,z)", 200, "", "a/two"},
		{"labelSelector=(((", 400, metav1.StatusReasonBadRequest, ""},
		{"fieldSelector=spec.nodeName%3Dn1", 200, "", "a/one b/three"},
		{"fieldSelector=metadata.namespace%3Da,spec.nodeName!%3Dn2", 200, "", "a/one"},
		{"fieldSelector=metadata.name%3Dtwo", 200, "", "a/two"},
		{"fieldSelector=metadata.namespace%3Da,metadata.namespace%3Db", 200, "", ""},
		{"fieldSelector=metadata.namespace%3Da&limit=1", 200, "", "a/one"},
		{"fieldSelector=spec.nothing%3Dn1", 400, metav1.StatusReasonBadRequest, ""},
	}
	c.overBoth(t, func(t *testing.T) {
		for _, tt := range rows {
			t.Run(tt.query, func(t *testing.T) {
				got := c.get(pods + expand(tt.query, revs))
				if got.code != tt.code {
					t.Fatalf("code %d, want %d: %s", got.code, tt.code, got.body)
				}
				if tt.code != 200 {
					if status := got.status(t); status.Reason != tt.reason || int(status.Code) != tt.code {
						t.Errorf("got reason %s code %d, want %s", status.Reason, status.Code, tt.reason)
					}
					return
				}
				if got := names(got.podList(t)); got != tt.items {
					t.Errorf("items %q, want %q", got, tt.items)
				}
			})
		}
	})
}

func TestExportIsRefused(t *testing.T) {
	c := newCluster(t)
	seed(c)
	for query, want := range map[string]int{"export": 400, "export=true": 400, "export=false": 200} {
		if got := c.get("/api/v1/namespaces/a/pods/one?" + query); got.code != want {
			t.Errorf("%s: %d %s", query, got.code, got.body)
		}
	}
}

func TestTooLargeRevisionSaysSo(t *testing.T) {
	c := newCluster(t, hurried)
	revs := seed(c)
	status := c.get(expand("/api/v1/pods?resourceVersion={future}", revs)).status(t)
	want := fmt.Sprintf("Timeout: Too large resource version: %d, current: %d", revs["future"], revs["third"])
	if status.Message != want {
		t.Errorf("message %q, want %q", status.Message, want)
	}
	d := status.Details
	if d == nil || len(d.Causes) != 1 || d.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge || d.RetryAfterSeconds != 1 {
		t.Errorf("details %+v lack the cause or the time to retry", d)
	}
}

func TestExpiredTokenOffersAnother(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.cache.HistoryEvents = 4 })
	revs := seed(c)
	token := tokenAfter("a/one", revs["first"])
	for i := range 20 {
		c.put(testPod("b", fmt.Sprintf("more-%02d", i), nil, ""))
	}
	must(t, c.store.Compact(t.Context(), revs["third"]))
	c.get("/api/v1/pods") // as new as the store: the cache has dropped the beginning by now
	status := c.get("/api/v1/pods?continue=" + token).status(t)
	if status.Code != 410 || status.Reason != metav1.StatusReasonExpired || status.Continue == "" {
		t.Fatalf("got %+v, want Expired with a token", status)
	}
	list := c.get("/api/v1/pods?limit=2&continue=" + status.Continue).podList(t)
	if got := names(list); got != "a/two b/more-00" || list.Continue == "" {
		t.Errorf("the inconsistent rest begins with %q", got)
	}
	exact := c.get(expand("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion={first}", revs)).status(t)
	if exact.Code != 410 || exact.Reason != metav1.StatusReasonExpired {
		t.Errorf("exact read of the past: %+v", exact)
	}
}

func TestEmptyListsHaveItems(t *testing.T) {
	c := newCluster(t)
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/nowhere/pods", "/apis/apps/v1/deployments"} {
		if body := string(c.get(path).body); !strings.Contains(body, `"items":[]`) {
			t.Errorf("%s answers %s", path, body)
		}
	}
}

func TestListIsTheCachedBytes(t *testing.T) {
	c := newCluster(t)
	seed(c)
	var list struct{ Items []json.RawMessage }
	must(t, json.Unmarshal(c.get("/api/v1/namespaces/a/pods").body, &list))
	snapshot := c.caches[c.pods].Current()
	for i, key := range []string{"a/one", "a/two"} {
		object, _ := snapshot.Get(key)
		want := "{" + string(object.JSON()[len(c.pods.Prefix()):])
		if string(list.Items[i]) != want {
			t.Errorf("item %s is %s, want %s", key, list.Items[i], want)
		}
	}
}

func TestGetGrid(t *testing.T) {
	c := newCluster(t, hurried)
	revs := seed(c)
	rows := []struct {
		path   string
		code   int
		reason metav1.StatusReason
	}{
		{"/api/v1/namespaces/a/pods/one", 200, ""},
		{"/api/v1/namespaces/a/pods/one/status", 200, ""},
		{"/api/v1/namespaces/a/pods/one?resourceVersion=0", 200, ""},
		{"/api/v1/namespaces/a/pods/one?resourceVersion={third}", 200, ""},
		{"/api/v1/namespaces/a/pods/one?resourceVersion={future}", 504, metav1.StatusReasonTimeout},
		{"/api/v1/namespaces/a/pods/one?resourceVersion=x", 400, metav1.StatusReasonBadRequest},
		{"/api/v1/namespaces/a/pods/one?resourceVersion=0&resourceVersionMatch=Exact", 200, ""}, // not a parameter of GET
		{"/api/v1/namespaces/a/pods/one?resourceVersion=-1", 400, metav1.StatusReasonBadRequest},
		{"/api/v1/namespaces/a/pods/three?resourceVersion=0", 404, metav1.StatusReasonNotFound},
		{"/api/v1/namespaces/nowhere/pods/one", 404, metav1.StatusReasonNotFound},
		{"/api/v1/namespaces/a/pods/three", 404, metav1.StatusReasonNotFound},
		{"/api/v1/namespaces/a/pods/one?as=nonsense", 200, ""},
	}
	c.overBoth(t, func(t *testing.T) {
		for _, tt := range rows {
			got := c.get(expand(tt.path, revs))
			if got.code != tt.code {
				t.Errorf("%s: %d %s, want %d", tt.path, got.code, got.body, tt.code)
				continue
			}
			if tt.code != 200 {
				if status := got.status(t); status.Reason != tt.reason {
					t.Errorf("%s: reason %s, want %s", tt.path, status.Reason, tt.reason)
				}
				continue
			}
			var pod corev1.Pod
			must(t, json.Unmarshal(got.body, &pod))
			if pod.Kind != "Pod" || pod.APIVersion != "v1" || pod.ResourceVersion != fmt.Sprint(revs["first"]) {
				t.Errorf("%s: got %s", tt.path, got.body)
			}
		}
	})
	status := c.get("/api/v1/namespaces/a/pods/three").status(t)
	if status.Message != `pods "three" not found` || status.Details.Kind != "pods" || status.Details.Name != "three" {
		t.Errorf("not found says %+v", status)
	}
}

func TestUnfilledCachesAskToComeBack(t *testing.T) {
	c := newCluster(t, hurried, func(s *setup) { s.unfed = true })
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods?watch=1", "/api/v1/namespaces/a/pods/one"} {
		got := c.get(path)
		if got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d, Retry-After %q", path, got.code, got.header.Get("Retry-After"))
		}
	}
	if got := c.get("/readyz?verbose"); got.code != 500 || !strings.Contains(string(got.body), "[-]caches failed") {
		t.Errorf("readyz: %d %s", got.code, got.body)
	}
	if got := c.get("/livez"); got.code != 200 {
		t.Errorf("livez: %d", got.code)
	}
}

func TestShownResourceListsItsOwnShape(t *testing.T) {
	c := newCluster(t)
	var shown []string
	for _, res := range c.table.All() {
		if res.Storage == nil {
			continue
		}
		group, kind := res.GroupVersion().String(), res.ListKind
		shown = append(shown, group)
		var list struct{ Kind, APIVersion string }
		must(t, json.Unmarshal(c.get("/apis/"+group+"/"+res.Plural).body, &list))
		if list.Kind != kind || list.APIVersion != group {
			t.Errorf("%s: got %+v", group, list)
		}
	}
	if !slices.Contains(shown, "autoscaling/v1") {
		t.Errorf("no resource is shown over another one: %v", shown)
	}
}
