package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hurried makes reads and watches wait but a moment for a version that does not come.
func hurried(s *setup) {
	s.cache.FreshnessWait, s.config.CatchUpTimeout = 50*time.Millisecond, 250*time.Millisecond
}

// A watch from a version that does not come ends with the reason in the stream.
func TestWatchFromAVersionThatDoesNotCome(t *testing.T) {
	c := newCluster(t, hurried)
	revs := seed(c)
	c.overBoth(t, func(t *testing.T) {
		for _, query := range []string{"", "&allowWatchBookmarks=true", "&labelSelector=app%3Dx", "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"} {
			stream := c.watch(expand("/api/v1/pods?watch=1&resourceVersion={future}"+query, revs))
			e := stream.next()
			if e.String() != "ERROR 504 Timeout" {
				t.Fatalf("%q: got %s", query, e)
			}
			var status metav1.Status
			must(t, json.Unmarshal(e.Object, &status))
			d := status.Details
			if d == nil || d.RetryAfterSeconds != 1 || len(d.Causes) != 1 || d.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge {
				t.Errorf("%q: %s", query, e.Object)
			}
			stream.wantEnd()
		}
	})
}

// Once its version has come a watch goes on as any other.
func TestWatchFromAVersionThatComes(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	stream := c.watch(fmt.Sprintf("/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=%d", revs["third"]+1))
	c.put(testPod("a", "skipped", nil, ""))
	stream.want(fmt.Sprint("ADDED seen@", c.put(testPod("a", "seen", nil, ""))))
}

// A watch whose selection has been quiet learns at a drain how far everything
// else has come, and so where to go on at another server.
func TestDrainTellsWhereToGoOn(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	path := expand("/api/v1/pods?watch=1&resourceVersion={third}&labelSelector=app%3Dnone", revs)
	marked, plain := c.watch(path+"&allowWatchBookmarks=true"), c.watch(path)
	everything := c.watch(expand("/api/v1/pods?watch=1&resourceVersion={third}", revs))
	last := c.put(testPod("a", "other", nil, ""))
	everything.want(fmt.Sprint("ADDED other@", last)) // the cache has come so far
	c.stop()
	marked.want(fmt.Sprint("BOOKMARK @", last))
	marked.wantEnd()
	plain.wantEnd()
}

// A watch that begins during a drain would end at once, which client-go takes
// for a reason to list.
func TestNoWatchBeginsDuringADrain(t *testing.T) {
	c := newCluster(t)
	c.server.stopOnce.Do(func() { close(c.server.stopping) })
	r := c.get("/api/v1/pods?watch=1&resourceVersion=1")
	if r.code != http.StatusTooManyRequests || r.header.Get("Retry-After") != "1" {
		t.Errorf("got %d, %v: %s", r.code, r.header, r.body)
	}
	if r := c.get("/api/v1/pods"); r.code != http.StatusOK {
		t.Errorf("a list: %d %s", r.code, r.body)
	}
}
