package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// window reads events up to the next WindowEvent, and returns them as "TYPE name".
func (f *frames) window() (events []string, state debugapi.WindowState) {
	f.t.Helper()
	for {
		e := f.next()
		if e.Type == debugapi.WindowEventType {
			must(f.t, json.Unmarshal(e.Object, &state))
			return events, state
		}
		var object struct {
			Rows []struct {
				Object struct{ Metadata struct{ Name string } }
			}
		}
		must(f.t, json.Unmarshal(e.Object, &object))
		if len(object.Rows) != 1 {
			f.t.Fatalf("an event with %d rows: %s", len(object.Rows), e.Object)
		}
		events = append(events, e.Type+" "+object.Rows[0].Object.Metadata.Name)
	}
}

// moved returns the next window with other rows. The number of objects may be said before.
func (f *frames) moved() (events []string, state debugapi.WindowState) {
	f.t.Helper()
	for len(events) == 0 && state.Order == nil {
		events, state = f.window()
	}
	return events, state
}

const asTable = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"

// TestWindowIsWatched: the stream has the objects of the window, and then only what changes in it.
func TestWindowIsWatched(t *testing.T) {
	c := newCluster(t)
	for i := range 10 {
		c.put(testPod("a", fmt.Sprint("pod-", i), map[string]string{"odd": fmt.Sprint(i%2 == 1)}, "n1"))
	}
	c.overBoth(t, func(t *testing.T) {
		stream := c.watch(debugapi.WindowPath+"/api/v1/pods?watch=true&offset=1&limit=2&labelSelector=odd%3Dtrue", asTable)
		defer stream.close()
		events, state := stream.window()
		if !slices.Equal(events, []string{"ADDED pod-3", "ADDED pod-5"}) || !slices.Equal(state.Order, []string{"a/pod-3", "a/pod-5"}) || state.Offset != 1 || state.Total != 5 {
			t.Fatalf("%q %+v", events, state)
		}
		c.put(testPod("a", "pod-4", map[string]string{"odd": "false"}, "n2"))
		c.put(testPod("a", "pod-7", map[string]string{"odd": "true"}, "n2"))
		rev := c.put(testPod("a", "pod-3", map[string]string{"odd": "true"}, "n3"))
		if events, state = stream.window(); !slices.Equal(events, []string{"MODIFIED pod-3"}) || state.Order != nil || state.ResourceVersion < fmt.Sprint(rev) {
			t.Errorf("after a change: %q %+v", events, state)
		}
		c.put(testPod("a", "pod-0", map[string]string{"odd": "true"}, "n1"))
		if events, state = stream.moved(); !slices.Equal(events, []string{"ADDED pod-1"}) || !slices.Equal(state.Order, []string{"a/pod-1", "a/pod-3"}) || state.Total != 6 {
			t.Errorf("after the window has moved: %q %+v", events, state)
		}
		c.put(testPod("a", "pod-0", map[string]string{"odd": "false"}, "n1"))
		if events, state = stream.moved(); !slices.Equal(events, []string{"ADDED pod-5"}) || state.Total != 5 {
			t.Errorf("after it has moved back: %q %+v", events, state)
		}
	})
	if n := inspected[debugapi.Watchers](c, debugapi.WatchersPath); n.Total != 0 {
		t.Errorf("%d watches are open", n.Total)
	}
	ends := c.watch(debugapi.WindowPath+"/api/v1/pods?watch=true&limit=1&timeoutSeconds=1", asTable) //passes: the watch ends by it
	ends.window()
	ends.wantEnd()
	for _, bad := range []string{"limit=1001", "includeObject=Object", "sortBy=luck", "resourceVersionMatch=Exact&resourceVersion=1", "continue=x", "moment=2020-01-01T00:00:00Z"} {
		if r := c.get(debugapi.WindowPath+"/api/v1/pods?watch=true&"+bad, asTable); r.code != http.StatusBadRequest && r.code != http.StatusGone {
			t.Errorf("%s: %d %s", bad, r.code, r.body)
		}
	}
	for _, bad := range []string{"application/vnd.kubernetes.protobuf", "application/json", "*/*", ""} {
		r := c.get(debugapi.WindowPath+"/api/v1/pods?watch=true", "Accept: "+bad)
		if r.code != http.StatusNotAcceptable || !strings.Contains(string(r.body), "application/json;as=Table;v=v1;g=meta.k8s.io") {
			t.Errorf("%q: %d %s", bad, r.code, r.body)
		}
	}
	open := c.watch(debugapi.WindowPath+"/api/v1/pods?watch=true&limit=1", asTable)
	open.window()
	c.stop()
	open.wantEnd()
}

// TestWatchedWindowNeedsBothRights: that to list, and that to watch, for as long as it is open.
func TestWatchedWindowNeedsBothRights(t *testing.T) {
	c := rbacCluster(t, []string{"lister", "follower", "both"})
	c.put(testPod("a", "one", nil, "n1"))
	const path = debugapi.WindowPath + "/api/v1/namespaces/a/pods?watch=true"
	c.grantRole("list", []string{"list"}, "", "pods")
	c.grantRole("watch", []string{"watch"}, "", "pods")
	c.bind("a", "list", "lister")
	c.bind("a", "watch", "follower")
	c.bind("a", "watcher", "both")
	testwait.Stable(t, "the window can be watched", func() (any, bool) {
		seen := c.get(path+"&timeoutSeconds=1", asTable, asUser("both")).code //passes: the watch ends by it
		return seen, seen == http.StatusOK
	}) // what was granted before counts by then
	for user, verb := range map[string]string{"lister": "cannot watch", "follower": "cannot list"} {
		if r := c.get(path, asTable, asUser(user)); r.code != http.StatusForbidden || !strings.Contains(string(r.body), verb) {
			t.Errorf("%s: %d %s", user, r.code, r.body)
		}
	}
	c.overBoth(t, func(t *testing.T) {
		stream := c.watch(path, asTable, asUser("both"))
		if events, _ := stream.window(); !slices.Equal(events, []string{"ADDED one"}) {
			t.Fatalf("%q", events)
		}
		c.unbind("a", "watcher", "both")
		if e := stream.next(); e.Type != "ERROR" || !strings.Contains(string(e.Object), "the right was withdrawn") {
			t.Errorf("%s %s", e.Type, e.Object)
		}
		stream.wantEnd()
		c.bind("a", "watcher", "both")
		testwait.Stable(t, "the window can be watched again", func() (any, bool) {
			seen := c.get(path+"&timeoutSeconds=1", asTable, asUser("both")).code //passes: the watch ends by it
			return seen, seen == http.StatusOK
		})
	})
}

// pieces is an answer that notes how long each write is, and how many slots of reads are taken
// during it. Its client goes when it has got so many bytes.
type pieces struct {
	*httptest.ResponseRecorder
	server *Server
	sizes  []int
	slots  []int64
	enough int
	leave  func()
}

func (p *pieces) Flush() {
	p.ResponseRecorder.Flush()
	if p.Body.Len() >= p.enough {
		p.leave()
	}
}

func (p *pieces) Write(b []byte) (int, error) {
	p.sizes, p.slots = append(p.sizes, len(b)), append(p.slots, p.server.readSlots.InUse())
	return p.ResponseRecorder.Write(b)
}

// TestWindowIsWrittenInPieces: what is collected of a large window is bounded, and the seats of the
// list are held until all of it is encoded, but not during the last write.
func TestWindowIsWrittenInPieces(t *testing.T) {
	c := newCluster(t)
	const pods, annotation = 100, 10 << 10
	for i := range pods {
		pod := testPod("a", fmt.Sprint("pod-", i), nil, "n1")
		pod.Annotations = map[string]string{"fill": strings.Repeat("x", annotation)}
		c.put(pod)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	w := &pieces{ResponseRecorder: httptest.NewRecorder(), server: c.server, enough: pods * annotation, leave: leave}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, debugapi.WindowPath+"/api/v1/pods?watch=true&limit=1000", nil)
	r.Header.Set("Accept", strings.TrimPrefix(asTable, "Accept: "))
	r.Header.Set("Authorization", "Bearer "+testToken)
	c.server.ServeHTTP(w, r)
	if w.Code != http.StatusOK || len(w.sizes) < pods*annotation/encoding.WriteSize/2 {
		t.Fatalf("%d, written in %d pieces", w.Code, len(w.sizes))
	}
	if longest := slices.Max(w.sizes); longest > encoding.WriteSize+2*annotation {
		t.Errorf("%d bytes were collected before they were written", longest)
	}
	last := slices.IndexFunc(w.slots, func(n int64) bool { return n == 0 })
	if last < 0 || slices.Max(w.slots[last:]) != 0 || last < len(w.slots)-2 { // the end is a write of nothing
		t.Errorf("slots at each write: %v", w.slots)
	}
}

// TestFollowedWindowsAreBounded: a user has a share of the rows of all windows.
func TestFollowedWindowsAreBounded(t *testing.T) {
	c := newCluster(t, threeUsers)
	c.put(testPod("a", "one", nil, "n1"))
	const path = debugapi.WindowPath + "/api/v1/pods?watch=true&limit=1000"
	greedy := auth.User{Name: "greedy"}
	held := int64(0)
	for c.server.windowRows.TryAcquire(greedy, 1000+windowOverhead) {
		held += 1000 + windowOverhead
	}
	r := c.get(path, asTable, "Authorization: Bearer "+greedyToken)
	if r.code != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
		t.Errorf("one window too many: %d %s", r.code, r.body)
	}
	for _, token := range []string{testToken, adminToken} {
		stream := c.watch(path, asTable, "Authorization: Bearer "+token)
		stream.window()
		if n := c.server.windowRows.InUse() - held; n != 1000+windowOverhead {
			t.Errorf("a window of 1000 rows holds %d", n)
		}
		stream.close()
		testwait.Stable(t, "the rows of a window are given back", func() (any, bool) { seen := c.server.windowRows.InUse(); return seen, seen == held })
	}
}

// TestFollowedWindowsComputeInTurns: what follows a window waits while as many handlers of its user
// compute as there are processors, at its begin and at each change, and holds nothing in between.
func TestFollowedWindowsComputeInTurns(t *testing.T) {
	c := newCluster(t, threeUsers)
	c.put(testPod("a", "one", nil, "n1"))
	delayed := func() string { return c.metric("levelwire_runqueue_delayed_total", "") }
	idle := func() (any, bool) {
		running, slots := c.metric("levelwire_runqueue_running", ""), c.server.readSlots.InUse()
		return []any{running, slots}, running == "0" && slots == 0
	}
	c.overBoth(t, func(t *testing.T) {
		stream := c.watch(debugapi.WindowPath+"/api/v1/pods?watch=true&limit=1", asTable, "Authorization: Bearer "+greedyToken)
		defer stream.close()
		stream.window()
		for i := range 3 {
			testwait.Stable(t, "a window that does not change holds neither a turn nor a slot", idle)
			tasks := make([]runqueue.Task, runtime.GOMAXPROCS(0))
			for i := range tasks {
				tasks[i].Start(c.server.handlers, runqueue.Level{}, "greedy")
			}
			before := delayed()
			c.put(testPod("a", "one", nil, fmt.Sprint("m", i)))
			if events, _ := stream.window(); !slices.Equal(events, []string{"MODIFIED one"}) { // once the tasks have lapsed
				t.Errorf("%q", events)
			}
			if after := delayed(); after == before || after == "" {
				t.Errorf("a followed window did not wait for others of its user: %q before, %q after", before, after)
			}
			for i := range tasks {
				tasks[i].End()
			}
		}
	})
}
