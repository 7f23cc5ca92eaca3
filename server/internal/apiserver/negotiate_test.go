package apiserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server/internal/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	tableType    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	metaListType = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	protobufType = "application/vnd.kubernetes.protobuf"
)

func TestNegotiate(t *testing.T) {
	for _, tt := range []struct {
		accept string
		offer  forms
		want   accepted
		fails  bool
	}{
		{"", objectForm, accepted{}, false},
		{"*/*", objectForm, accepted{}, false},
		{"application/*", objectForm, accepted{}, true},
		{"application/json", objectForm, accepted{}, false},
		{"application/json;pretty=1", objectForm, accepted{pretty: true}, false},
		{"application/yaml", objectForm, accepted{media: mediaYAML}, false},
		{"text/html, application/json;q=0.5", objectForm, accepted{}, false},
		{"application/json;q=0.5, " + protobufType, objectForm, accepted{media: mediaProtobuf}, false},
		{"application/json, " + protobufType, objectForm, accepted{}, false},
		{"application/json;q=0", objectForm, accepted{}, true},
		{"application/json;q=2", objectForm, accepted{}, true},
		{protobufType + ",application/json", forms{media: anyForm.media, custom: true}, accepted{}, false},
		{protobufType, forms{media: anyForm.media, custom: true}, accepted{}, true},
		{tableType + ",application/json", listForm, accepted{as: asTable, version: "v1"}, false},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", listForm, accepted{as: asTable, version: "v1beta1"}, false},
		{"application/json;as=Table;v=v7;g=meta.k8s.io", listForm, accepted{}, true},
		{"application/json;as=Table;v=v1;g=other", listForm, accepted{}, true},
		{protobufType + ";as=Table;v=v1;g=meta.k8s.io," + tableType, listForm, accepted{as: asTable, version: "v1"}, false},
		{metaListType, listForm, accepted{as: asMetadata, version: "v1"}, false},
		{metaListType, objectForm, accepted{}, true},
		{"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", listForm, accepted{}, true},
		{"application/json;stream=watch", streamForm, accepted{}, false},
		{"application/json;stream=watch", objectForm, accepted{}, true},
		{"application/yaml", streamForm, accepted{}, true},
		{"application/cbor", objectForm, accepted{media: mediaCBOR}, false},
		{"application/cbor", streamForm, accepted{media: mediaCBOR}, false},
		{"application/cbor-seq", streamForm, accepted{media: mediaCBOR}, false},
		{"application/cbor-seq", listForm, accepted{}, true},
		{"application/msgpack", objectForm, accepted{}, true},
		{";;;,,,=", objectForm, accepted{}, true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", tt.accept)
		got, err := negotiate(r, tt.offer)
		if (err != nil) != tt.fails || got != tt.want {
			t.Errorf("Accept %q: got %+v, %v", tt.accept, got, err)
		}
		if err != nil && status.Of(err).Code != 406 {
			t.Errorf("Accept %q: %v is no 406", tt.accept, err)
		}
	}
}

// Every form of a list and of an object says the same, over both protocols.
func TestForms(t *testing.T) {
	c := newCluster(t)
	revs := seed(c)
	list, one := "/api/v1/pods", "/api/v1/namespaces/a/pods/one"
	version := fmt.Sprint(revs["third"])
	for _, tt := range []struct {
		path, accept, contentType string
		check                     func(t *testing.T, body []byte)
	}{
		{list, "application/json", "application/json", func(t *testing.T, body []byte) { checkPods(t, body, version) }},
		{list + "?pretty=true", "", "application/json", func(t *testing.T, body []byte) {
			var want bytes.Buffer
			must(t, json.Indent(&want, []byte(compact(t, body)), "", "  "))
			if got := string(body); got != want.String() {
				t.Errorf("not indented as json.Indent does it:\n%s", got)
			}
			checkPods(t, body, version)
		}},
		{list, "application/yaml", "application/yaml", func(t *testing.T, body []byte) {
			data, err := yaml.YAMLToJSON(body)
			must(t, err)
			checkPods(t, data, version)
		}},
		{"/api/v1/namespaces/none/pods", "application/yaml", "application/yaml", func(t *testing.T, body []byte) {
			if !strings.HasSuffix(string(body), "items: []\n") {
				t.Errorf("empty list is %s", body)
			}
		}},
		{list, protobufType, protobufType, func(t *testing.T, body []byte) {
			var pods corev1.PodList
			must(t, pods.Unmarshal(unwrap(t, body, "v1", "PodList")))
			if names(pods) != "a/one a/two b/three" || pods.ResourceVersion != version {
				t.Errorf("got %v at %s", names(pods), pods.ResourceVersion)
			}
		}},
		{list, metaListType, "application/json", checkMetadata},
		{list, protobufType + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", protobufType, func(t *testing.T, body []byte) {
			var metas metav1.PartialObjectMetadataList
			must(t, metas.Unmarshal(unwrap(t, body, "meta.k8s.io/v1", "PartialObjectMetadataList")))
			if len(metas.Items) != 3 || metas.Items[2].Name != "three" {
				t.Errorf("got %+v", metas)
			}
		}},
		{list, tableType, "application/json", func(t *testing.T, body []byte) { checkTable(t, body, 3, "PartialObjectMetadata") }},
		{list + "?includeObject=Object", tableType, "application/json", func(t *testing.T, body []byte) { checkTable(t, body, 3, "Pod") }},
		{list + "?includeObject=None", tableType, "application/json", func(t *testing.T, body []byte) { checkTable(t, body, 3, "") }},
		{one, tableType, "application/json", func(t *testing.T, body []byte) { checkTable(t, body, 1, "PartialObjectMetadata") }},
		{one, protobufType, protobufType, func(t *testing.T, body []byte) {
			var pod corev1.Pod
			must(t, pod.Unmarshal(unwrap(t, body, "v1", "Pod")))
			if pod.Name != "one" || pod.Spec.NodeName != "n1" {
				t.Errorf("got %+v", pod)
			}
		}},
		{one, "application/yaml", "application/yaml", func(t *testing.T, body []byte) {
			var pod corev1.Pod
			must(t, yaml.Unmarshal(body, &pod))
			if pod.Name != "one" || pod.Kind != "Pod" {
				t.Errorf("got %s", body)
			}
		}},
		{one, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json", func(t *testing.T, body []byte) {
			if !bytes.HasPrefix(body, []byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"`)) {
				t.Errorf("got %s", body)
			}
		}},
	} {
		for _, client := range []*http.Client{c.http1, c.http2} {
			resp := c.open(t.Context(), client, http.MethodGet, tt.path, "", "Accept: "+tt.accept)
			body, err := io.ReadAll(resp.Body)
			must(t, err)
			resp.Body.Close()
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != tt.contentType {
				t.Errorf("%s as %s: %d, %s", tt.path, tt.accept, resp.StatusCode, resp.Header.Get("Content-Type"))
				continue
			}
			tt.check(t, body)
		}
	}
	if got := c.get(list+"?includeObject=Some", "Accept: "+tableType); got.code != 400 {
		t.Errorf("unknown includeObject: %d", got.code)
	}
}

func checkPods(t *testing.T, body []byte, version string) {
	t.Helper()
	list := reply{body: body}.podList(t)
	if names(list) != "a/one a/two b/three" || list.ResourceVersion != version {
		t.Errorf("got %s at %s", names(list), list.ResourceVersion)
	}
}

func checkMetadata(t *testing.T, body []byte) {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	must(t, json.Unmarshal(body, &list))
	if list.Kind != "PartialObjectMetadataList" || len(list.Items) != 3 || list.Items[1].Name != "two" ||
		list.Items[1].Kind != "PartialObjectMetadata" || bytes.Contains(body, []byte(`"spec"`)) {
		t.Errorf("got %s", body)
	}
}

func checkTable(t *testing.T, body []byte, rows int, kind string) {
	t.Helper()
	var table metav1.Table
	must(t, json.Unmarshal(body, &table))
	if table.Kind != "Table" || len(table.Rows) != rows || len(table.ColumnDefinitions) == 0 || table.ResourceVersion == "" {
		t.Fatalf("got %s", body)
	}
	for _, row := range table.Rows {
		var object metav1.TypeMeta
		if kind != "" {
			must(t, json.Unmarshal(row.Object.Raw, &object))
		}
		if len(row.Cells) != len(table.ColumnDefinitions) || object.Kind != kind {
			t.Errorf("row has %d cells for %d columns, and a %q", len(row.Cells), len(table.ColumnDefinitions), object.Kind)
		}
	}
}

func unwrap(t *testing.T, body []byte, apiVersion, kind string) []byte {
	t.Helper()
	if !bytes.HasPrefix(body, []byte("k8s\x00")) {
		t.Fatalf("no envelope: %q", body)
	}
	var unknown runtime.Unknown
	must(t, unknown.Unmarshal(body[4:]))
	if unknown.APIVersion != apiVersion || unknown.Kind != kind {
		t.Fatalf("the envelope says %s %s, want %s %s", unknown.APIVersion, unknown.Kind, apiVersion, kind)
	}
	return unknown.Raw
}

func TestGzipFromAnEighthOfAMegabyte(t *testing.T) {
	c := newCluster(t)
	big := testPod("a", "big", nil, "")
	big.Annotations = map[string]string{"fill": strings.Repeat("0123456789", 1000)}
	c.put(big)
	small := c.get("/api/v1/pods", "Accept-Encoding: gzip")
	if small.header.Get("Content-Encoding") != "" || small.header.Get("Content-Length") != fmt.Sprint(len(small.body)) {
		t.Errorf("a list of %d bytes came with %v", len(small.body), small.header)
	}
	for i := range 20 {
		big.Name = fmt.Sprint("big-", i)
		c.put(big)
	}
	plain := c.get("/api/v1/pods", "Accept-Encoding: ")
	if plain.header.Get("Content-Encoding") != "" {
		t.Error("compressed for a client that did not ask")
	}
	packed := c.get("/api/v1/pods", "Accept-Encoding: br, gzip;q=0.8")
	if packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) > len(plain.body)/4 {
		t.Fatalf("%d bytes, headers %v", len(packed.body), packed.header)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed.body))
	must(t, err)
	unpacked, err := io.ReadAll(z)
	must(t, err)
	if !bytes.Equal(unpacked, plain.body) {
		t.Error("the compressed list is another one")
	}
	if refused := c.get("/api/v1/pods", "Accept-Encoding: gzip;q=0"); refused.header.Get("Content-Encoding") != "" {
		t.Error("compressed for a client that refused it")
	}
}

func FuzzAccept(f *testing.F) {
	for _, s := range []string{"", "*/*", tableType, metaListType + ",application/json;q=0.1", protobufType + ";stream=watch"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		for _, offer := range []forms{anyForm, objectForm, listForm, streamForm} {
			r := &http.Request{Header: http.Header{"Accept": {header}}, URL: httptest.NewRequest(http.MethodGet, "/", nil).URL}
			form, err := negotiate(r, offer)
			if err != nil {
				if status.Of(err).Code != http.StatusNotAcceptable {
					t.Fatalf("%q: %v", header, err)
				}
				continue
			}
			if (form.as != asObject) != (form.version != "") || form.as != asObject && !offer.shapes {
				t.Fatalf("%q gave %+v, which is not offered", header, form)
			}
		}
	})
}
