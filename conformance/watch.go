package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var watchGuarantees = []Guarantee{
	{Name: "watch/after-version", Source: sourceConcepts, check: checkWatchAfter,
		Sentence: "A watch at version N begins with the first event after N, also with sendInitialEvents=false."},
	{Name: "watch/from-latest", Source: sourceStreaming, check: checkWatchFrom(""),
		Sentence: "Without a version and with sendInitialEvents=false a watch begins now, without initial events."},
	{Name: "watch/from-any", Source: sourceStreaming, check: checkWatchFrom("0"),
		Sentence: "At version 0 with sendInitialEvents=false there are no initial events either."},
	{Name: "watch/limit-ignored", Source: sourceObserved, check: checkWatchLimit,
		Sentence: "limit and continue mean nothing to a watch."},
	{Name: "watch/timeout-seconds", Source: sourceConcepts, check: checkWatchTimeout,
		Sentence: "timeoutSeconds ends a watch in order, from the server's side."},
	{Name: "watch/headers-at-once", Source: sourceObserved, check: checkHeadersAtOnce,
		Sentence: "A watch with nothing to say answers with its headers at once."},
	{Name: "watch/future-silent", Source: sourceObserved, check: checkFutureSilent,
		Sentence: "A plain watch at a version in the future opens, and is silent until it comes."},
	{Name: "watch/http1", Source: sourceConcepts, check: checkWatchHTTP1,
		Sentence: "Watches work over HTTP/1.1: events arrive as they happen."},
	{Name: "watch/one-object", Source: sourceConcepts, check: checkWatchOne,
		Sentence: "A watch of one object, by metadata.name or by its old path, shows that object only."},
	{Name: "watch/all-namespaces", Source: sourceConcepts, check: checkWatchAll,
		Sentence: "A watch of the collection of all namespaces shows the events of each."},
	{Name: "watch/legacy-path", Source: sourceObserved, check: checkLegacyPath,
		Sentence: "The old paths /api/v1/watch/... work: a namespace, an object, everything."},
}

func checkWatchAfter(e *Env) {
	before := e.create("a")
	for _, query := range []string{"", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&"} {
		w := e.watch(query + "resourceVersion=" + before.version())
		name := e.unique()
		made := e.create(name)
		v := w.expect("ADDED", name)
		if v.Object.version() != made.version() {
			e.failf("the event has version %s, the write had %s", v.Object.version(), made.version())
		}
		w.close()
		before = made
	}
}

func checkWatchFrom(version string) func(*Env) {
	return func(e *Env) {
		e.create("old")
		e.list("")
		w := e.watch("sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=" + version)
		e.create("new")
		w.expect("ADDED", "new")
	}
}

func checkWatchLimit(e *Env) {
	e.createSome("p", 3)
	w := e.watch("limit=1&continue=whatever&resourceVersion=" + e.list("").Metadata.ResourceVersion)
	e.create("a")
	e.create("b")
	w.expect("ADDED", "a")
	w.expect("ADDED", "b")
}

func checkWatchTimeout(e *Env) {
	e.create("a")
	version := e.list("").Metadata.ResourceVersion
	begin := time.Now()
	e.watch("timeoutSeconds=1&resourceVersion=" + version).end()
	if took := time.Since(begin); took < 900*time.Millisecond {
		e.failf("timeoutSeconds=1 ended the watch after %s", took)
	}
}

func checkHeadersAtOnce(e *Env) {
	e.create("a")
	version := e.list("").Metadata.ResourceVersion
	limit := e.limit()
	begin := time.Now()
	w := e.watch(fmt.Sprintf("timeoutSeconds=%.0f&resourceVersion=%s", (limit + 5*time.Second).Seconds(), version))
	if took := time.Since(begin); took > limit {
		e.late(limit, "the headers took %s", roundTime(took))
	}
	w.close()
}

func checkFutureSilent(e *Env) {
	e.create("a")
	for _, query := range []string{"", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&"} {
		w := e.watch(query + "timeoutSeconds=4&resourceVersion=" + e.future())
		e.create(e.unique())
		if seen := w.remaining(); len(seen) > 0 {
			e.failf("a watch of the future with %q got %s", query, seen[0])
		}
	}
}

func checkWatchHTTP1(e *Env) {
	at := e.create("a").version()
	w := e.watchWith(request{path: e.configMaps() + "?watch=true&resourceVersion=" + at, http1: true})
	if w.response.ProtoMajor != 1 {
		e.failf("asked for HTTP/1.1, got %s", w.response.Proto)
	}
	for range 3 {
		name := e.unique()
		e.create(name)
		w.expect("ADDED", name)
	}
}

func checkWatchOne(e *Env) {
	e.create("a")
	at := e.create("b").version()
	for _, path := range []string{
		e.legacy() + "/a?resourceVersion=" + at,
		e.configMaps() + "?watch=true&fieldSelector=metadata.name%3Da&resourceVersion=" + at,
	} {
		w := e.watchAt(path)
		e.update("b", e.unique())
		content := e.unique()
		e.update("a", content)
		for v := w.next(); ; v = w.next() {
			if v.Object.Metadata.Name != "a" {
				e.failf("a watch of a shows %s", v)
			}
			if v.Object.Data["content"] == content {
				break
			}
		}
		w.close()
	}
}

func checkWatchAll(e *Env) {
	at := e.create("a").version()
	w := e.watchAt("/api/v1/configmaps?watch=true&labelSelector=only%3D" + e.namespace + "&resourceVersion=" + at)
	e.create("b", "only="+e.namespace)
	w.expect("ADDED", "b")
}

// legacy is the path of the collection that always means a watch.
func (e *Env) legacy() string { return "/api/v1/watch/namespaces/" + e.namespace + "/configmaps" }

func checkLegacyPath(e *Env) {
	at := e.create("a", "only="+e.namespace).version()
	prefix := e.legacy()
	streams := []*watcher{
		e.watchAt(prefix + "?resourceVersion=" + at),
		e.watchAt(prefix + "/a?resourceVersion=" + at),
		e.watchAt("/api/v1/watch/configmaps?labelSelector=only%3D" + e.namespace + "&resourceVersion=" + at),
	}
	e.update("a", "2", "only="+e.namespace)
	for _, w := range streams {
		w.expect("MODIFIED", "a")
	}
}

var watchErrorGuarantees = []Guarantee{
	{Name: "watch/match-needs-initial-events", Source: sourceStreaming,
		Sentence: "resourceVersionMatch on a watch without sendInitialEvents is a 422 Invalid.",
		check: func(e *Env) {
			e.refuses(request{path: e.configMaps() + "?watch=true&timeoutSeconds=1&resourceVersion=5&resourceVersionMatch=NotOlderThan"}, wantInvalid)
		}},
	{Name: "watch/initial-events-need-match", Source: sourceStreaming, check: checkInitialNeedsMatch,
		Sentence: "sendInitialEvents without resourceVersionMatch=NotOlderThan is a 422 Invalid."},
	{Name: "watch/exact-invalid", Source: sourceStreaming,
		Sentence: "A watch with Exact is a 422 Invalid.",
		check: func(e *Env) {
			e.refuses(request{path: e.configMaps() + "?watch=true&timeoutSeconds=1&resourceVersion=5&sendInitialEvents=true&resourceVersionMatch=Exact"}, wantInvalid)
		}},
	{Name: "watch/version-not-a-number", Source: sourceConcepts,
		Sentence: "A watch at a version that is not a number is refused (400; kube-apiserver says 500).",
		check: func(e *Env) {
			e.refusesVersion(e.configMaps() + "?watch=true&timeoutSeconds=1&resourceVersion=yesterday")
		}},
	{Name: "watch/selector-malformed", Source: sourceObserved,
		Sentence: "What is wrong with the request itself is an HTTP error, not an event.",
		check: func(e *Env) {
			e.refuses(request{path: e.configMaps() + "?watch=true&timeoutSeconds=1&labelSelector=a+in+%28"}, wantBad)
		}},
	{Name: "watch/name-contradiction", Source: sourceObserved,
		Sentence: "A selector of metadata.name that contradicts the name in a watch's path is a 400.",
		check: func(e *Env) {
			e.create("a")
			e.refuses(request{path: e.legacy() + "/a?timeoutSeconds=1&fieldSelector=metadata.name%3Db"}, wantBad)
		}},
	{Name: "watch/expired-in-stream", Source: sourceObserved, check: checkWatchExpired,
		Sentence: "A watch at a version whose history is gone opens with 200 and says so in the stream: ERROR 410 Expired, then the end."},
	{Name: "watch/coalesced-history", Source: sourceOurs, check: checkCoalescedHistory,
		Sentence: "A watch at a version whose events are gone, but not the deletions since, gets the events that lead to the present state, in the order of versions, and goes on."},
	{Name: "watch/future-with-initial-events", Source: sourceStreaming, check: checkFutureInitial,
		Sentence: "Initial events not older than a version in the future: 200, then one ERROR 504 with the cause ResourceVersionTooLarge."},
}

func checkInitialNeedsMatch(e *Env) {
	for _, query := range []string{"sendInitialEvents=true", "sendInitialEvents=false", "sendInitialEvents=true&resourceVersion=5"} {
		e.refuses(request{path: e.configMaps() + "?watch=true&timeoutSeconds=1&" + query}, wantInvalid)
	}
}

func checkWatchExpired(e *Env) {
	e.create("a")
	w, err := e.openWatch(e.ctx, request{path: e.configMaps() + "?watch=true&" + e.brief("1")})
	if err != nil {
		e.failf("the watch should open and send the error in its stream: %v", err)
	}
	events := w.remaining()
	if len(events) == 0 || events[0].Type != "ERROR" {
		if e.remembersExactly() {
			e.skipf("%s", reachesBack)
		}
		e.skipf("%s", tellsCoalesced)
	}
	s, err := events[0].status()
	e.must(err)
	expected := wantExpired
	expected.says = "too old resource version"
	e.must(expected.compare(s))
	if len(events) > 1 {
		e.failf("%s follows the ERROR", events[1])
	}
}

// Why one of the two answers to a version whose events are gone is not to be seen.
const (
	tellsCoalesced = "the server answers with coalesced history"
	tellsNothing   = "the server has no coalesced history back to version 1"
)

// remembersExactly reports whether the server still has the first version.
func (e *Env) remembersExactly() bool {
	return e.get(e.configMaps()+"?resourceVersionMatch=Exact&resourceVersion=1").code == http.StatusOK
}

func checkCoalescedHistory(e *Env) {
	e.create("a")
	b := e.create("b")
	a := e.update("a", "2")
	e.create("c")
	e.delete("c")
	if e.remembersExactly() {
		e.skipf("%s", reachesBack)
	}
	w := e.watch(e.brief("1"))
	live := e.create("d")
	holds, last := map[string]string{}, "1"
	for holds["d"] == "" {
		v := w.next()
		if v.Type == "ERROR" {
			e.skipf("%s", tellsNothing)
		}
		version := v.Object.version()
		if v.Type == "DELETED" {
			// Those of several objects at once may share a version.
			if later(e, last, version) {
				e.failf("a deletion at version %s follows version %s", version, last)
			}
			delete(holds, v.Object.Metadata.Name)
		} else {
			if !later(e, version, last) {
				e.failf("version %s follows version %s", version, last)
			}
			holds[v.Object.Metadata.Name] = version
		}
		last = version
	}
	if holds["a"] != a.version() || holds["b"] != b.version() || holds["c"] != "" || holds["d"] != live.version() {
		e.failf("a, b and d are at versions %s, %s and %s, and c has been deleted; the events add up to %v", a.version(), b.version(), live.version(), holds)
	}
}

func checkFutureInitial(e *Env) {
	e.create("a")
	w := e.watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=" + e.future())
	w.expectError(wantLarge)
}

var deletionGuarantees = []Guarantee{
	{Name: "delete/event", Source: sourceConcepts, check: checkDeleteEvent,
		Sentence: "A deletion is one DELETED with the last content, that of the last change, and a version of its own."},
	{Name: "delete/answer", Source: sourceObserved, check: checkDeleteAnswer,
		Sentence: "DELETE answers with Status Success for most kinds, with the object for pods, and with a list for collections."},
	{Name: "delete/pod-events", Source: sourceObserved, check: checkPodDeletion,
		Sentence: "Deleting a pod is MODIFIED with a deletionTimestamp and then DELETED, at two versions, also without grace."},
	{Name: "delete/collection-versions", Source: sourceObserved, check: checkCollectionVersions,
		Sentence: "Deleting a collection gives every object a version of its own, in growing order."},
}

func checkDeleteEvent(e *Env) {
	made := e.create("a")
	w := e.watch("resourceVersion=" + made.version())
	e.update("a", "2", "color=red")
	last := e.update("a", "3", "color=blue")
	e.delete("a")
	w.expect("MODIFIED", "a")
	w.expect("MODIFIED", "a")
	v := w.expect("DELETED", "a")
	if !later(e, v.Object.version(), last.version()) {
		e.failf("the object was at version %s, DELETED has version %s", last.version(), v.Object.version())
	}
	if v.Object.Data["content"] != "3" || v.Object.Metadata.Labels["color"] != "blue" || v.Object.Metadata.UID != made.Metadata.UID {
		e.failf("the last state had content 3 and the color blue; DELETED shows %s", v.Raw)
	}
	next := e.create("b")
	if w.expect("ADDED", "b"); !later(e, next.version(), v.Object.version()) {
		e.failf("the write after the deletion has version %s, the deletion %s", next.version(), v.Object.version())
	}
}

func checkDeleteAnswer(e *Env) {
	made := e.create("a")
	answer := e.do(request{method: http.MethodDelete, path: e.configMaps() + "/a"})
	s, err := answer.status()
	e.must(err)
	if answer.code != 200 || s.Status != metav1.StatusSuccess || s.Details == nil || s.Details.UID != made.Metadata.UID {
		e.failf("deleting a ConfigMap: %s", answer)
	}
	e.createSome("p", 2)
	answer = e.do(request{method: http.MethodDelete, path: e.configMaps() + "?fieldSelector=metadata.name%3Dp1"})
	var deleted list
	e.must(answer.decode(&deleted))
	if answer.code != 200 || deleted.Kind != "ConfigMapList" || len(deleted.Items) != 1 {
		e.failf("deleting a collection: %s", answer)
	}
	e.createPod("pod")
	answer = e.do(request{method: http.MethodDelete, path: e.pods() + "/pod?gracePeriodSeconds=0"})
	var pod object
	e.must(answer.decode(&pod))
	if answer.code != 200 || pod.Kind != "Pod" || pod.Metadata.Name != "pod" {
		e.failf("deleting a pod: %s", answer)
	}
}

func checkPodDeletion(e *Env) {
	made := e.createPod("a")
	w := e.watchAt(e.pods() + "?watch=true&resourceVersion=" + made.version())
	e.do(request{method: http.MethodDelete, path: e.pods() + "/a?gracePeriodSeconds=0"})
	var marked event
	for marked = w.expect("MODIFIED", "a"); marked.Object.Metadata.DeletionTimestamp == nil; {
		marked = w.expect("MODIFIED", "a") // the status may have been written meanwhile
	}
	gone := w.expect("DELETED", "a")
	if !later(e, gone.Object.version(), marked.Object.version()) {
		e.failf("MODIFIED is at version %s, DELETED at %s", marked.Object.version(), gone.Object.version())
	}
	if gone.Object.Metadata.DeletionTimestamp == nil {
		e.failf("DELETED does not show the last state, which had a deletionTimestamp: %s", gone.Raw)
	}
}

func checkCollectionVersions(e *Env) {
	made := e.createSome("p", 5, "gone=true")
	w := e.watch("resourceVersion=" + made[4].version())
	answer := e.do(request{method: http.MethodDelete, path: e.configMaps() + "?labelSelector=gone%3Dtrue"})
	if answer.code != 200 {
		e.failf("deleting a collection: %s", answer)
	}
	last, names := made[4].version(), []string{}
	for range made {
		v := w.next()
		names = append(names, v.Object.Metadata.Name)
		if v.Type != "DELETED" || !later(e, v.Object.version(), last) {
			e.failf("%s follows version %s", v, last)
		}
		last = v.Object.version()
	}
	if all := strings.Join(names, " "); !containsAll(all, made) {
		e.failf("deleted were %s", all)
	}
}

func containsAll(names string, objects []object) bool {
	for _, o := range objects {
		if !strings.Contains(names, fmt.Sprint(o.Metadata.Name)) {
			return false
		}
	}
	return true
}
