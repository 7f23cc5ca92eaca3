package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/storage"
)

// hurried makes watches wait but a moment for a version that does not come.
func hurried(s *setup) { s.config.CatchUpTimeout = 250 * time.Millisecond }

// farther is a store that has come farther than the caches know.
type farther struct {
	storage.Reader
	by storage.Revision
}

func (f farther) Current(ctx context.Context) (storage.Revision, error) {
	revision, err := f.Reader.Current(ctx)
	return revision + f.by, err
}

// down is a store that cannot say how far it has come.
type down struct{ storage.Reader }

func (down) Current(context.Context) (storage.Revision, error) { return 0, storage.ErrUnavailable }

// A watch from a version that does not come ends with the reason: the version's, if
// the store has not got it, and the server's otherwise, which is no reason to list.
func TestWatchFromAVersionThatDoesNotCome(t *testing.T) {
	for name, tt := range map[string]struct {
		store func(storage.Reader) storage.Reader
		want  string
		cause metav1.CauseType
	}{
		"not in the store":     {func(r storage.Reader) storage.Reader { return r }, "ERROR 504 Timeout", metav1.CauseTypeResourceVersionTooLarge},
		"in the store":         {func(r storage.Reader) storage.Reader { return farther{r, 5000} }, "ERROR 429 TooManyRequests", ""},
		"nobody knows, for it": {func(r storage.Reader) storage.Reader { return down{r} }, "ERROR 429 TooManyRequests", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, hurried, func(s *setup) { s.config.Store = tt.store(s.config.Store) })
			revs := seed(c)
			c.overBoth(t, func(t *testing.T) {
				for _, query := range []string{"", "&allowWatchBookmarks=true", "&labelSelector=app%3Dx", "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"} {
					stream := c.watch(expand("/api/v1/pods?watch=1&resourceVersion={future}"+query, revs))
					e := stream.next()
					if e.String() != tt.want {
						t.Fatalf("%q: got %s, want %s", query, e, tt.want)
					}
					var status metav1.Status
					must(t, json.Unmarshal(e.Object, &status))
					d := status.Details
					if d == nil || d.RetryAfterSeconds != 1 || (tt.cause != "") != (len(d.Causes) == 1) || tt.cause != "" && d.Causes[0].Type != tt.cause {
						t.Errorf("%q: %s", query, e.Object)
					}
					stream.wantEnd()
				}
			})
		})
	}
}

// Once its version has come a watch goes on as any other.
func TestWatchFromAVersionThatComes(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.CatchUpTimeout = 2 * time.Second })
	revs := seed(c)
	stream := c.watch(fmt.Sprintf("/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=%d", revs["third"]+1))
	c.put(testPod("a", "skipped", nil, ""))
	stream.want(fmt.Sprint("ADDED seen@", c.put(testPod("a", "seen", nil, ""))))

	// When the other has been refused, this one would have been.
	c.watch(expand("/api/v1/pods?watch=1&resourceVersion={future}", revs)).want("ERROR 504 Timeout")
	stream.want(fmt.Sprint("ADDED late@", c.put(testPod("a", "late", nil, ""))))
}

// A watch whose version has come has its bookmark before its end, however long
// it would have waited for the version.
func TestBookmarkOfAVersionThatComes(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.CatchUpTimeout = 3 * time.Second })
	revs := seed(c)
	stream := c.watch(fmt.Sprintf("/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion=%d", revs["third"]+1))
	c.put(testPod("a", "skipped", nil, ""))
	seen := c.put(testPod("a", "seen", nil, ""))
	stream.want(fmt.Sprint("ADDED seen@", seen))
	var pod metav1.PartialObjectMetadata
	e := stream.next()
	must(t, json.Unmarshal(e.Object, &pod))
	version, err := strconv.ParseInt(pod.ResourceVersion, 10, 64)
	if e.Type != "BOOKMARK" || err != nil || version < int64(seen) {
		t.Errorf("got %s, want a bookmark of %d or later", e, seen)
	}
	stream.wantEnd()
}

// A bookmark would say that the version exists. A watch that asked for one and
// is short hears at its end that it does not.
func TestNoBookmarkOfAVersionThatDoesNotCome(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	long, short := "/api/v1/pods?watch=1&resourceVersion={future}&timeoutSeconds=1", "&allowWatchBookmarks=true"
	stream := c.watch(expand(long+short, revs))
	stream.want("ERROR 504 Timeout")
	stream.wantEnd()
	c.watch(expand(long, revs)).wantEnd()
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
