package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var watchFormGuarantees = []Guarantee{
	{Name: "watch/json-framing", Source: sourceConcepts, check: checkJSONFraming,
		Sentence: "A watch in JSON is a sequence of documents with a type and an object of the kind."},
	{Name: "watch/protobuf-framing", Source: sourceConcepts, check: checkProtobufFraming,
		Sentence: "A watch in protobuf is a sequence of 4-byte lengths and bare WatchEvents; only the object inside has the envelope."},
	{Name: "watch/cbor-framing", Source: sourceCBOR, check: checkCBORFraming,
		Sentence: "A watch in CBOR is an application/cbor-seq."},
	{Name: "watch/table", Source: sourceTables, check: checkWatchTable,
		Sentence: "A watch as Table: one row in each event, the columns only in the first."},
	{Name: "watch/table-initial-bookmark", Source: sourceObserved, check: checkTableBookmark,
		Sentence: "As a Table, the bookmark behind the initial events keeps its annotation, in its row's object."},
	{Name: "watch/metadata", Source: sourceConcepts, check: checkWatchMetadata,
		Sentence: "A watch as metadata shows PartialObjectMetadata, also in bookmarks and for deletions."},
	{Name: "watch/not-acceptable", Source: sourceConcepts, check: checkWatchNotAcceptable,
		Sentence: "A watch in a form that does not exist is a 406, not a stream."},
}

// streamType demands the Content-Type of a watch.
func (w *watcher) streamType(want string) {
	w.env.must(compareType(w.response, want))
}

func compareType(response *http.Response, want string) error {
	got, gotParams, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type %q: %w", response.Header.Get("Content-Type"), err)
	}
	wanted, wantParams, err := mime.ParseMediaType(want)
	if err != nil {
		return err
	}
	if got != wanted || gotParams["stream"] != wantParams["stream"] {
		return fmt.Errorf("the Content-Type is %q, not %q", response.Header.Get("Content-Type"), want)
	}
	return nil
}

func checkJSONFraming(e *Env) {
	at := e.create("a").version()
	w := e.watch("resourceVersion=" + at)
	w.streamType("application/json")
	e.update("a", "2")
	v := w.expect("MODIFIED", "a")
	if v.Object.Kind != "ConfigMap" || v.Object.APIVersion != "v1" || v.Object.Data["content"] != "2" {
		e.failf("the object is %s", v.Raw)
	}
}

// stream opens a watch in some form and returns its bytes.
func (e *Env) stream(path, accept, contentType string) io.ReadCloser {
	ctx, cancel := context.WithTimeout(e.ctx, timeoutOf(path)+e.limit())
	response, err := e.open(ctx, request{path: path, headers: []string{"Accept: " + accept}})
	if err != nil {
		cancel()
		e.must(err)
	}
	response.Body = &streamBody{response.Body, cancel}
	if response.StatusCode == http.StatusNotAcceptable {
		response.Body.Close()
		e.skipf("the server does not stream %s (406)", accept)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		e.failf("a watch in %s: %s", accept, response.Status)
	}
	if err := compareType(response, contentType); err != nil {
		response.Body.Close()
		e.failf("a watch in %s: %v", accept, err)
	}
	return response.Body
}

// longestFrame is more than any event of a check has.
const longestFrame = 1 << 20

func readFrame(r io.Reader) (*metav1.WatchEvent, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 || n > longestFrame {
		return nil, fmt.Errorf("the frame says that it has %d bytes", n)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(frame, envelopePrefix) {
		return nil, fmt.Errorf("the WatchEvent itself is in an envelope")
	}
	v := new(metav1.WatchEvent)
	return v, v.Unmarshal(frame)
}

func checkProtobufFraming(e *Env) {
	at := e.create("a").version()
	within := e.briefly()
	body := e.stream(e.configMaps()+"?watch=true&"+e.brief(at), protobuf+";stream=watch", protobuf+";stream=watch")
	defer body.Close()
	for _, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
		switch kind {
		case "ADDED":
			e.create("b")
		case "MODIFIED":
			e.update("b", "2")
		default:
			e.delete("b")
		}
		v, err := readFrame(body)
		e.arrived(err, within)
		var inside corev1.ConfigMap
		as, err := openEnvelope(v.Object.Raw, &inside)
		e.must(err)
		if v.Type != kind || as != "ConfigMap" || inside.Name != "b" {
			e.failf("the event is %s of %s %s, not %s of ConfigMap b", v.Type, as, inside.Name, kind)
		}
	}
}

func checkCBORFraming(e *Env) {
	at := e.create("a").version()
	within := e.briefly()
	body := e.stream(e.configMaps()+"?watch=true&"+e.brief(at), "application/cbor-seq", "application/cbor-seq")
	defer body.Close()
	e.update("a", "2")
	first := make([]byte, 4)
	_, err := io.ReadFull(body, first)
	e.arrived(err, within)
	if major := bytes.TrimPrefix(first, cborTag)[0] >> 5; major != 5 {
		e.failf("the first event begins with % x, which is no map", first)
	}
}

// tableEvent reads the Table in an event.
func (w *watcher) tableEvent(kind string) *table {
	v := w.next()
	t := new(table)
	w.env.must(json.Unmarshal(v.Raw, t))
	if v.Type != kind || t.Kind != "Table" || len(t.Rows) != 1 {
		w.env.failf("the event is %s with %s", v.Type, excerpt(v.Raw))
	}
	return t
}

func checkWatchTable(e *Env) {
	at := e.create("a").version()
	w := e.watchAt(e.configMaps()+"?watch=true&resourceVersion="+at, "Accept: "+asTable)
	e.update("a", "2")
	e.delete("a")
	first, second := w.tableEvent("MODIFIED"), w.tableEvent("DELETED")
	for _, t := range []*table{first, second} {
		carried, err := t.row(0, "a")
		e.must(err)
		if carried.Kind != "PartialObjectMetadata" || carried.Metadata.Name != "a" {
			e.failf("the row carries %s", t.Rows[0].Object)
		}
	}
	if len(first.Columns) == 0 || len(second.Columns) != 0 {
		e.failf("the first event has %d columns, the second %d", len(first.Columns), len(second.Columns))
	}
}

func checkTableBookmark(e *Env) {
	count := len(e.list("").Items) + 1
	e.create("a")
	w := e.watchAt(e.configMaps()+"?watch=true&"+streaming, "Accept: "+asTable)
	for range count {
		w.tableEvent("ADDED")
	}
	t := w.tableEvent("BOOKMARK")
	var carried object
	e.must(json.Unmarshal(t.Rows[0].Object, &carried))
	if carried.Metadata.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		e.failf("the bookmark's row carries %s", t.Rows[0].Object)
	}
	_, err := parseVersion(carried.version())
	e.must(err)
}

func checkWatchMetadata(e *Env) {
	e.create("a")
	w := e.watchAt(e.configMaps()+"?watch=true&"+streaming, "Accept: application/json;"+asMetadata)
	added, bookmark := w.initial()
	e.delete("a")
	for _, v := range append(added, bookmark, w.expect("DELETED", "a")) {
		if v.Object.Kind != "PartialObjectMetadata" || v.Object.APIVersion != "meta.k8s.io/v1" || v.Object.Data != nil {
			e.failf("%s carries %s", v, excerpt(v.Raw))
		}
	}
}

func checkWatchNotAcceptable(e *Env) {
	at := e.create("a").version()
	for _, accept := range []string{"application/*", "application/xml", "application/yaml;stream=poem"} {
		answer := e.get(e.configMaps()+"?watch=true&timeoutSeconds=1&resourceVersion="+at, "Accept: "+accept)
		if answer.code != http.StatusNotAcceptable {
			e.failf("Accept: %s: %s", accept, answer)
		}
	}
}
