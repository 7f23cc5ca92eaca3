package apiserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

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
			if strings.Contains(string(body), "kind: Pod\n") {
				t.Errorf("the items have a kind, unlike those in JSON:\n%s", body)
			}
		}},
		{list, "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/yaml", func(t *testing.T, body []byte) {
			data, err := yaml.YAMLToJSON(body)
			must(t, err)
			checkTable(t, data, 3, "PartialObjectMetadata")
		}},
		{"/api/v1/namespaces/none/pods", "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/yaml", func(t *testing.T, body []byte) {
			if !strings.HasSuffix(string(body), "rows: []\n") {
				t.Errorf("empty table is %s", body)
			}
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
	if got := c.get(list+"?includeObject=Some", "Accept: "+tableType); got.code != 400 || !strings.Contains(string(got.body), "must be 'Metadata', 'Object', 'None', or empty") {
		t.Errorf("unknown includeObject: %d %s", got.code, got.body)
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
