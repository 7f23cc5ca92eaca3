package apiserver

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/storage"
)

// Two ways for a cache not to know a revision that the store still has: too
// much had happened since when it was filled, as after a restart, or has since.
var forgetful = map[string]func(revs *map[string]storage.Revision) *setup{
	"restarted": func(revs *map[string]storage.Revision) *setup {
		s := &setup{history: func(c *cluster) { *revs = seed(c); bury(c) }}
		s.cache.HistoryEvents = 4
		return s
	},
	"busy": func(revs *map[string]storage.Revision) *setup {
		s := &setup{}
		s.cache.HistoryEvents = 4
		return s
	},
}

// bury changes and deletes what there was, many times.
func bury(c *cluster) {
	c.remove("a", "two")
	for i := range 20 {
		c.put(testPod("a", "zzz", map[string]string{"app": "x"}, fmt.Sprint("n", i)))
	}
}

func TestThePastIsReadFromTheStore(t *testing.T) {
	for how, forget := range forgetful {
		t.Run(how, func(t *testing.T) {
			var revs map[string]storage.Revision
			build := forget(&revs)
			c := newCluster(t, func(s *setup) {
				s.history, s.cache.HistoryEvents = build.history, build.cache.HistoryEvents
			})
			if build.history == nil {
				revs = seed(c)
				bury(c)
				c.get("/api/v1/pods") // returns when the cache has come this far
			}
			token, err := encodeContinue(revs["third"], "", "a/one")
			must(t, err)
			inNamespace, err := encodeContinue(revs["third"], "a/", "a/one")
			must(t, err)
			for _, tt := range []struct{ path, items, version string }{
				{"pods?resourceVersionMatch=Exact&resourceVersion={second}", "a/one a/two", "second"},
				{"pods?resourceVersionMatch=Exact&resourceVersion={third}", "a/one a/two b/three", "third"},
				{"pods?resourceVersion={third}&limit=1", "a/one", "third"},
				{"pods?resourceVersion={third}&limit=3", "a/one a/two b/three", "third"},
				{"pods?resourceVersionMatch=Exact&resourceVersion={third}&labelSelector=app%3Dx", "a/one b/three", "third"},
				{"pods?resourceVersionMatch=Exact&resourceVersion={third}&limit=1&fieldSelector=spec.nodeName%3Dn1", "a/one", "third"},
				{"namespaces/b/pods?resourceVersionMatch=Exact&resourceVersion={third}", "b/three", "third"},
				{"pods?continue=" + token, "a/two b/three", "third"},
				{"pods?limit=1&continue=" + token, "a/two", "third"},
				{"namespaces/a/pods?limit=1&continue=" + inNamespace, "a/two", "third"},
			} {
				list := c.get("/api/v1/" + expand(tt.path, revs)).podList(t)
				if got := names(list); got != tt.items || list.ResourceVersion != fmt.Sprint(revs[tt.version]) {
					t.Errorf("%s: %q at %s, want %q at %s", tt.path, got, list.ResourceVersion, tt.items, tt.version)
				}
			}
			wantPages(t, c, revs["third"])
			must(t, c.store.Compact(t.Context(), revs["third"]+1))
			wantForgotten(t, c, token, revs["third"])
		})
	}
}

// wantPages reads a collection of the past in pages of one object.
func wantPages(t *testing.T, c *cluster, revision storage.Revision) {
	t.Helper()
	var all []string
	query := fmt.Sprintf("resourceVersionMatch=Exact&resourceVersion=%d", revision)
	for range 5 {
		list := c.get("/api/v1/pods?limit=1&" + query).podList(t)
		all = append(all, names(list))
		if list.RemainingItemCount != nil {
			t.Errorf("remainingItemCount %d is a guess", *list.RemainingItemCount)
		}
		if list.Continue == "" {
			break
		}
		query = "continue=" + list.Continue
	}
	if got := strings.Join(all, ", "); got != "a/one, a/two, b/three" {
		t.Errorf("pages of the past are %q", got)
	}
}

func wantForgotten(t *testing.T, c *cluster, token string, revision storage.Revision) {
	t.Helper()
	status := c.get("/api/v1/pods?continue=" + token).status(t)
	if status.Code != 410 || status.Reason != metav1.StatusReasonExpired || status.Continue == "" {
		t.Errorf("after compaction a continued list got %+v, want Expired with another token", status)
	}
	if got := names(c.get("/api/v1/pods?continue=" + status.Continue).podList(t)); got != "a/zzz b/three" {
		t.Errorf("the rest as it is now is %q", got)
	}
	status = c.get(fmt.Sprintf("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=%d", revision)).status(t)
	if status.Code != 410 || status.Reason != metav1.StatusReasonExpired || status.Continue != "" {
		t.Errorf("after compaction an exact read got %+v, want Expired", status)
	}
	if want := fmt.Sprintf("too old resource version: %d (", revision); !strings.HasPrefix(status.Message, want) {
		t.Errorf("message %q, want it to begin with %q", status.Message, want)
	}
}

// A page of the past may take several reads of the store.
func TestLongPast(t *testing.T) {
	const total = 2*pastBatch + 10
	var revision storage.Revision
	c := newCluster(t, func(s *setup) {
		s.history = func(c *cluster) {
			for i := range total {
				revision = c.put(testPod("a", fmt.Sprintf("pod-%04d", i), map[string]string{"even": fmt.Sprint(i%2 == 0)}, ""))
			}
			c.remove("a", "pod-0000")
		}
	})
	exact := fmt.Sprintf("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=%d", revision)
	if got := len(c.get(exact).podList(t).Items); got != total {
		t.Errorf("%d objects of %d", got, total)
	}
	even := c.get(exact + "&labelSelector=even%3Dtrue&limit=504").podList(t)
	if len(even.Items) != 504 || even.Items[503].Name != "pod-1006" || even.Continue == "" {
		t.Fatalf("%d objects up to the middle, continue %q", len(even.Items), even.Continue)
	}
	last := c.get("/api/v1/pods?labelSelector=even%3Dtrue&limit=504&continue=" + even.Continue).podList(t)
	if names(last) != "a/pod-1008" || last.Continue != "" {
		t.Errorf("the last page is %q, continue %q", names(last), last.Continue)
	}
}
