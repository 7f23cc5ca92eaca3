package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/internal/debugapi"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/storage"
)

// inspected decodes what a path of the debug API answers.
func inspected[T any](c *cluster, path string) (out T) {
	c.t.Helper()
	r := c.get(path)
	if r.code != http.StatusOK {
		c.t.Fatalf("%s: %d %s", path, r.code, r.body)
	}
	must(c.t, json.Unmarshal(r.body, &out))
	return out
}

// TestWatchersAreShown has watches that resumed in different ways, one of whose clients does
// not read: it lags, and no other does.
func TestWatchersAreShown(t *testing.T) {
	c := newCluster(t)
	c.overBoth(t, func(t *testing.T) {
		seed(c)
		initial := c.watch("/api/v1/pods?watch=1&labelSelector=app%3Dx", "User-Agent: first")
		initial.next()
		rev := c.put(testPod("a", "one", map[string]string{"app": "x"}, "n1"))
		exact := c.watch(fmt.Sprintf("/api/v1/namespaces/a/pods?watch=1&resourceVersion=%d", rev), "User-Agent: second")
		defer initial.close()
		defer exact.close()
		slow := c.watch(fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d&fieldSelector=metadata.namespace%%3Dz", rev), "User-Agent: slow")
		defer slow.close()
		byAgent := func() map[string]debugapi.Watcher {
			found := map[string]debugapi.Watcher{}
			for _, w := range inspected[debugapi.Watchers](c, debugapi.WatchersPath+"?resource=pods").Items {
				found[w.Agent] = w
			}
			return found
		}
		big := testPod("z", "big", nil, "n1")
		big.Annotations = map[string]string{"fill": strings.Repeat("x", 200<<10)}
		testwait.Stable(t, "the watch whose client does not read lags", func() (any, bool) {
			c.put(big)
			slow := byAgent()["slow"]
			return slow, slow.LagEvents > 2 && slow.State == "writing" && slow.LagMillis > 0 && slow.Bytes > 0
		})
		found := testwait.Stable(t, "no other watch lags", func() (map[string]debugapi.Watcher, bool) { // nothing is put any more
			found := byAgent()
			return found, found["first"].LagEvents == 0 && found["first"].State == "idle" && found["second"].LagEvents == 0
		})
		first, second := found["first"], found["second"]
		if first.Began != "initial" || first.LabelSelector != "app=x" || first.User != "tester" || first.Events < 2 || first.Bytes < 100 {
			t.Errorf("the first: %+v", first)
		}
		if second.Began != "exact" || second.Namespace != "a" || second.Requested != int64(rev) || second.Remote == "" || second.Version != "v1" || second.Resource != "pods" {
			t.Errorf("the second: %+v", second)
		}
		if want := map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"}[c.client == c.http2]; second.Protocol != want {
			t.Errorf("the protocol is %s, want %s", second.Protocol, want)
		}
		limited := inspected[debugapi.Watchers](c, debugapi.WatchersPath+"?limit=1")
		if len(limited.Items) != 1 || limited.Items[0].Agent != "slow" || limited.Matching != 3 || limited.Total != 3 {
			t.Errorf("limited to the one that lags most: %+v", limited)
		}
		initial.close()
		exact.close()
		slow.close()
		testwait.Stable(t, "closed watches are not shown", func() (any, bool) { seen := len(byAgent()); return seen, seen == 0 })
	})
}

// TestBorrowedStreamsLoseNothing looks at watches while they are woken.
func TestBorrowedStreamsLoseNothing(t *testing.T) {
	c := newCluster(t)
	const watches, changes = 20, 100
	var open []*frames
	for range watches {
		open = append(open, c.watch("/api/v1/pods?watch=1"))
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				inspected[debugapi.Watchers](c, debugapi.WatchersPath)
			}
		}
	}()
	for i := range changes {
		rev := c.put(testPod("a", "one", nil, fmt.Sprint("n", i)))
		if i%10 == 0 {
			for _, stream := range open {
				for {
					if strings.HasSuffix(stream.next().String(), fmt.Sprint("@", rev)) {
						break
					}
				}
			}
		}
	}
	close(stop)
	<-stopped
}

func TestLogsAreShown(t *testing.T) {
	c := newCluster(t)
	seed(c)
	c.get("/api/v1/pods")
	logs := inspected[debugapi.Logs](c, debugapi.LogsPath)
	for _, log := range logs.Resources {
		if log.Resource != "pods" || log.Group != "" {
			continue
		}
		if log.Objects != 3 || log.Applied != 3 || log.Events != 3 || log.OldestTime == nil || !log.Namespaced || log.Changed != logs.Revision {
			t.Errorf("pods: %+v of %d", log, logs.Revision)
		}
		return
	}
	t.Error("pods are not shown")
}

// TestInspectionIsAuthorized: only users who may get the paths.
func TestInspectionIsAuthorized(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.rbac = true })
	for _, path := range []string{debugapi.LogsPath, debugapi.WatchersPath} {
		if r := c.get(path); r.code != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, r.code, r.body)
		}
		if r := c.get(path, "Authorization: "); r.code != http.StatusUnauthorized {
			t.Errorf("%s without credentials: %d %s", path, r.code, r.body)
		}
	}
	for _, bad := range []string{"?limit=-1", "?limit=x", "?limit=5001", "?sort=luck"} {
		if r := newCluster(t).get(debugapi.WatchersPath + bad); r.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, r.code, r.body)
		}
	}
}

func TestHistoryOfAnObject(t *testing.T) {
	c := newCluster(t)
	c.get("/api/v1/pods") // the first fill, so that the log has what comes
	first := c.put(testPod("a", "one", nil, ""))
	c.put(testPod("b", "one", nil, ""))
	second := c.put(testPod("a", "one", nil, "n1"))
	last := c.remove("a", "one")
	c.get("/api/v1/pods")
	history := inspected[debugapi.History](c, debugapi.HistoryPath+"/api/v1/namespaces/a/pods/one")
	var got []string
	for _, version := range history.Items {
		var pod corev1.Pod
		if version.Object != nil {
			must(t, json.Unmarshal(version.Object, &pod))
		}
		if version.Time == nil {
			t.Errorf("the time of %s %d is not known", version.Type, version.Revision)
		}
		got = append(got, fmt.Sprint(version.Type, " ", version.Revision, " ", pod.Spec.NodeName, " ", pod.ResourceVersion))
	}
	want := []string{fmt.Sprint("ADDED ", first, "  ", first), fmt.Sprint("MODIFIED ", second, " n1 ", second), fmt.Sprint("DELETED ", last, "  ")}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if h := inspected[debugapi.History](c, debugapi.HistoryPath+"/api/v1/namespaces/a/pods/one?limit=1"); !h.Truncated || len(h.Items) != 1 || h.Items[0].Type != "DELETED" {
		t.Errorf("the last version: %+v", h)
	}
	if r := c.get(debugapi.HistoryPath + "/api/v1/namespaces/a/pods/never"); r.code != http.StatusNotFound {
		t.Errorf("an object that never was: %d %s", r.code, r.body)
	}
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/a/pods/one/status", "/api/v1/watch/namespaces/a/pods/one", "/nothing"} {
		if r := c.get(debugapi.HistoryPath + path); r.code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, r.code, r.body)
		}
	}
}

// TestHistoryIsOfOneObject: what had the name before is another object, and none of its users' business.
func TestHistoryIsOfOneObject(t *testing.T) {
	c := newCluster(t)
	c.get("/api/v1/pods") // the first fill, so that the log has what comes
	put := func(name, uid, node string) int64 {
		pod := testPod("a", name, nil, node)
		pod.UID = types.UID(uid)
		return int64(c.put(pod))
	}
	put("again", "first", "before")
	put("again", "first", "before-too")
	c.remove("a", "again")
	made := put("again", "second", "n1")
	changed := put("again", "second", "n2")

	put("replaced", "first", "before")
	in := put("replaced", "second", "n1")

	put("gone", "first", "before")
	c.remove("a", "gone")
	last := put("gone", "second", "n1")
	deleted := int64(c.remove("a", "gone"))
	c.get("/api/v1/pods")
	for path, want := range map[string][]int64{
		"again": {made, changed}, "again?limit=3": {made, changed}, "again?limit=2": {made, changed}, "replaced": {in}, "gone": {last, deleted},
	} {
		path = debugapi.HistoryPath + "/api/v1/namespaces/a/pods/" + path
		var got []int64
		for _, version := range inspected[debugapi.History](c, path).Items {
			got = append(got, version.Revision)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
		if r := c.get(path); strings.Contains(string(r.body), "before") {
			t.Errorf("%s has an earlier object: %s", path, r.body)
		}
	}
	if h := inspected[debugapi.History](c, debugapi.HistoryPath+"/api/v1/namespaces/a/pods/again?limit=3"); h.Truncated {
		t.Error("the history says that there is more of an object that has no more")
	}
}

// TestHistoryNeedsBothRights: that to get the object as it is, and that to watch what becomes of it.
func TestHistoryNeedsBothRights(t *testing.T) {
	c := rbacCluster(t, []string{"getter", "follower", "both"})
	c.put(testPod("a", "one", nil, "n1"))
	const path = debugapi.HistoryPath + "/api/v1/namespaces/a/pods/one"
	c.grantRole("get", []string{"get"}, "", "pods")
	c.bind("a", "get", "getter")
	c.bind("a", "watcher", "follower")
	c.bind("a", "get", "both")
	c.bind("a", "watcher", "both")
	testwait.Stable(t, "the history can be read", func() (any, bool) {
		seen := c.get(path, asUser("both")).code
		return seen, seen == http.StatusOK
	}) // what was granted before counts by then
	for user, verb := range map[string]string{"getter": "cannot watch", "follower": "cannot get"} {
		if r := c.get(path, asUser(user)); r.code != http.StatusForbidden || !strings.Contains(string(r.body), verb) {
			t.Errorf("%s: %d %s", user, r.code, r.body)
		}
	}
}

func TestHistoryIsBoundedInBytes(t *testing.T) {
	c := newCluster(t)
	c.get("/api/v1/pods") // the first fill, so that the log has what comes
	pod := testPod("a", "large", nil, "n1")
	pod.Annotations = map[string]string{"fill": strings.Repeat("x", 1<<20)}
	const versions = 20
	var last storage.Revision
	for range versions {
		last = c.put(pod)
		c.get("/api/v1/pods") // which waits for the cache: one that falls behind leaves versions out
	}
	r := c.get(debugapi.HistoryPath + "/api/v1/namespaces/a/pods/large")
	var history debugapi.History
	must(t, json.Unmarshal(r.body, &history))
	if n := len(history.Items); len(r.body) > maxHistoryBytes+1<<20 || n < 10 || !history.Truncated || history.Items[n-1].Revision != int64(last) {
		t.Errorf("%d bytes, %d versions, truncated: %v", len(r.body), n, history.Truncated)
	}
}

func TestEventsOfACollection(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.cache.HistoryEvents = 4 })
	c.get("/api/v1/pods") // the first fill, so that the log has what comes
	var revs []storage.Revision
	for i := range 5 {
		revs = append(revs, c.put(testPod("a", fmt.Sprint("pod-", i), map[string]string{"odd": fmt.Sprint(i%2 == 1)}, "")))
	}
	c.get("/api/v1/pods")
	names := func(query string) (names []string, events debugapi.Events) {
		events = inspected[debugapi.Events](c, debugapi.EventsPath+query)
		for _, e := range events.Items {
			names = append(names, e.Type+" "+e.Namespace+"/"+e.Name)
		}
		return names, events
	}
	all, events := names("/api/v1/pods")
	if want := []string{"ADDED a/pod-1", "ADDED a/pod-2", "ADDED a/pod-3", "ADDED a/pod-4"}; !slices.Equal(all, want) || events.Oldest != int64(revs[0]) || events.Truncated {
		t.Errorf("all: %q, the oldest %d", all, events.Oldest)
	}
	for query, want := range map[string][]string{
		fmt.Sprintf("/api/v1/pods?after=%d&through=%d", revs[1], revs[3]): {"ADDED a/pod-2", "ADDED a/pod-3"},
		"/api/v1/pods?limit=1":                                {"ADDED a/pod-4"},
		"/api/v1/pods?labelSelector=odd%3Dtrue":               {"ADDED a/pod-1", "ADDED a/pod-3"},
		"/api/v1/namespaces/b/pods":                           nil,
		"/api/v1/pods?fieldSelector=metadata.name%3Dpod-2":    {"ADDED a/pod-2"},
		"/api/v1/namespaces/a/pods?limit=2&labelSelector=odd": {"ADDED a/pod-3", "ADDED a/pod-4"},
	} {
		if got, _ := names(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestWindows reads parts of a list by their numbers, in several orders.
func TestWindows(t *testing.T) {
	c := newCluster(t)
	for i := range 300 {
		c.put(testPod(fmt.Sprint("ns-", i%3), fmt.Sprintf("pod-%03d", i), map[string]string{"third": fmt.Sprint(i % 3)}, fmt.Sprint("n", i%7)))
	}
	before := c.get("/api/v1/pods").podList(t)
	c.put(testPod("ns-0", "pod-000", nil, "changed"))
	c.get("/api/v1/pods")
	for _, tt := range []struct {
		query, first, last string
		total              int
	}{
		{"", "ns-0/pod-000", "ns-0/pod-147", 300},
		{"offset=290", "ns-2/pod-272", "ns-2/pod-299", 300},
		{"offset=299&limit=5", "ns-2/pod-299", "ns-2/pod-299", 300},
		{"offset=300", "", "", 300},
		{"offset=10&limit=2&labelSelector=third%3D1", "ns-1/pod-031", "ns-1/pod-034", 100},
		{"sortBy=name&offset=100&limit=3", "ns-1/pod-100", "ns-0/pod-102", 300},
		{"sortBy=name&descending=true&limit=3", "ns-2/pod-299", "ns-0/pod-297", 300},
		{"sortBy=created&descending=1&limit=2", "ns-2/pod-299", "ns-1/pod-298", 300},
		{"sortBy=changed&descending=1&limit=2", "ns-0/pod-000", "ns-2/pod-299", 300},
		{"sortBy=label:third&offset=199&limit=2", "ns-1/pod-298", "ns-2/pod-002", 300},
		{"sortBy=field:spec.nodeName&limit=1&labelSelector=third", "ns-0/pod-021", "ns-0/pod-021", 299},
		{"descending=true&limit=1", "ns-2/pod-299", "ns-2/pod-299", 300},
		{"sortBy=changed&descending=1&limit=1&resourceVersionMatch=Exact&resourceVersion=" + before.ResourceVersion, "ns-2/pod-299", "ns-2/pod-299", 300},
	} {
		for range 2 { // the second is from memory
			r := c.get(debugapi.WindowPath + "/api/v1/pods?" + tt.query)
			if r.code != http.StatusOK {
				t.Fatalf("%s: %d %s", tt.query, r.code, r.body)
			}
			list := r.podList(t)
			first, last := "", ""
			if n := len(list.Items); n > 0 {
				first, last = list.Items[0].Namespace+"/"+list.Items[0].Name, list.Items[n-1].Namespace+"/"+list.Items[n-1].Name
			}
			if first != tt.first || last != tt.last || r.header.Get(debugapi.TotalHeader) != fmt.Sprint(tt.total) {
				t.Errorf("%s: %s to %s of %s, want %s to %s of %d", tt.query, first, last, r.header.Get(debugapi.TotalHeader), tt.first, tt.last, tt.total)
			}
		}
	}
	for _, bad := range []string{"sortBy=luck", "sortBy=field:spec.luck", "offset=-1", "limit=1001", "continue=x", "moment=now", "fieldSelector=a%3Db"} {
		if r := c.get(debugapi.WindowPath + "/api/v1/pods?" + bad); r.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, r.code, r.body)
		}
	}
	if r := c.get(debugapi.WindowPath + "/api/v1/pods?limit=1&moment=" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339)); r.code != http.StatusOK {
		t.Errorf("a moment after the last change: %d %s", r.code, r.body)
	}
	if r := c.get(debugapi.WindowPath + "/api/v1/pods?moment=2020-01-01T00:00:00Z"); r.code != http.StatusGone {
		t.Errorf("a moment that is not kept: %d %s", r.code, r.body)
	}
	if table := c.get(debugapi.WindowPath+"/api/v1/pods?limit=1", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"); !strings.Contains(string(table.body), `"kind":"Table"`) {
		t.Errorf("as a table: %s", table.body)
	}
}

// TestInspectionOfObjectsIsAuthorized: as the API itself authorizes what it shows.
func TestInspectionOfObjectsIsAuthorized(t *testing.T) {
	var asked []string
	c := newCluster(t, func(s *setup) {
		s.config.Authorizer = authorizerFunc(func(a auth.Attributes) (auth.Decision, string) {
			asked = append(asked, fmt.Sprint(a.Verb, " ", a.Resource, " ", a.Namespace, " ", a.Name))
			return auth.NoOpinion, ""
		})
	})
	for path, want := range map[string]string{
		debugapi.EventsPath + "/api/v1/secrets":                                 "watch secrets  ",
		debugapi.WindowPath + "/api/v1/namespaces/a/secrets?watch=1":            "list secrets a ",
		debugapi.HistoryPath + "/api/v1/namespaces/a/secrets/s":                 "get secrets a s",
		debugapi.EventsPath + "/api/v1/secrets?fieldSelector=metadata.name%3Dx": "watch secrets  x",
	} {
		asked = nil
		r := c.get(path)
		if r.code != http.StatusForbidden || len(asked) != 1 || asked[0] != want {
			t.Errorf("%s: %d, asked %q, want %q", path, r.code, asked, want)
		}
	}
}
