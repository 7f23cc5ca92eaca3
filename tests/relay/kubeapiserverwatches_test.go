package relay

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
)

// watchForms are how watches are asked for.
var watchForms = []string{
	"application/json",
	"application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
	"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
	"application/vnd.kubernetes.protobuf;stream=watch,application/vnd.kubernetes.protobuf,application/json",
	"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
	"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io",
	"application/vnd.kubernetes.protobuf",
}

// watchStart is where a watch begins.
type watchStart struct {
	query   string
	initial int // frames, before the first change
}

// watchStarts returns where watches of a collection with the two objects before-1 and before-2 begin.
func watchStarts(version string) []watchStart {
	from := "resourceVersion=" + version
	return []watchStart{
		{from, 0},
		{from + "&includeObject=Object", 0},
		{from + "&includeObject=None", 0},
		{from + "&labelSelector=color%3Dred", 0},
		{from + "&fieldSelector=metadata.name%3Dbefore-1", 0},
		{"resourceVersion=0", 2},
		{"", 2},
		{"sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 3},
		{"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=" + version, 3},
		{"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=color%3Dred", 2},
	}
}

// watchedKind is a resource with its objects.
type watchedKind struct {
	path string // of the collection in the namespace
	body string // of an object, without its metadata
}

const watchesNamespace = "watches"

var watchedKinds = []watchedKind{
	{"/api/v1/namespaces/watches/configmaps", `"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"}`},
	{"/api/v1/namespaces/watches/pods", `"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","image":"registry.example/c:1"}]}`},
	{"/api/v1/namespaces/watches/events", `"apiVersion":"v1","kind":"Event","involvedObject":{"namespace":"watches","name":"p","kind":"Pod"},"reason":"Tried","message":"m","type":"Normal"`},
	{"/apis/apps/v1/namespaces/watches/deployments", `"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`},
	{"/apis/coordination.k8s.io/v1/namespaces/watches/leases", `"apiVersion":"coordination.k8s.io/v1","kind":"Lease","spec":{"holderIdentity":"me"}`},
	{"/apis/example.com/v1/namespaces/watches/widgets", `"apiVersion":"example.com/v1","kind":"Widget","spec":{"color":"red"}`},
}

// compareWatches has everything watched in each form, from each start, at kube-apiserver and through one relay and three:
// the events are the same, and their versions, and there are bookmarks where kube-apiserver sends some.
func compareWatches(t *testing.T, direct, one, three front) {
	newNamespace(t, direct, watchesNamespace)
	admin := direct.Client(client.Options{})
	versions := map[string]string{}
	for _, k := range watchedKinds {
		write(t, admin, http.MethodPost, k.path, fmt.Sprintf(`{"metadata":{"name":"before-1","labels":{"color":"red"}},%s}`, k.body))
		versions[k.path] = write(t, admin, http.MethodPost, k.path, fmt.Sprintf(`{"metadata":{"name":"before-2"},%s}`, k.body))
	}
	servers := []front{direct, one, three}
	var clients []*client.Client
	for _, s := range servers {
		clients = append(clients, s.Client(client.Options{Retry: client.RetryOptions{Max: -1}}))
	}
	type asked struct {
		path, accept string
		seen         []*seenWatch // by server
	}
	var all []asked
	var begun, ended sync.WaitGroup
	for _, k := range watchedKinds {
		for _, start := range watchStarts(versions[k.path]) {
			for _, accept := range watchForms {
				path := k.path + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=20&" + start.query //passes: the watch ends by it
				a := asked{path: path, accept: accept}
				for _, c := range clients {
					s := &seenWatch{}
					a.seen = append(a.seen, s)
					begun.Add(1)
					ended.Go(func() { s.read(t, c, path, accept, start.initial, sync.OnceFunc(begun.Done)) })
				}
				all = append(all, a)
			}
		}
	}
	begun.Wait()
	for _, k := range watchedKinds {
		write(t, admin, http.MethodPost, k.path, fmt.Sprintf(`{"metadata":{"name":"made","labels":{"color":"red"}},%s}`, k.body))
		write(t, admin, http.MethodPatch, k.path+"/before-1", `{"metadata":{"labels":{"color":"blue"}}}`)
		write(t, admin, http.MethodPatch, k.path+"/before-2", `{"metadata":{"labels":{"color":"red"}}}`)
		write(t, admin, http.MethodDelete, k.path+"/made", `{"gracePeriodSeconds":0}`)
	}
	ended.Wait()
	for _, a := range all {
		want := a.seen[0]
		for i, got := range a.seen[1:] {
			if strings.Contains(a.path, "/events?") { // kube-apiserver has no watch cache of Events, and sends no bookmarks but the first
				maps.DeleteFunc(got.shapes, func(shape string, _ bool) bool { return !want.shapes[shape] && strings.HasSuffix(shape, ",null]") })
			}
			if got.summary != want.summary || !reflect.DeepEqual(got.columns, want.columns) || !slices.Equal(got.events, want.events) || !slices.Equal(got.bookmarks(), want.bookmarks()) {
				t.Errorf("%s as %s, through %s:%s", a.path, a.accept, []string{"one relay", "three"}[i], got.unlike(want))
			}
		}
	}
	t.Logf("%d watches at each of three servers", len(all))
}

// write makes a request that has to succeed, and returns the version of the object.
func write(t *testing.T, c *client.Client, method, path, body string) string {
	t.Helper()
	contentType := "application/json"
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
	}
	response, err := c.Raw(t.Context(), client.RawRequest{Method: method, Path: path, Body: []byte(body), Header: http.Header{"Content-Type": {contentType}, "Accept": {"application/json"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var o metav1.PartialObjectMetadata
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %s %v\n%s", method, path, response.Status, err, text)
	}
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o.ResourceVersion
}

// seenWatch is what a watch has brought.
type seenWatch struct {
	summary string // how it was answered
	events  []string
	shapes  map[string]bool // of bookmarks
	columns []any           // of its first Table
}

func (s *seenWatch) bookmarks() []string { return slices.Sorted(maps.Keys(s.shapes)) }

// read reads a watch until its end. It calls begun when it has the frames with which it begins.
func (s *seenWatch) read(t *testing.T, c *client.Client, path, accept string, initial int, begun func()) {
	defer begun()
	response, err := c.Raw(t.Context(), client.RawRequest{Path: path, Header: http.Header{"Accept": {accept}}})
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	s.summary = response.Status + " " + response.Header.Get("Content-Type")
	s.shapes = map[string]bool{}
	if response.StatusCode != http.StatusOK {
		return // the summary says enough
	}
	next := jsonFrames(response.Body)
	switch kind := response.Header.Get("Content-Type"); {
	case strings.Contains(kind, "protobuf"):
		next = protobufFrames(response.Body)
	case !strings.Contains(kind, "json"):
		return // nothing here reads that
	}
	for n := 0; ; n++ {
		if n == initial {
			begun()
		}
		eventType, object, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.events = append(s.events, err.Error())
			}
			return
		}
		s.note(eventType, object)
	}
}

// unlike says what differs.
func (s *seenWatch) unlike(want *seenWatch) string {
	var b strings.Builder
	if s.summary != want.summary || !reflect.DeepEqual(s.columns, want.columns) {
		fmt.Fprintf(&b, "\n     %s %s\nwant %s %s", s.summary, text(s.columns), want.summary, text(want.columns))
	}
	for i := range max(len(s.events), len(want.events)) {
		got, wanted := "nothing", "nothing"
		if i < len(s.events) {
			got = s.events[i]
		}
		if i < len(want.events) {
			wanted = want.events[i]
		}
		if got != wanted {
			fmt.Fprintf(&b, "\n     %s\nwant %s", got, wanted)
		}
	}
	if got, wanted := s.bookmarks(), want.bookmarks(); !slices.Equal(got, wanted) {
		fmt.Fprintf(&b, "\n     bookmarks %q\nwant %q", got, wanted)
	}
	return b.String()
}

// note notes an event, without what depends on when it was sent.
func (s *seenWatch) note(eventType string, object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	if eventType == string(apiwatch.Bookmark) {
		// What kube-apiserver shows of the empty object of a built-in kind says nothing.
		s.shapes[text([]any{object["apiVersion"], object["kind"], metadata["annotations"]})] = true
	}
	if object["kind"] == "Table" {
		s.dropAges(object)
	}
	if eventType == string(apiwatch.Bookmark) {
		return
	}
	s.events = append(s.events, eventType+" "+text(object))
}

// dropAges empties the cells of a Table that depend on when it was made, and removes the columns if they are those of the watch's first
// Table: kube-apiserver repeats them in an event that it has encoded for another watch, whose first it was.
func (s *seenWatch) dropAges(object map[string]any) {
	columns, _ := object["columnDefinitions"].([]any)
	if s.columns == nil {
		s.columns = columns
	}
	if len(columns) == 0 || reflect.DeepEqual(columns, s.columns) {
		delete(object, "columnDefinitions")
	}
	rows, _ := object["rows"].([]any)
	for _, row := range rows {
		fields, _ := row.(map[string]any)
		cells, _ := fields["cells"].([]any)
		for i := range cells {
			if i >= len(s.columns) {
				break
			}
			if column, _ := s.columns[i].(map[string]any); slices.Contains(ages, fmt.Sprint(column["name"])) {
				cells[i] = nil
			}
		}
	}
}

// jsonFrames returns what reads the events of a JSON watch.
func jsonFrames(body io.Reader) func() (eventType string, object map[string]any, err error) {
	decoder := json.NewDecoder(body)
	return func() (string, map[string]any, error) {
		var event struct {
			Type   string
			Object map[string]any
		}
		err := decoder.Decode(&event)
		return event.Type, event.Object, err
	}
}

// protobufFrames is jsonFrames for protobuf.
func protobufFrames(body io.Reader) func() (eventType string, object map[string]any, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // the types do not fit together
		}
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	from := bufio.NewReader(body)
	return func() (string, map[string]any, error) {
		var length uint32
		if err := binary.Read(from, binary.BigEndian, &length); err != nil {
			return "", nil, err
		}
		frame := make([]byte, length)
		if _, err := io.ReadFull(from, frame); err != nil {
			return "", nil, err
		}
		var event metav1.WatchEvent
		if err := event.Unmarshal(frame); err != nil {
			return "", nil, fmt.Errorf("frame %q: %w", frame, err)
		}
		object, kind, err := decoder.Decode(event.Object.Raw, nil, nil)
		if err != nil {
			return "", nil, fmt.Errorf("object %q: %w", event.Object.Raw, err)
		}
		object.GetObjectKind().SetGroupVersionKind(*kind)
		encoded, err := json.Marshal(object)
		if err != nil {
			return "", nil, err
		}
		var fields map[string]any
		err = json.Unmarshal(encoded, &fields)
		return event.Type, fields, err
	}
}
