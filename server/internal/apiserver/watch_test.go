package apiserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/internal/testwait"
)

const initialEnd = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

func TestWatchGrid(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) {
		c := newCluster(t, hurried)
		c.client = c.http1
		testWatchGrid(t, c)
	})
	t.Run("HTTP/2", func(t *testing.T) { testWatchGrid(t, newCluster(t, hurried)) })
}

func testWatchGrid(t *testing.T, c *cluster) {
	revs := seed(c)
	one, two, three := fmt.Sprint("ADDED one@", revs["first"]), fmt.Sprint("ADDED two@", revs["second"]), fmt.Sprint("ADDED three@", revs["third"])
	end := fmt.Sprint("BOOKMARK end@", revs["third"])
	type opened struct {
		query  string
		stream *frames
		events []string
	}
	var open []opened
	for _, tt := range []struct {
		query  string
		events []string
	}{
		{"", []string{one, two, three}},
		{"&resourceVersion=0", []string{one, two, three}},
		{"&resourceVersion=0&allowWatchBookmarks=true", []string{one, two, three, end}},
		{"&resourceVersion={first}", []string{two, three}},
		{"&resourceVersion={third}", nil},
		{initialEnd, []string{one, two, three, end}},
		{initialEnd + "&resourceVersion=0", []string{one, two, three, end}},
		{initialEnd + "&resourceVersion={second}", []string{one, two, three, end}},
		{"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", []string{one, two, three}},
		{"&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", nil},
		{"&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0", nil},
		{"&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={second}", []string{three}},
		{"&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={third}&allowWatchBookmarks=true", nil},
		{"&allowWatchBookmarks=true", []string{one, two, three, end}},
		{initialEnd + "&limit=1", []string{one, two, three, end}},
		{initialEnd + "&labelSelector=app%3Dx", []string{one, three, end}},
		{initialEnd + "&fieldSelector=spec.nodeName%3Dn2", []string{two, end}},
		{"&limit=1&continue=ignored&resourceVersion={second}", []string{three}},
		{initialEnd + "&resourceVersion={future}", []string{"ERROR 504 Timeout"}},
	} {
		open = append(open, opened{tt.query, c.watch(expand("/api/v1/pods?watch=true"+tt.query, revs)), tt.events})
	}
	for _, o := range open {
		t.Log(o.query)
		o.stream.want(o.events...)
	}
	// What comes next must be the next change: nothing more was sent.
	next := c.put(testPod("c", "next", map[string]string{"app": "x"}, "n2"))
	for _, o := range open {
		t.Log(o.query)
		if strings.Contains(o.query, "future") {
			o.stream.wantEnd()
			continue
		}
		o.stream.want(fmt.Sprint("ADDED next@", next))
	}
}

func TestWatchEndsInTimeWithABookmark(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	stream := c.watch(expand("/api/v1/pods?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={second}", revs)) //passes: the watch ends by it
	silent := c.watch(expand("/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion={third}", revs))                           //passes: the watch ends by it
	stream.want(fmt.Sprint("ADDED three@", revs["third"]), fmt.Sprint("BOOKMARK @", revs["third"]))
	stream.wantEnd()
	silent.wantEnd()
}

func TestWatchRefusals(t *testing.T) {
	c := newCluster(t)
	for _, tt := range []struct {
		path   string
		code   int
		reason metav1.StatusReason
	}{
		{"/api/v1/pods?watch=1&sendInitialEvents=true", 422, metav1.StatusReasonInvalid},
		{"/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1", 422, metav1.StatusReasonInvalid},
		{"/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", 422, metav1.StatusReasonInvalid},
		{"/api/v1/pods?watch=1&continue=x", 422, metav1.StatusReasonInvalid},
		{"/api/v1/pods?watch=1&resourceVersion=soon", 400, metav1.StatusReasonBadRequest},
		{"/api/v1/pods?watch=1&timeoutSeconds=soon", 400, metav1.StatusReasonBadRequest},
		{"/api/v1/pods?watch=1&fieldSelector=x%3Dy", 400, metav1.StatusReasonBadRequest},
		{"/api/v1/watch/namespaces/a/pods/one?fieldSelector=metadata.name%3Dtwo", 400, metav1.StatusReasonBadRequest},
	} {
		got := c.get(tt.path)
		if status := got.status(t); got.code != tt.code || status.Reason != tt.reason {
			t.Errorf("%s: %d %s, want %d %s", tt.path, got.code, status.Reason, tt.code, tt.reason)
		}
	}
	got := c.get("/api/v1/pods?watch=1", "Accept: application/yaml")
	if got.code != 406 {
		t.Errorf("a watch in YAML: %d", got.code)
	}
}

func TestWatchDeliversChanges(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	stream := c.watch(expand("/api/v1/namespaces/a/pods?watch=1&resourceVersion={third}", revs))
	added := c.put(testPod("a", "new", nil, ""))
	c.put(testPod("b", "elsewhere", nil, ""))
	changed := c.put(testPod("a", "new", nil, "n1"))
	gone := c.remove("a", "new")
	stream.want(fmt.Sprint("ADDED new@", added), fmt.Sprint("MODIFIED new@", changed), fmt.Sprint("DELETED new@", gone))
}

func TestSelectorTransitions(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	stream := c.watch(expand("/api/v1/pods?watch=1&labelSelector=app%3Dx&resourceVersion={third}", revs))
	in := c.put(testPod("a", "two", map[string]string{"app": "x"}, "n2"))
	stay := c.put(testPod("a", "two", map[string]string{"app": "x", "more": "yes"}, "n2"))
	out := c.put(testPod("a", "two", map[string]string{"app": "y"}, "other"))
	c.put(testPod("a", "two", map[string]string{"app": "z"}, "other"))
	back := c.put(testPod("a", "two", map[string]string{"app": "x"}, "n3"))
	gone := c.remove("a", "two")
	stream.want(fmt.Sprint("ADDED two@", in), fmt.Sprint("MODIFIED two@", stay))
	left := stream.next()
	if left.String() != fmt.Sprint("DELETED two@", out) {
		t.Fatalf("on leaving the view: %s, want the version of the event that did it, %d", left, out)
	}
	var pod corev1.Pod
	must(t, json.Unmarshal(left.Object, &pod))
	if pod.Labels["app"] != "x" || pod.Labels["more"] != "yes" || pod.Spec.NodeName != "n2" {
		t.Errorf("on leaving the view the content is not the previous one: %s", left.Object)
	}
	stream.want(fmt.Sprint("ADDED two@", back), fmt.Sprint("DELETED two@", gone))
}

func TestWatchOfOneObject(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	for _, path := range []string{
		"/api/v1/watch/namespaces/a/pods/one?",
		"/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Done&",
	} {
		stream := c.watch(path + "resourceVersion=0")
		stream.want(fmt.Sprint("ADDED one@", revs["first"]))
	}
	var one corev1.Pod
	c.get("/api/v1/namespaces/a/pods/one?watch=1").into(t, &one) // the path names an object
	if one.Kind != "Pod" || one.ResourceVersion != fmt.Sprint(revs["first"]) {
		t.Errorf("GET of one object with watch=1 gives %+v", one)
	}
	stream := c.watch("/api/v1/watch/pods?resourceVersion=0")
	stream.want(fmt.Sprint("ADDED one@", revs["first"]), fmt.Sprint("ADDED two@", revs["second"]), fmt.Sprint("ADDED three@", revs["third"]))
}

func TestWatchFromTheFutureIsSilent(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	stream := c.watch(fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d", revs["third"]+1))
	c.put(testPod("a", "skipped", nil, ""))
	seen := c.put(testPod("a", "seen", nil, ""))
	stream.want(fmt.Sprint("ADDED seen@", seen))
}

func TestWatchOfTheFutureWithoutInitialEventsIsSilent(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	stream := c.watch(fmt.Sprintf("/api/v1/pods?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=%d", revs["third"]+1))
	c.put(testPod("a", "skipped", nil, ""))
	seen := c.put(testPod("a", "seen", nil, ""))
	stream.want(fmt.Sprint("ADDED seen@", seen))
}

// The state of a future revision is an error in the stream. Its cause lets a
// reflector distinguish it from a slow server.
func TestInitialStateOfTheFuture(t *testing.T) {
	c := newCluster(t, hurried)
	revs := seed(c)
	c.overBoth(t, func(t *testing.T) {
		stream := c.watch(expand("/api/v1/pods?watch=1&resourceVersion={future}"+initialEnd, revs))
		e := stream.next()
		var status metav1.Status
		must(t, json.Unmarshal(e.Object, &status))
		want := fmt.Sprintf("Timeout: Too large resource version: %d, current: %d", revs["future"], revs["third"])
		d := status.Details
		if e.Type != "ERROR" || status.Kind != "Status" || status.Code != 504 || status.Message != want || d == nil ||
			len(d.Causes) != 1 || d.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge || d.RetryAfterSeconds != 1 {
			t.Errorf("got %s %s", e.Type, e.Object)
		}
		stream.wantEnd()
	})
}

func TestWatchPaths(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", "/api/v1/nodes", `{"metadata":{"name":"n1"}}`)
	c.send(201, "POST", "/api/v1/nodes", `{"metadata":{"name":"n2"}}`)
	c.send(201, "POST", "/apis/apps/v1/namespaces/default/deployments", deploymentBody)
	for path, name := range map[string]string{
		"/api/v1/watch/nodes/n2":                                                     "n2",
		"/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dn2":                     "n2",
		"/api/v1/watch/nodes?fieldSelector=metadata.name!%3Dn1":                      "n2",
		"/apis/apps/v1/watch/deployments":                                            "web",
		"/apis/apps/v1/watch/namespaces/default/deployments":                         "web",
		"/apis/apps/v1/watch/namespaces/default/deployments/web":                     "web",
		"/apis/apps/v1/deployments?watch&resourceVersion=0":                          "web",
		"/apis/apps/v1/watch/deployments?fieldSelector=metadata.namespace%3Ddefault": "web",
	} {
		var object metav1.PartialObjectMetadata
		e := c.watch(path).next()
		must(t, json.Unmarshal(e.Object, &object))
		if e.Type != "ADDED" || object.Name != name {
			t.Errorf("%s begins with %s %s, want %s", path, e.Type, object.Name, name)
		}
	}
	if got := c.get("/api/v1/nodes?fieldSelector=metadata.namespace%3Dx").status(t); got.Code != 400 || got.Message != "field label not supported: metadata.namespace" {
		t.Errorf("nodes in a namespace: %+v", got)
	}
	if got := c.get("/api/v1/watch/nodes/n2?fieldSelector=metadata.name%3Dn1").status(t); got.Code != 400 {
		t.Errorf("contradicting names: %+v", got)
	}
}

func TestMetadataWatchInProtobuf(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	resp := c.open(context.Background(), c.http2, http.MethodGet, expand("/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion={third}"+initialEnd, revs), "", //passes: the watch ends by it, when all is there
		"Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
	defer resp.Body.Close()
	types, objects := protobufEvents(t, resp.Body)
	if got := strings.Join(types[:4], " "); got != "ADDED ADDED ADDED BOOKMARK" {
		t.Fatalf("events %s", got)
	}
	var one, end metav1.PartialObjectMetadata
	must(t, one.Unmarshal(objects[0].Raw))
	must(t, end.Unmarshal(objects[3].Raw))
	if one.Name != "one" || objects[0].Kind != "PartialObjectMetadata" || objects[0].APIVersion != "meta.k8s.io/v1" {
		t.Errorf("first object: %+v", one)
	}
	if end.ResourceVersion != fmt.Sprint(revs["third"]) || end.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("bookmark: %+v", end)
	}
}

func TestWatchFromForgottenHistory(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.cache.HistoryEvents, s.cache.ExactHistory = 4, true })
	revs := seed(c)
	for i := range 20 {
		c.put(testPod("b", fmt.Sprint("more-", i), nil, ""))
	}
	must(t, c.caches[c.pods].WaitReady(context.Background()))
	c.get("/api/v1/pods") // returns when the cache has come this far
	stream := c.watch(expand("/api/v1/pods?watch=1&resourceVersion={first}", revs))
	e := stream.next()
	var status metav1.Status
	must(t, json.Unmarshal(e.Object, &status))
	if e.Type != "ERROR" || status.Code != 410 || status.Reason != metav1.StatusReasonExpired ||
		!strings.HasPrefix(status.Message, fmt.Sprintf("too old resource version: %d (", revs["first"])) {
		t.Errorf("got %s %s", e.Type, e.Object)
	}
	stream.wantEnd()
}

func TestDrainEndsWatchesCleanly(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.ShutdownTimeout = time.Hour }) // the drain does not wait for an idle watch
	revs := seed(c)
	stream := c.watch(expand("/api/v1/pods?watch=1&resourceVersion={second}", revs))
	stream.want(fmt.Sprint("ADDED three@", revs["third"]))
	c.stop()
	stream.wantEnd()
}

func TestWatchShapes(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	query := expand("/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion={first}"+strings.ReplaceAll(initialEnd, "true&resource", "false&resource"), revs) //passes: the watch ends by it, when all is there
	t.Run("table", func(t *testing.T) {
		for _, policy := range []string{"", "&includeObject=Object", "&includeObject=Metadata"} {
			stream := c.watch(query+policy, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
			for i := range 3 {
				e := stream.next()
				var table metav1.Table
				must(t, json.Unmarshal(e.Object, &table))
				if table.Kind != "Table" || (table.ColumnDefinitions != nil) != (i == 0) || len(table.Rows) != 1 {
					t.Errorf("event %d: %s %s", i, e.Type, e.Object)
				}
			}
		}
	})
	t.Run("table ends its initial events", func(t *testing.T) {
		for _, policy := range []string{"None", "Metadata", "Object"} {
			stream := c.watch("/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dno"+initialEnd+"&includeObject="+policy,
				"Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
			stream.want(fmt.Sprint("BOOKMARK end@", revs["third"]))
			stream.close()
		}
	})
	t.Run("metadata", func(t *testing.T) {
		stream := c.watch(query, "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
		e := stream.next()
		if !bytes.HasPrefix(e.Object, []byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{`)) ||
			bytes.Contains(e.Object, []byte(`"spec"`)) {
			t.Errorf("got %s", e.Object)
		}
	})
	t.Run("metadata ends its initial events", func(t *testing.T) {
		stream := c.watch("/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dno"+initialEnd,
			"Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
		stream.want(fmt.Sprint("BOOKMARK end@", revs["third"]))
	})
}

// protobufEvents reads all frames of a protobuf watch stream.
func protobufEvents(t *testing.T, body io.Reader) (types []string, objects []runtime.Unknown) {
	for {
		var size [4]byte
		_, err := io.ReadFull(body, size[:])
		if err == io.EOF {
			return types, objects
		}
		must(t, err)
		data := make([]byte, binary.BigEndian.Uint32(size[:]))
		_, err = io.ReadFull(body, data)
		must(t, err)
		var event metav1.WatchEvent
		must(t, event.Unmarshal(data))
		if !bytes.HasPrefix(event.Object.Raw, []byte("k8s\x00")) {
			t.Fatalf("the object of a frame has no envelope: %q", event.Object.Raw)
		}
		var unknown runtime.Unknown
		must(t, unknown.Unmarshal(event.Object.Raw[4:]))
		types, objects = append(types, event.Type), append(objects, unknown)
	}
}

func TestWatchInProtobuf(t *testing.T) {
	c := newCluster(t, hurried)
	revs := seed(c)
	for _, client := range []*http.Client{c.http1, c.http2} {
		resp := c.open(context.Background(), client, http.MethodGet, expand("/api/v1/pods?watch=1&timeoutSeconds=1&resourceVersion={third}"+initialEnd, revs), "", //passes: the watch ends by it, when all is there
			"Accept: application/vnd.kubernetes.protobuf")
		if got := resp.Header.Get("Content-Type"); got != "application/vnd.kubernetes.protobuf;stream=watch" {
			t.Errorf("content type %q", got)
		}
		types, objects := protobufEvents(t, resp.Body)
		resp.Body.Close()
		if got := strings.Join(types, " "); got != "ADDED ADDED ADDED BOOKMARK BOOKMARK" {
			t.Fatalf("events %s", got)
		}
		var pod, end corev1.Pod
		must(t, pod.Unmarshal(objects[1].Raw))
		must(t, end.Unmarshal(objects[3].Raw))
		if pod.Name != "two" || pod.ResourceVersion != fmt.Sprint(revs["second"]) || objects[1].Kind != "Pod" {
			t.Errorf("second object: %+v", pod.ObjectMeta)
		}
		if end.ResourceVersion != fmt.Sprint(revs["third"]) || end.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
			t.Errorf("bookmark: %+v", end.ObjectMeta)
		}
	}
	resp := c.open(context.Background(), c.http2, http.MethodGet, expand("/api/v1/pods?watch=1&resourceVersion={future}"+initialEnd, revs), "",
		"Accept: application/vnd.kubernetes.protobuf")
	defer resp.Body.Close()
	types, objects := protobufEvents(t, resp.Body)
	var status metav1.Status
	must(t, status.Unmarshal(objects[0].Raw))
	if types[0] != "ERROR" || status.Code != 504 || objects[0].Kind != "Status" {
		t.Errorf("error frame: %v %+v", types, status)
	}
}

func TestEventsAreEncodedOnce(t *testing.T) {
	const watchers = 20
	c := newCluster(t)
	at := seed(c)["third"] // not what the cache has reached, which may be less: earlier events would count
	count := func(form string) float64 { return counterValue(t, c.server.metrics.Encodes.WithLabelValues(form)) }
	for _, tt := range []struct{ accept, form string }{
		{"application/vnd.kubernetes.protobuf", "protobuf"},
		{"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "metadata"},
		{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "metadata protobuf"},
		{"application/json;as=Table;v=v1;g=meta.k8s.io", "table row"},
		{"application/json", "json"},
		{"application/cbor", "cbor"},
		{"application/cbor;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "metadata cbor"},
	} {
		t.Run(tt.form, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			path := fmt.Sprintf("/api/v1/pods?watch=1&resourceVersion=%d", at)
			const events = 3
			last := fmt.Sprint("event-", events-1, "-", strings.ReplaceAll(tt.form, " ", "-"))
			done := make(chan error, watchers)
			for range watchers {
				resp := c.open(ctx, c.http2, http.MethodGet, path, "", "Accept: "+tt.accept)
				go func() {
					defer resp.Body.Close()
					done <- readUntil(resp.Body, last)
				}()
			}
			before := count(tt.form)
			for i := range events {
				mark := fmt.Sprint("event-", i, "-", strings.ReplaceAll(tt.form, " ", "-"))
				at = c.put(testPod("a", "two", map[string]string{"mark": mark}, "n2"))
			}
			for range watchers {
				must(t, <-done)
			}
			want := float64(events)
			if tt.form == "json" {
				want = 0 // the cached bytes themselves
			}
			if got := count(tt.form) - before; got != want {
				t.Errorf("%d watchers of %d events cost %v encodes, want %v", watchers, events, got, want)
			}
		})
	}
}

// readUntil reads a stream until it has shown the text.
func readUntil(body io.Reader, text string) error {
	var seen []byte
	buf := make([]byte, 16<<10)
	for {
		n, err := body.Read(buf)
		seen = append(seen, buf[:n]...)
		if bytes.Contains(seen, []byte(text)) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the stream ended before %q: %w", text, err)
		}
	}
}

func TestStalledClientIsGivenUp(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.WriteTimeout = 200 * time.Millisecond })
	filler := testPod("a", "big", map[string]string{}, "")
	filler.Annotations = map[string]string{"fill": strings.Repeat("x", 200<<10)}
	stalled := map[string]*http.Client{"HTTP/1.1": c.http1, "HTTP/2": c.http2}
	for name, client := range stalled {
		t.Run(name, func(t *testing.T) {
			resp := c.open(t.Context(), client, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=0", "")
			defer resp.Body.Close()
			gauge := c.server.metrics.Watches.WithLabelValues("", "v1", "pods")
			testwait.Stable(t, "the watch ends of a client that reads nothing", func() (any, bool) {
				c.put(filler)
				open := gaugeValue(t, gauge)
				return open, open == 0
			})
		})
	}
}

func TestSlowWatcherDoesNotDelayOthers(t *testing.T) {
	c := newCluster(t)
	slow := c.open(t.Context(), c.http1, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=0", "")
	defer slow.Body.Close()
	fast := c.watch("/api/v1/pods?watch=1&resourceVersion=0")
	filler := testPod("a", "big", nil, "")
	filler.Annotations = map[string]string{"fill": strings.Repeat("x", 100<<10)}
	for i := range 100 {
		rev := c.put(filler)
		kind := "MODIFIED"
		if i == 0 {
			kind = "ADDED"
		}
		fast.want(fmt.Sprint(kind, " big@", rev))
	}
}
