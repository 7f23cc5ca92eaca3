package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"
)

const cborType = "application/cbor"

// undo decodes CBOR as apimachinery's clients do, into the types of the scheme.
func undo(t *testing.T, data []byte, into runtime.Object) {
	t.Helper()
	if !bytes.HasPrefix(data, []byte("\xd9\xd9\xf7")) {
		t.Fatalf("no document of self-described CBOR: %q", data)
	}
	if _, _, err := cbor.NewSerializer(scheme.Scheme, scheme.Scheme, cbor.Strict(true)).Decode(data, nil, into); err != nil {
		t.Fatal(err)
	}
}

// sameAsJSON fails unless CBOR and JSON are the same data.
func sameAsJSON(t *testing.T, data, inJSON []byte) {
	t.Helper()
	var got any
	must(t, direct.Unmarshal(data, &got))
	again, err := json.Marshal(got)
	must(t, err)
	var a, b any
	must(t, json.Unmarshal(again, &a))
	must(t, json.Unmarshal(inJSON, &b))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("CBOR says\n%s\nJSON says\n%s", again, inJSON)
	}
}

func TestCBORSaysWhatJSONSays(t *testing.T) {
	c := newCluster(t)
	seed(c)
	rich := testPod("a", "rich", map[string]string{"k": "v"}, "n")
	started := metav1.NewTime(time.Unix(1700000000, 0))
	rich.Status.StartTime = &started
	rich.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TEXT", Value: strings.Repeat("long ", 20000)}}
	c.put(rich)
	const metaOne, metaMany = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	for _, tt := range []struct{ path, as string }{
		{"/api/v1/pods", ""},
		{"/api/v1/pods?limit=1", ""},
		{"/api/v1/namespaces/none/pods", ""},
		{"/api/v1/pods", metaMany},
		{"/api/v1/pods", strings.Replace(metaMany, "v1", "v1beta1", 1)},
		{"/api/v1/namespaces/a/pods/rich", ""},
		{"/api/v1/namespaces/a/pods/rich", metaOne},
		{"/api/v1/namespaces/a/pods/none", ""}, // a Status
		{"/api/v1/pods?resourceVersion=x", ""},
		{"/apis/apps/v1/deployments", ""},
	} {
		want := c.get(tt.path, "Accept: application/json"+tt.as)
		for _, client := range []*http.Client{c.http1, c.http2} {
			resp := c.open(t.Context(), client, http.MethodGet, tt.path, "", "Accept: "+cborType+tt.as)
			body, err := io.ReadAll(resp.Body)
			must(t, err)
			resp.Body.Close()
			if resp.StatusCode != want.code || resp.Header.Get("Content-Type") != cborType {
				t.Errorf("%s: %d in %s, want %d", tt.path, resp.StatusCode, resp.Header.Get("Content-Type"), want.code)
				continue
			}
			sameAsJSON(t, body, want.body)
		}
	}
	var list corev1.PodList
	undo(t, c.get("/api/v1/pods", "Accept: "+cborType).body, &list)
	if len(list.Items) != 4 || !list.Items[1].Status.StartTime.Equal(rich.Status.StartTime) {
		t.Errorf("a client reads %v", names(list))
	}
	table := "application/cbor;as=Table;v=v1;g=meta.k8s.io"
	if got := c.get("/api/v1/pods", "Accept: "+table); got.code != 406 {
		t.Errorf("a table in CBOR: %d", got.code)
	}
	if got := c.get("/api/v1/pods", "Accept: application/cbor-seq"); got.code != 406 {
		t.Errorf("a list as a sequence: %d", got.code)
	}
}

// cborFrames reads events as client-go does: a framer, then the serializer.
func cborFrames(t *testing.T, body io.ReadCloser, n int) string {
	t.Helper()
	reader := cbor.NewFramer().NewFrameReader(body)
	var all []string
	buf := make([]byte, 1<<20)
	for range n {
		size, err := reader.Read(buf)
		must(t, err)
		var event metav1.WatchEvent
		_, _, err = cbor.NewSerializer(scheme.Scheme, scheme.Scheme, cbor.Transcode(false)).Decode(
			buf[:size], nil, &event)
		must(t, err)
		var object any
		must(t, direct.Unmarshal(event.Object.Raw, &object))
		text, err := json.Marshal(object)
		must(t, err)
		all = append(all, frame{event.Type, text}.String())
	}
	return strings.Join(all, ", ")
}

func TestWatchInCBOR(t *testing.T) {
	c := newCluster(t, hurried)
	revs := seed(c)
	one, two, three := fmt.Sprint("ADDED one@", revs["first"]), fmt.Sprint("ADDED two@", revs["second"]), fmt.Sprint("ADDED three@", revs["third"])
	end := fmt.Sprint("BOOKMARK end@", revs["third"])
	for _, tt := range []struct {
		accept, query string
		events        []string
	}{
		{cborType, initialEnd, []string{one, two, three, end}},
		{"application/cbor-seq", initialEnd, []string{one, two, three, end}},
		{cborType + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io", initialEnd, []string{one, two, three, end}},
		{cborType, "&resourceVersion={second}", []string{three}},
		{cborType, initialEnd + "&resourceVersion={future}", []string{"ERROR 504 Timeout"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		resp := c.open(ctx, c.http2, http.MethodGet, expand("/api/v1/pods?watch=1"+tt.query, revs), "", "Accept: "+tt.accept)
		if resp.Header.Get("Content-Type") != "application/cbor-seq" {
			t.Fatalf("%d in %s", resp.StatusCode, resp.Header.Get("Content-Type"))
		}
		if got := cborFrames(t, resp.Body, len(tt.events)); got != strings.Join(tt.events, ", ") {
			t.Errorf("%s %s: %s, want %s", tt.accept, tt.query, got, tt.events)
		}
		cancel()
		resp.Body.Close()
	}
}

func TestWritesInCBOR(t *testing.T) {
	c := newWritable(t)
	in, out := "Content-Type: "+cborType, "Accept: "+cborType
	document := func(obj runtime.Object) string {
		var buf bytes.Buffer
		must(t, cbor.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &buf))
		return buf.String()
	}
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"k": "v"}, BinaryData: map[string][]byte{"b": {0, 255}}}
	var got corev1.ConfigMap
	undo(t, c.send(201, "POST", configMaps, document(cm), in, out).body, &got)
	if got.UID == "" || got.Kind != "ConfigMap" || got.Data["k"] != "v" || !bytes.Equal(got.BinaryData["b"], []byte{0, 255}) {
		t.Errorf("created %+v", got)
	}
	got.Data["k"] = "w"
	undo(t, c.send(200, "PUT", configMaps+"/one", document(&got), in, out).body, &got)
	if got.Data["k"] != "w" {
		t.Errorf("updated %+v", got)
	}
	cm.Name, cm.TypeMeta = "kindless", metav1.TypeMeta{}
	c.send(201, "POST", configMaps, document(cm), in)
	cm.Name, cm.Kind, cm.APIVersion = "other", "Secret", "v1"
	c.send(400, "POST", configMaps, document(cm), in)
	c.send(400, "POST", configMaps, "rubbish", in)
	unknown, err := direct.Marshal(map[string]any{"metadata": map[string]any{"name": "x"}, "dada": "y"})
	must(t, err)
	c.send(400, "POST", configMaps+"?fieldValidation=Strict", string(unknown), in)
	c.send(201, "POST", configMaps+"?fieldValidation=Ignore", string(unknown), in)
	zero := int64(0)
	c.send(200, "DELETE", configMaps+"/one", document(&metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}, GracePeriodSeconds: &zero}), in, out)
	var list corev1.ConfigMapList
	undo(t, c.send(200, "DELETE", configMaps, "", out).body, &list)
	if len(list.Items) < 2 {
		t.Errorf("deleted %d", len(list.Items))
	}
}
