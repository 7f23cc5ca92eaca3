package apiserver

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/levelwire/levelwire/server/internal/resource"
)

const (
	applyYAML = "Content-Type: application/apply-patch+yaml"
	applyCBOR = "Content-Type: application/apply-patch+cbor"
)

// TestApplyOverHTTP creates, changes, and conflicts.
func TestApplyOverHTTP(t *testing.T) {
	c := newWritable(t)
	body := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {k: '1'}"
	var made, again corev1.ConfigMap
	c.send(201, "PATCH", configMaps+"/a?fieldManager=one", body, applyYAML).into(t, &made)
	c.send(200, "PATCH", configMaps+"/a?fieldManager=one&force=false", body, applyYAML).into(t, &again)
	if made.ResourceVersion != again.ResourceVersion || len(again.ManagedFields) != 1 {
		t.Errorf("applied again: version %s after %s, %v", again.ResourceVersion, made.ResourceVersion, again.ManagedFields)
	}
	other := strings.Replace(body, "'1'", "'2'", 1)
	var status metav1.Status
	c.send(409, "PATCH", configMaps+"/a?fieldManager=two", other, applyYAML).into(t, &status)
	want := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "one"`, Field: ".data.k"}
	if status.Message != `Apply failed with 1 conflict: conflict with "one": .data.k` || status.Reason != metav1.StatusReasonConflict ||
		len(status.Details.Causes) != 1 || status.Details.Causes[0] != want {
		t.Errorf("%+v", status)
	}
	c.send(200, "PATCH", configMaps+"/a?fieldManager=two&force=true", other, applyYAML).into(t, &again)
	if again.Data["k"] != "2" {
		t.Errorf("forced: %v", again.Data)
	}
	wire, err := direct.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"}, "data": map[string]any{"k": "v"},
	})
	must(t, err)
	c.send(201, "PATCH", configMaps+"/b?fieldManager=one", resource.CBORTag+string(wire), applyCBOR).into(t, &made)
	if made.Data["k"] != "v" {
		t.Errorf("of %s: %v", hex.EncodeToString(wire), made.Data)
	}
	scale := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"},"spec":{"replicas":4}}`
	c.send(404, "PATCH", deployments+"/web/scale?fieldManager=one", scale, applyYAML)
}

func TestApplyParameters(t *testing.T) {
	c := newWritable(t)
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}`
	twice := strings.Replace(body, `"k":"1"`, `"k":"1","k":"1"`, 1)
	var status metav1.Status
	c.send(422, "PATCH", configMaps+"/a", body, applyYAML).into(t, &status)
	if !strings.Contains(status.Message, "is required for apply patch") {
		t.Error(status.Message)
	}
	c.send(422, "PATCH", configMaps+"/a?fieldManager="+strings.Repeat("x", 129), body, applyYAML)
	c.send(400, "PATCH", configMaps+"/a?fieldManager=one&fieldValidation=Strict", twice, applyYAML).into(t, &status)
	if !strings.Contains(status.Message, `key "k" already set in map`) {
		t.Error(status.Message)
	}
	c.send(404, "GET", configMaps+"/a", "")
	if got := c.send(201, "PATCH", configMaps+"/a?fieldManager=one&dryRun=All&fieldValidation=Ignore", twice, applyYAML).header.Get("Warning"); got != "" {
		t.Error(got)
	}
	c.send(404, "GET", configMaps+"/a", "")
	if got := c.send(201, "PATCH", configMaps+"/a?fieldManager=one", twice, applyYAML).header.Get("Warning"); !strings.Contains(got, "already set in map") {
		t.Errorf("warning %q", got)
	}
	unknown := strings.Replace(body, `"data"`, `"dota"`, 1)
	c.send(500, "PATCH", configMaps+"/a?fieldManager=one&fieldValidation=Ignore", unknown, applyYAML).into(t, &status)
	if status.Message != "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dota: field not declared in schema" {
		t.Error(status.Message)
	}
}

// TestApplyIsMergedBeforeItIsJudged: what refuses the merge comes before what stands twice in the
// patch, and is without a warning of that, as in Kubernetes. The same holds for a Scale.
func TestApplyIsMergedBeforeItIsJudged(t *testing.T) {
	c := newWritable(t)
	c.send(201, "PATCH", configMaps+"/a?fieldManager=one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}`, applyYAML)
	c.send(201, "POST", deployments, deploymentToPatch)
	const twice = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"2","k":"3"}}`
	const scale = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":3,"replicas":4}}`
	for _, test := range []struct {
		path, body string
		code       int
	}{
		{configMaps + "/a?fieldManager=two&fieldValidation=Strict", twice, 409},
		{configMaps + "/a?fieldManager=two&fieldValidation=Warn", twice, 409},
		{configMaps + "/a?fieldManager=two&fieldValidation=Strict&force=true", twice, 400},
		{deployments + "/none/scale?fieldManager=two&fieldValidation=Strict", scale, 404},
		{deployments + "/d/scale?fieldManager=two&fieldValidation=Strict", scale, 409},
		{deployments + "/d/scale?fieldManager=two&fieldValidation=Strict&force=true", scale, 400},
	} {
		if got := c.send(test.code, "PATCH", test.path, test.body, applyYAML).header.Get("Warning"); got != "" {
			t.Errorf("%s: warning %q", test.path, got)
		}
	}
	if got := c.send(200, "PATCH", deployments+"/d/scale?fieldManager=two&force=true", scale, applyYAML).header.Get("Warning"); !strings.Contains(got, "already set in map") {
		t.Errorf("warning %q", got)
	}
}

// TestYAMLIsJudgedByLine: a field that stands twice in YAML is a warning that says in which line, and what is
// applied is YAML, even as JSON.
func TestYAMLIsJudgedByLine(t *testing.T) {
	c := newWritable(t)
	const inYAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: b\n  a: c\ndata: {}\n"
	const inJSON = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b","a":"c"}}`
	for _, test := range []struct {
		method, path, header, body string
		warnings                   []string
		refused                    string
	}{
		{"POST", configMaps + "?", yamlBody, inYAML, []string{`line 6: key "a" already set in map`, `line 7: key "data" already set in map`},
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:`},
		{"PATCH", configMaps + "/a?fieldManager=m&", applyYAML, inYAML, []string{`line 6: key "a" already set in map`, `line 7: key "data" already set in map`},
			"error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:"},
		{"PATCH", configMaps + "/a?fieldManager=m&", applyYAML, inJSON, []string{`line 1: key "a" already set in map`},
			"error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:"},
	} {
		headers, _ := utilnet.ParseWarningHeaders(c.send(201, test.method, test.path+"dryRun=All", test.body, test.header).header.Values("Warning"))
		var warned []string
		for _, h := range headers {
			warned = append(warned, h.Text)
		}
		if !slices.Equal(warned, test.warnings) {
			t.Errorf("%s %.20s: warnings %q, want %q", test.method, test.body, warned, test.warnings)
		}
		if s := c.send(400, test.method, test.path+"dryRun=All&fieldValidation=Strict", test.body, test.header).status(t); !strings.HasPrefix(s.Message, test.refused) {
			t.Errorf("%s %.20s: %s", test.method, test.body, s.Message)
		}
	}
}

func TestTheManagerIsWhoWrites(t *testing.T) {
	c := newWritable(t)
	var made corev1.ConfigMap
	c.send(201, "POST", configMaps, `{"metadata":{"name":"a"},"data":{"k":"1"}}`, jsonBody, "User-Agent: editor/2").into(t, &made)
	c.send(200, "PATCH", configMaps+"/a?fieldManager=stated", `{"data":{"l":"1"}}`, merge).into(t, &made)
	if got := made.ManagedFields; len(got) != 2 || got[0].Manager != "editor" || got[1].Manager != "stated" {
		t.Errorf("managers %+v", got)
	}
}
