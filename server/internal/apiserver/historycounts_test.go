package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/storage"
)

var podCounter = regexp.MustCompile(`(?m)^levelwire_cache_(resumes|expired|store_reads)_total\{group="",(?:(?:history|reason)="([a-z]+)",)?resource="pods"\} (\d+)$`)

// historyCounts returns the history counters of /metrics that are not zero.
func (c *cluster) historyCounts() map[string]string {
	counts := map[string]string{}
	for _, match := range podCounter.FindAllStringSubmatch(string(c.get("/metrics").body), -1) {
		if match[3] != "0" {
			counts[strings.TrimSpace(match[1]+" "+match[2])] = match[3]
		}
	}
	return counts
}

// lag opens a watch that is not read before so much has happened that the socket
// is full and the log has moved on, and reads it then, until end is in it.
func (c *cluster) lag(t *testing.T, end func() string) {
	t.Helper()
	resp := c.open(t.Context(), c.http1, http.MethodGet, "/api/v1/pods?watch=1", "")
	defer resp.Body.Close()
	filler := testPod("a", "big", nil, "")
	filler.Annotations = map[string]string{"fill": strings.Repeat("x", 200<<10)}
	for range 70 {
		c.put(filler)
	}
	must(t, readUntil(resp.Body, end()))
}

// TestWhatBecameOfHistoryIsCounted provokes each way to begin and to be refused.
func TestWhatBecameOfHistoryIsCounted(t *testing.T) {
	exact := func(s *setup) { s.cache.HistoryEvents, s.cache.ExactHistory = 3, true }
	compacted := func(s *setup) { s.cache.HistoryEvents = 3 }
	// since is a version whose events have gone, now the last one.
	aged := func(c *cluster) (since, now storage.Revision) {
		since = seed(c)["third"]
		for i := range 6 {
			now = c.put(testPod("b", "four", nil, fmt.Sprint("n", i)))
		}
		c.get("/api/v1/pods") // returns when the cache has come this far
		return since, now
	}
	first := func(c *cluster, query string) {
		c.watch("/api/v1/pods?watch=1" + query).next()
	}
	for name, test := range map[string]struct {
		setup   func(*setup)
		provoke func(t *testing.T, c *cluster)
		want    map[string]string
	}{
		"a watch from a version that the log has": {compacted, func(_ *testing.T, c *cluster) {
			_, now := aged(c)
			first(c, fmt.Sprint("&resourceVersion=", now-1))
		}, map[string]string{"resumes exact": "1"}},
		"from now on": {compacted, func(_ *testing.T, c *cluster) {
			aged(c)
			stream := c.watch("/api/v1/pods?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
			stream.want(fmt.Sprint("ADDED next@", c.put(testPod("b", "next", nil, ""))))
		}, map[string]string{"resumes exact": "1"}},
		"from before the log": {compacted, func(_ *testing.T, c *cluster) {
			since, _ := aged(c)
			first(c, fmt.Sprint("&resourceVersion=", since))
		}, map[string]string{"resumes coalesced": "1"}},
		"slower than the log": {compacted, func(t *testing.T, c *cluster) {
			c.lag(t, func() string {
				return fmt.Sprintf(`"resourceVersion":"%d"`, c.put(testPod("a", "last", nil, "")))
			})
		}, map[string]string{"resumes initial": "1", "resumes continued": "some"}},
		"initial events": {compacted, func(_ *testing.T, c *cluster) {
			aged(c)
			first(c, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
			first(c, "&resourceVersion=0")
			first(c, "")
		}, map[string]string{"resumes initial": "3"}},
		"refused: too old": {exact, func(t *testing.T, c *cluster) {
			since, _ := aged(c)
			wantExpiredEvent(t, c.watch(fmt.Sprint("/api/v1/pods?watch=1&resourceVersion=", since)).next())
		}, map[string]string{"expired old": "1"}},
		"refused: too slow": {exact, func(t *testing.T, c *cluster) {
			c.lag(t, func() string { return `"reason":"Expired"` })
		}, map[string]string{"resumes initial": "1", "expired slow": "1"}},
		"refused: history begins anew": {compacted, func(t *testing.T, c *cluster) {
			_, now := aged(c)
			stream := c.watch(fmt.Sprint("/api/v1/pods?watch=1&resourceVersion=", now))
			if _, err := c.caches[c.pods].Fill(nil, 1); err != nil { // the store is another, and younger
				t.Fatal(err)
			}
			wantExpiredEvent(t, stream.next())
		}, map[string]string{"resumes exact": "1", "expired reset": "1"}},
		"a list at a version that only the store has": {compacted, func(t *testing.T, c *cluster) {
			since, _ := aged(c)
			wantCode(t, c.get(fmt.Sprint("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=", since)), http.StatusOK)
		}, map[string]string{"store_reads": "1"}},
		"refused: a list at a compacted version": {compacted, func(t *testing.T, c *cluster) {
			since, now := aged(c)
			must(t, c.store.Compact(t.Context(), now))
			wantCode(t, c.get(fmt.Sprint("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=", since)), http.StatusGone)
			wantCode(t, c.get(fmt.Sprint("/api/v1/pods?limit=1&resourceVersion=", since)), http.StatusGone)
		}, map[string]string{"store_reads": "2", "expired exact": "2"}},
		"refused: the rest of a list": {compacted, func(t *testing.T, c *cluster) {
			seed(c)
			page := c.get("/api/v1/pods?limit=1").podList(t)
			_, now := aged(c)
			must(t, c.store.Compact(t.Context(), now))
			refusal := c.get("/api/v1/pods?limit=1&continue=" + page.Continue)
			wantCode(t, refusal, http.StatusGone)
			// The rest as it is now expires no more.
			wantCode(t, c.get("/api/v1/pods?continue="+refusal.status(t).Continue), http.StatusOK)
		}, map[string]string{"store_reads": "1", "expired continue": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.setup)
			test.provoke(t, c)
			got := c.historyCounts()
			for key, n := range test.want {
				if n == "some" && got[key] != "" {
					got[key] = n
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("counted %v, want %v", got, test.want)
			}
		})
	}
}

func wantCode(t *testing.T, got reply, code int) {
	t.Helper()
	if got.code != code {
		t.Errorf("%d, want %d: %.300s", got.code, code, got.body)
	}
}

func wantExpiredEvent(t *testing.T, e frame) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(e.Object, &status); err != nil || e.Type != "ERROR" || status.Code != http.StatusGone || status.Reason != metav1.StatusReasonExpired {
		t.Errorf("%s %s, want Expired", e.Type, e.Object)
	}
}

// TestHistoryCountersAreThereFromTheStart: alerts on a counter want to see it at
// zero first.
func TestHistoryCountersAreThereFromTheStart(t *testing.T) {
	body := string(newCluster(t).get("/metrics").body)
	for _, label := range []string{
		`resumes_total{group="",history="exact"`, `resumes_total{group="",history="coalesced"`, `resumes_total{group="",history="continued"`,
		`resumes_total{group="",history="initial"`, `expired_total{group="",reason="old"`, `expired_total{group="",reason="slow"`,
		`expired_total{group="",reason="reset"`, `expired_total{group="",reason="exact"`, `expired_total{group="",reason="continue"`,
	} {
		if !strings.Contains(body, "levelwire_cache_"+label) {
			t.Errorf("/metrics lacks levelwire_cache_%s", label)
		}
	}
	for _, result := range []string{"difference", "list instead"} {
		if !strings.Contains(body, `levelwire_differences_total{result="`+result+`"} 0`) {
			t.Errorf("/metrics lacks the result %q", result)
		}
	}
}
