package apiserver

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// deploymentToPatch is a Deployment that can be created.
const deploymentToPatch = `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},` +
	`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`

// TestPatchesAreJudgedAsBodies: what fieldValidation says counts for the fields of a patch,
// too, and what a patch makes of an object is refused with 422, in kube-apiserver's words.
func TestPatchesAreJudgedAsBodies(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", deployments, deploymentToPatch)
	const strict = "?dryRun=All&fieldValidation=Strict"
	for _, test := range []struct {
		kind, query, body string
		code              int
		message           string   // of the refusal, what follows the patch or the patched document
		warnings          []string // of the answer
	}{
		{merge, strict, `{"spec":{"replicas":1,"replicas":2}}`, 422, `strict decoding error: duplicate field "spec.replicas"`, nil},
		{merge, strict, `{"spec":{"foo":1}}`, 422, `strict decoding error: unknown field "spec.foo"`, nil},
		{merge, strict, `{"spec":{"replicas":1,"replicas":2,"foo":1}}`, 422, `strict decoding error: duplicate field "spec.replicas", unknown field "spec.foo"`, nil},
		{merge, "", `{"spec":{"replicas":1,"replicas":2,"foo":1}}`, 200, "", []string{`duplicate field "spec.replicas"`, `unknown field "spec.foo"`}},
		{merge, "?fieldValidation=Ignore", `{"spec":{"replicas":1,"replicas":2,"foo":1}}`, 200, "", nil},
		{merge, "", `{"spec":{"replicas":"x"}}`, 422, "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32", nil},
		{merge, "", `{"kind":"Other"}`, 422, `no kind "Other" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"`, nil},
		{merge, "", `{"kind":"Pod","apiVersion":"v1"}`, 422, "converting (v1.Pod) to (apps.Deployment): unknown conversion", nil},
		{merge, "", `{"kind":"DeploymentList"}`, 422, "converting (v1.DeploymentList) to (apps.Deployment): unknown conversion", nil},
		{merge, "", `{"apiVersion":"apps/v2"}`, 422, `no kind "Deployment" is registered for version "apps/v2" in scheme "pkg/runtime/scheme.go:111"`, nil},
		{merge, "", `{"kind":null}`, 200, "", nil},
		{merge, "/status", `{"kind":"Other"}`, 422, `no kind "Other" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"`, nil},
		{merge, "/status", `{"kind":"Pod","apiVersion":"v1"}`, 422, "converting (v1.Pod) to (apps.Deployment): unknown conversion", nil},
		{merge, "/status", `{"apiVersion":null}`, 400, "the name of the object (d based on URL) was undeterminable: name must be provided", nil},
		{merge, "", `{"kind":7}`, 422, "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string", nil},
		{merge, "", `{"kind":"Other","spec":"a"}`, 422, `no kind "Other" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"`, nil},
		{merge, "", `{"spec":{"minReadySeconds":9223372036854775808}}`, 422, "json: cannot unmarshal number 9223372036854775808 into Go struct field DeploymentSpec.spec.minReadySeconds of type int32", nil},
		{merge, "", `{"spec":{"paused":"a","minReadySeconds":"a"}}`, 422, "Go struct field DeploymentSpec.spec.minReadySeconds of type int32", nil},
		{merge, "", `{"apiVersion":null,"kind":"Other"}`, 422, `no kind "Other" is registered for the internal version of group "apps" in scheme "pkg/runtime/scheme.go:111"`, nil},
		{merge, "", `{"apiVersion":null,"spec":"a"}`, 400, "the name of the object (d based on URL) was undeterminable: name must be provided", nil},
		{merge, "", `{"apiVersion":null}`, 400, "the name of the object (d based on URL) was undeterminable: name must be provided", nil},
		{merge, "", `{"spec"`, 400, "invalid JSON patch", nil},
		{merge, "", `[]`, 400, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}", nil},
		{merge, "", `null`, 400, "Invalid JSON Patch", nil},

		{strategic, strict, `{"spec":{"replicas":1,"replicas":2}}`, 422, `"map[spec:map[replicas:2]]": strict decoding error: duplicate field "spec.replicas"`, nil},
		{strategic, strict, `{"spec":{"foo":1}}`, 422, `"map[spec:map[foo:1]]": strict decoding error: unknown field "spec.foo"`, nil},
		{strategic, "", `{"spec":{"replicas":1,"replicas":2,"foo":1}}`, 200, "", []string{`duplicate field "spec.replicas"`, `unknown field "spec.foo"`}},
		{strategic, "", `{"spec":{"replicas":"x"}}`, 422, `"map[spec:map[replicas:x]]": unrecognized type: int32`, nil},
		{strategic, "", `{"spec":{"strategy":"x"}}`, 422, `"map[spec:map[strategy:x]]": cannot restore struct from: string`, nil},
		{strategic, "", `{"metadata":{"labels":{"a":1}}}`, 422, `"map[metadata:map[labels:map[a:1]]]": cannot convert int64 to string`, nil},
		{
			strategic, "", `{"spec":{"template":{"spec":{"containers":[{"name":"n","image":"x"},{"name":"n","ports":"y"}]}}}}`, 422,
			`"map[spec:map[template:map[spec:map[containers:[map[image:x name:n ports:y] map[name:n ports:y]]]]]]": cannot restore slice from string`, nil,
		},
		{strategic, "", `{"kind":7}`, 422, `"map[kind:7]": cannot convert int64 to string`, nil},
		{strategic, "", `{"kind":"Other","apiVersion":"x/y"}`, 200, "", nil},
		{strategic, "/status", `{"kind":"Other","apiVersion":"x/y"}`, 200, "", nil},
		{strategic, "", `null`, 200, "", nil},
		{strategic, "", `{"spec"`, 400, "invalid JSON patch", nil},
		{strategic, "", `[]`, 400, "json: cannot unmarshal array into Go value of type map[string]interface {}", nil},
		{strategic, "", `{"spec":{"template":{"spec":{"containers":[{"image":"x"}]}}}}`, 422, "map: map[image:x] does not contain declared merge key: name", nil},
		{strategic, "", `{"spec":{"$patch":"x"}}`, 422, "unknown patch type: x in map: map[$patch:x]", nil},
		{strategic, "", `{"$retainKeys":"x"}`, 400, "invalid patch format of retainKeys", nil},

		{operation, strict, `[{"op":"replace","path":"/spec/replicas","path":"/spec/replicas","value":2}]`, 422, `strict decoding error: json patch duplicate field "[0].path"`, nil},
		{operation, strict, `[{"op":"replace","path":"/spec/replicas","value":2,"foo":1}]`, 422, `strict decoding error: json patch unknown field "[0].foo"`, nil},
		{operation, strict, `[{"op":"add","path":"/spec/foo","value":1}]`, 422, `strict decoding error: unknown field "spec.foo"`, nil},
		{operation, "", `[{"op":"replace","path":"/spec/replicas","path":"/spec/replicas","value":2,"foo":1},{"op":"add","path":"/spec/foo","value":1}]`, 200, "",
			[]string{`json patch duplicate field "[0].path"`, `json patch unknown field "[0].foo"`, `unknown field "spec.foo"`}},
		{operation, "", `[{"op":"add","path":"/spec/replicas","value":"x"}]`, 422, "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32", nil},
		{operation, "", `[{"op":"replace","path":"","value":[]}]`, 422, `json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`, nil},
		{operation, "", `[{"op":"add","path":"/spec/replicas"}]`, 200, "", nil},
		{operation, "", `[{"op":"remove","path":1}]`, 400, "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string", nil},
		{operation, "", `[{"op":"replace","path":"/kind","value":"Other"}]`, 422, `no kind "Other" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"`, nil},
		{operation, "/status", `[{"op":"replace","path":"/kind","value":"Other"}]`, 422, `no kind "Other" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"`, nil},
		{operation, "", `[{"op":"replace","path":"/apiVersion","value":""}]`, 400, "the name of the object (d based on URL) was undeterminable: name must be provided", nil},
		{operation, "", `null`, 200, "", nil},
		{operation, "", `[{"op"`, 400, "invalid JSON patch", nil},
		{operation, "", `[{"op":"test","path":"/spec/replicas","value":5}]`, 422, "the server rejected our request due to an error in our request", nil},
	} {
		r := c.do("PATCH", deployments+"/d"+test.query, test.body, test.kind)
		if r.code != test.code {
			t.Errorf("%s %s: %d %s, want %d", test.kind, test.body, r.code, r.body, test.code)
			continue
		}
		headers, _ := utilnet.ParseWarningHeaders(r.header.Values("Warning"))
		var warned []string
		for _, h := range headers {
			warned = append(warned, h.Text)
		}
		if !slices.Equal(warned, test.warnings) {
			t.Errorf("%s %s%s: warnings %q, want %q", test.kind, test.body, test.query, warned, test.warnings)
		}
		if test.code != http.StatusOK {
			if s := r.status(t); !strings.HasSuffix(s.Message, test.message) {
				t.Errorf("%s %s: %q, want that at the end of it: %q", test.kind, test.body, s.Message, test.message)
			}
		}
	}
}

// TestFailedTestsSayWhy: the message is kube-apiserver's, which does not say what is wrong;
// a cause does.
func TestFailedTestsSayWhy(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", deployments, deploymentToPatch)
	for body, want := range map[string]string{
		`[{"op":"test","path":"/spec/replicas","value":5}]`: "testing value /spec/replicas failed",
		`[{"op":"remove","path":"/spec/none"}]`:             "/spec/none",
		`[{"op":"frob","path":"/spec"}]`:                    "frob",
		`[{"path":"/spec"}]`:                                "unknown",
		`[null]`:                                            "unknown",
		`[{"op":"move","path":"/spec"}]`:                    "from",
	} {
		s := c.send(422, "PATCH", deployments+"/d", body, operation).status(t)
		if s.Reason != metav1.StatusReasonInvalid || s.Details == nil || len(s.Details.Causes) != 1 || !strings.Contains(s.Details.Causes[0].Message, want) {
			t.Errorf("%s: %+v with %+v, want a cause with %q", body, s, s.Details, want)
		}
	}
}

// TestEventsHaveOneInternalGroup: both groups of Events are converted to types of the first.
func TestEventsHaveOneInternalGroup(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", "/api/v1/namespaces/default/events", `{"metadata":{"name":"e","namespace":"default"},"involvedObject":{"namespace":"default"}}`)
	for _, path := range []string{"/api/v1", "/apis/events.k8s.io/v1"} {
		s := c.send(422, "PATCH", path+"/namespaces/default/events/e", `{"apiVersion":null,"kind":"Other"}`, merge).status(t)
		if want := `no kind "Other" is registered for the internal version of group "" in scheme "pkg/runtime/scheme.go:111"`; !strings.HasSuffix(s.Message, want) {
			t.Errorf("%s: %q, want that at the end of it: %q", path, s.Message, want)
		}
	}
}

// TestCausesOfAnEventsUpdate: what built-in kinds ask for of finalizers comes after the rules of core events, and before what stays.
func TestCausesOfAnEventsUpdate(t *testing.T) {
	c := newWritable(t)
	const events = "/apis/events.k8s.io/v1/namespaces/default/events"
	c.send(201, "POST", events, `{"metadata":{"name":"e"},"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"a","reportingInstance":"a","action":"a","reason":"a","type":"Normal"}`)
	var fields []string
	for _, cause := range c.send(422, "PATCH", events+"/e", `{"metadata":{"finalizers":["plain"]},"reportingController":"a b"}`, merge).status(t).Details.Causes {
		fields = append(fields, cause.Field)
	}
	if want := []string{"reportingController", "metadata.finalizers[0]", "reportingController"}; !slices.Equal(fields, want) {
		t.Errorf("causes at %q, want %q", fields, want)
	}
}

// TestScalesArePatchedAsStrictly: a Scale is judged as the object is.
func TestScalesArePatchedAsStrictly(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", deployments, deploymentToPatch)
	for _, test := range []struct{ kind, query, body, message string }{
		{merge, "?fieldValidation=Strict", `{"spec":{"foo":1}}`, `strict decoding error: unknown field "spec.foo"`},
		{merge, "?fieldValidation=Strict", `{"spec":{"replicas":1,"replicas":2}}`, `strict decoding error: duplicate field "spec.replicas"`},
		{strategic, "", `{"spec":{"replicas":"x"}}`, `"map[spec:map[replicas:x]]": unrecognized type: int32`},
		{operation, "", `[{"op":"replace","path":"/spec/replicas","value":"x"}]`, "of type int32"},
	} {
		if s := c.send(422, "PATCH", deployments+"/d/scale"+test.query, test.body, test.kind).status(t); !strings.HasSuffix(s.Message, test.message) {
			t.Errorf("%s %s: %q, want that at the end of it: %q", test.kind, test.body, s.Message, test.message)
		}
	}
}
