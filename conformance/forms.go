package conformance

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var formGuarantees = []Guarantee{
	{Name: "form/not-acceptable", Source: sourceConcepts, check: checkNotAcceptable,
		Sentence: "An Accept that cannot be met is a 406; application/* is one of those."},
	{Name: "form/protobuf", Source: sourceConcepts, check: checkProtobuf,
		Sentence: "Objects and lists come as protobuf, in an envelope that begins with k8s and a zero byte."},
	{Name: "form/yaml", Source: sourceConcepts, check: checkYAML,
		Sentence: "Objects come as YAML."},
	{Name: "form/cbor", Source: sourceCBOR, check: checkCBOR,
		Sentence: "Objects come as CBOR, tagged as such."},
	{Name: "form/table", Source: sourceTables, check: checkTable,
		Sentence: "An object and a list come as a Table with columns, and rows with cells."},
	{Name: "form/table-include", Source: sourceTables, check: checkTableInclude,
		Sentence: "includeObject says what a row carries: None, Metadata (the default) or Object; anything else is a 400."},
	{Name: "form/metadata", Source: sourceConcepts, check: checkMetadata,
		Sentence: "An object and a list come as metadata only."},
	{Name: "form/metadata-protobuf", Source: sourceConcepts, check: checkMetadataProtobuf,
		Sentence: "Metadata only comes as protobuf, too."},
	{Name: "form/gzip", Source: sourceObserved, check: checkGzip,
		Sentence: "Answers of more than 128 KiB are compressed for clients that accept gzip, others never."},
}

const (
	protobuf       = "application/vnd.kubernetes.protobuf"
	asTable        = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asMetadata     = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asMetadataList = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// form gets a path in a form, which has to be possible.
func (e *Env) form(path, accept string) *answer {
	answer := e.get(path, "Accept: "+accept)
	if answer.code != http.StatusOK {
		e.failf("%s as %s: %s", path, accept, answer)
	}
	wanted, _, _ := strings.Cut(accept, ";")
	if got := answer.header.Get("Content-Type"); !strings.HasPrefix(got, wanted) {
		e.failf("%s as %s has the Content-Type %q", path, accept, got)
	}
	return answer
}

func checkNotAcceptable(e *Env) {
	e.create("a")
	for _, accept := range []string{"application/*", "application/xml", "text/html", "application/json;as=Poem;v=v1;g=meta.k8s.io"} {
		for _, path := range []string{e.configMaps(), e.configMaps() + "/a"} {
			if answer := e.get(path, "Accept: "+accept); answer.code != http.StatusNotAcceptable {
				e.failf("Accept: %s: %s", accept, answer)
			}
		}
	}
	if answer := e.get(e.configMaps(), "Accept: application/xml, */*;q=0.1"); answer.code != 200 {
		e.failf("an alternative that can be met was not taken: %s", answer)
	}
}

var envelopePrefix = []byte("k8s\x00")

type message interface{ Unmarshal([]byte) error }

// openEnvelope takes a protobuf message out of its envelope and decodes it.
func openEnvelope(data []byte, into message) (kind string, err error) {
	inside, ok := bytes.CutPrefix(data, envelopePrefix)
	if !ok {
		return "", fmt.Errorf("no envelope: %q", data[:min(len(data), 16)])
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(inside); err != nil {
		return "", err
	}
	return unknown.Kind, into.Unmarshal(unknown.Raw)
}

func checkProtobuf(e *Env) {
	made := e.create("a")
	var one corev1.ConfigMap
	kind, err := openEnvelope(e.form(e.configMaps()+"/a", protobuf).body, &one)
	e.must(err)
	if kind != "ConfigMap" || one.ResourceVersion != made.version() || one.Data["content"] != "1" {
		e.failf("the object is a %s, %s at %s with %v", kind, one.Name, one.ResourceVersion, one.Data)
	}
	var all corev1.ConfigMapList
	kind, err = openEnvelope(e.form(e.configMaps(), protobuf).body, &all)
	e.must(err)
	if want := e.list(""); kind != "ConfigMapList" || len(all.Items) != len(want.Items) || all.Items[0].UID != want.Items[0].Metadata.UID {
		e.failf("the list is a %s of %d", kind, len(all.Items))
	}
}

func checkYAML(e *Env) {
	made := e.create("a")
	body := string(e.form(e.configMaps()+"/a", "application/yaml").body)
	for _, line := range []string{"kind: ConfigMap", "apiVersion: v1", "resourceVersion: \"" + made.version() + "\""} {
		if !strings.Contains(body, line) {
			e.failf("no line %q in %s", line, body)
		}
	}
}

// needCBOR skips the check where the server has no CBOR, which is an option
// of kube-apiserver that is off by default.
func (e *Env) needCBOR(path string) *answer {
	answer := e.get(path, "Accept: application/cbor")
	if answer.code == http.StatusNotAcceptable {
		e.skipf("the server does not speak CBOR (406)")
	}
	return answer
}

// cborTag is the three bytes that say "this is CBOR" (RFC 8949, 3.4.6).
var cborTag = []byte{0xd9, 0xd9, 0xf7}

func checkCBOR(e *Env) {
	e.create("a")
	for _, path := range []string{e.configMaps() + "/a", e.configMaps()} {
		answer := e.needCBOR(path)
		if answer.code != 200 || answer.header.Get("Content-Type") != "application/cbor" || !bytes.HasPrefix(answer.body, cborTag) {
			e.failf("%s as CBOR: %d, %s, begins with % x", path, answer.code, answer.header.Get("Content-Type"), answer.body[:min(8, len(answer.body))])
		}
	}
}

// table is a Table whose rows' objects are still as they were sent.
type table struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ListMeta                `json:"metadata"`
	Columns         []metav1.TableColumnDefinition `json:"columnDefinitions"`
	Rows            []struct {
		Cells  []any           `json:"cells"`
		Object json.RawMessage `json:"object"`
	} `json:"rows"`
}

// row demands that row i is about a named object, and returns that object.
func (t *table) row(i int, name string) (object, error) {
	var carried object
	if t.Kind != "Table" || t.APIVersion != "meta.k8s.io/v1" || len(t.Rows) <= i {
		return carried, fmt.Errorf("a %s of %s with %d rows", t.Kind, t.APIVersion, len(t.Rows))
	}
	if cells := t.Rows[i].Cells; len(cells) == 0 || cells[0] != name {
		return carried, fmt.Errorf("the first cell of %v is not %s", cells, name)
	}
	if len(t.Rows[i].Object) == 0 || string(t.Rows[i].Object) == "null" {
		return carried, nil
	}
	err := json.Unmarshal(t.Rows[i].Object, &carried)
	return carried, err
}

func (e *Env) table(path string) *table {
	t := new(table)
	e.must(e.form(path, asTable).decode(t))
	return t
}

func checkTable(e *Env) {
	made := e.create("a")
	t := e.table(e.configMaps() + "/a")
	carried, err := t.row(0, "a")
	e.must(err)
	if len(t.Columns) != len(t.Rows[0].Cells) || t.Columns[0].Name != "Name" || t.Columns[0].Format != "name" {
		e.failf("the columns are %+v, the cells %v", t.Columns, t.Rows[0].Cells)
	}
	if carried.Metadata.UID != made.Metadata.UID || t.Metadata.ResourceVersion != made.version() {
		e.failf("the row carries %s, the table is at version %q", carried.Metadata.UID, t.Metadata.ResourceVersion)
	}
	e.create("b")
	t = e.table(e.configMaps())
	for i, name := range e.list("").names() {
		_, err := t.row(i, name)
		e.must(err)
	}
	if _, err := parseVersion(t.Metadata.ResourceVersion); err != nil {
		e.failf("the table of a list: %v", err)
	}
}

func checkTableInclude(e *Env) {
	e.create("a")
	for _, row := range []struct{ query, kind string }{
		{"", "PartialObjectMetadata"},
		{"?includeObject=Metadata", "PartialObjectMetadata"},
		{"?includeObject=Object", "ConfigMap"},
		{"?includeObject=None", ""},
	} {
		carried, err := e.table(e.configMaps()+row.query).row(0, "a")
		e.must(err)
		if carried.Kind != row.kind {
			e.failf("a row of %q carries a %q, not a %q", row.query, carried.Kind, row.kind)
		}
	}
	answer := e.get(e.configMaps()+"?includeObject=Everything", "Accept: "+asTable)
	if answer.code != http.StatusBadRequest {
		e.failf("includeObject=Everything: %s", answer)
	}
}

func checkMetadata(e *Env) {
	made := e.create("a", "color=red")
	var one object
	e.must(e.form(e.configMaps()+"/a", "application/json;"+asMetadata).decode(&one))
	if one.Kind != "PartialObjectMetadata" || one.APIVersion != "meta.k8s.io/v1" || one.version() != made.version() ||
		one.Metadata.Labels["color"] != "red" || one.Data != nil {
		e.failf("the object's metadata is %+v", one)
	}
	var all list
	e.must(e.form(e.configMaps(), "application/json;"+asMetadataList).decode(&all))
	item := all.find("a")
	if all.Kind != "PartialObjectMetadataList" || item == nil || item.Metadata.UID != made.Metadata.UID || item.Data != nil {
		e.failf("the list of metadata is a %s with %v", all.Kind, all.names())
	}
	if _, err := parseVersion(all.Metadata.ResourceVersion); err != nil {
		e.failf("the list of metadata: %v", err)
	}
}

func checkMetadataProtobuf(e *Env) {
	made := e.create("a")
	var one metav1.PartialObjectMetadata
	kind, err := openEnvelope(e.form(e.configMaps()+"/a", protobuf+";"+asMetadata).body, &one)
	e.must(err)
	if kind != "PartialObjectMetadata" || one.ResourceVersion != made.version() {
		e.failf("the object's metadata is a %s of %s at %s", kind, one.Name, one.ResourceVersion)
	}
	var all metav1.PartialObjectMetadataList
	kind, err = openEnvelope(e.form(e.configMaps(), protobuf+";"+asMetadataList).body, &all)
	e.must(err)
	if kind != "PartialObjectMetadataList" || len(all.Items) != len(e.list("").Items) {
		e.failf("the list of metadata is a %s of %d", kind, len(all.Items))
	}
}

// compressedFrom is the size of answers from which on servers compress.
const compressedFrom = 128 << 10

func checkGzip(e *Env) {
	large := configMap("large", strings.Repeat("All work and no play makes a dull list. ", compressedFrom/32))
	_, err := e.post(e.ctx, e.configMaps(), "large", large)
	e.must(err)
	e.create("small")
	for _, path := range []string{e.configMaps() + "/large", e.configMaps() + "?fieldSelector=metadata.name%3Dlarge"} {
		packed := e.get(path, "Accept-Encoding: gzip")
		if packed.header.Get("Content-Encoding") != "gzip" {
			e.failf("%s: Content-Encoding is %q for %d bytes", path, packed.header.Get("Content-Encoding"), len(packed.body))
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed.body))
		e.must(err)
		unpacked, err := io.ReadAll(io.LimitReader(reader, longestAnswer))
		e.must(err)
		plain := e.get(path)
		if encoding := plain.header.Get("Content-Encoding"); encoding != "" {
			e.failf("%s: a client that accepts nothing got %s", path, encoding)
		}
		if path == e.configMaps()+"/large" && !bytes.Equal(bytes.TrimSpace(unpacked), bytes.TrimSpace(plain.body)) {
			e.failf("%s: unpacked are %d bytes, plain are %d", path, len(unpacked), len(plain.body))
		}
	}
	if small := e.get(e.configMaps()+"/small", "Accept-Encoding: gzip"); small.header.Get("Content-Encoding") != "" {
		e.failf("an answer of %d bytes was compressed", len(small.body))
	}
}
