package apiserver

import (
	"net/http"
	"strings"
	"testing"
)

// TestRefusedBodies: a body that is no object of its kind is refused in kube-apiserver's words,
// which name the kind if the body has one that can be read.
func TestRefusedBodies(t *testing.T) {
	c := newCluster(t)
	const configMaps = "/api/v1/namespaces/default/configmaps"
	const yamlType = "application/yaml"
	for name, tt := range map[string]struct{ contentType, body, want string }{
		"a wrong type": {"", `{"kind":"ConfigMap","apiVersion":"v1","data":[]}`,
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string`},
		"a wrong type, no kind": {"", `{"data":[]}`,
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string`},
		"a wrong type, as YAML": {yamlType, "kind: ConfigMap\ndata: []\n",
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string`},
		"a wrong time": {"", `{"kind":"ConfigMap","metadata":{"creationTimestamp":"x"}}`,
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`},
		"a kind of a wrong type": {"", `{"kind":1,"apiVersion":"v1","data":{"example":"a"}}`,
			`the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string ({"kind":1,"apiVersion":"v1","d ...)`},
		"a kind that is not served": {"", `{"kind":"Map","apiVersion":"v1"}`,
			`Map in version "v1" cannot be handled as a ConfigMap: no kind "Map" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		"a kind of another version": {"", `{"kind":"ConfigMap","apiVersion":"apps/v1"}`,
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"`},
		"of a review, a kind that is not served": {"", `{"kind":"Map","apiVersion":"authentication.k8s.io/v1"}`,
			`Map in version "v1" cannot be handled as a SelfSubjectReview: no kind "Map" is registered for version "authentication.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`},
		"an unknown kind with another fault": {"", `{"kind":"Map","apiVersion":"v1","metadata":"a"}`,
			`Map in version "v1" cannot be handled as a ConfigMap: no kind "Map" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		"another kind": {"", `{"kind":"Secret","apiVersion":"v1"}`, `Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion`},
		"a list": {"", `{"kind":"ConfigMapList","apiVersion":"v1"}`,
			`ConfigMapList in version "v1" cannot be handled as a ConfigMap: converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion`},
		"a status": {"", `{"kind":"Status","apiVersion":"v1"}`,
			`Status in version "v1" cannot be handled as a ConfigMap: converting (v1.Status) to (core.ConfigMap): unknown conversion`},
		"of a review, another kind": {"", `{"kind":"ConfigMap","apiVersion":"v1"}`,
			`ConfigMap in version "v1" cannot be handled as a SelfSubjectReview: converting (v1.ConfigMap) to (authentication.SelfSubjectReview): unknown conversion`},
		"a definition": {"", `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1"}`,
			`CustomResourceDefinition in version "v1" cannot be handled as a ConfigMap: no kind "CustomResourceDefinition" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`},
		"another kind of another group": {"", `{"kind":"Deployment","apiVersion":"apps/v1"}`,
			`Deployment in version "v1" cannot be handled as a ConfigMap: converting (v1.Deployment) to (core.ConfigMap): unknown conversion`},
		"no version": {"", `{"apiVersion":"a/b/c"}`,
			`the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c"})`},
		"no JSON": {"", `abc`,
			`the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of value (616263)`},
		"no YAML": {yamlType, "a: [",
			`the object provided is unrecognized (must be of type ConfigMap): yaml: line 1: did not find expected node content (613a205b)`},
		"no YAML of a map": {yamlType, "a",
			`the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (61)`},
		"no protobuf": {protobufType, "abc",
			`the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (616263)`},
		"no envelope":          {protobufType, "k8s\x00", `the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)`},
		"nothing, as protobuf": {protobufType, "", `the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)`},
		"half an envelope": {protobufType, "k8s\x00\x0a\x05",
			`the object provided is unrecognized (must be of type ConfigMap): unexpected EOF (6b3873000a05)`},
		"half a message": {protobufType, "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x05",
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF`},
		"nothing": {"", ``,
			`the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)`},
	} {
		contentType := "application/json"
		if tt.contentType != "" {
			contentType = tt.contentType
		}
		path := configMaps
		if strings.Contains(tt.want, "SelfSubjectReview") {
			path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
		}
		got := c.do(http.MethodPost, path, tt.body, "Content-Type: "+contentType)
		if got.code != http.StatusBadRequest || got.status(t).Message != tt.want {
			t.Errorf("%s: %d %s\nwant %s", name, got.code, got.body, tt.want)
		}
	}
}

// TestRefusedKinds: what a body of another kind than the endpoint's is refused for depends on what
// kube-apiserver could make of it.
func TestRefusedKinds(t *testing.T) {
	c := newCluster(t)
	const pod, deployment = "/api/v1/namespaces/default/pods/p", "/apis/apps/v1/namespaces/default/deployments/d"
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "/api/v1/namespaces/default/events", `{"kind":"Event","apiVersion":"events.k8s.io/v1"}`,
			`the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)`},
		{"POST", "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2"}`,
			`the API version in the data (autoscaling/v2) does not match the expected API version (autoscaling/v1)`},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"kind":"ConfigMap","apiVersion":"v1"}`,
			`ConfigMap in version "v1" cannot be handled as a CustomResourceDefinition: no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		{"POST", pod + "/eviction", `{"kind":"Pod","apiVersion":"v1"}`,
			`Pod in version "v1" cannot be handled as a Eviction: converting (v1.Pod) to (policy.Eviction): unknown conversion`},
		{"POST", pod + "/eviction?fieldValidation=Strict", `{"kind":"Eviction","apiVersion":"policy/v1","a":1}`,
			`Eviction in version "v1" cannot be handled as a Eviction: strict decoding error: unknown field "a"`},
		{"PUT", deployment + "/scale", `{"kind":"Deployment","apiVersion":"apps/v1"}`,
			`Deployment in version "v1" cannot be handled as a Scale: converting (v1.Deployment) to (autoscaling.Scale): unknown conversion`},
		{"PUT", deployment + "/scale?fieldValidation=Strict", `{"kind":"Scale","apiVersion":"autoscaling/v1","a":1}`,
			`Scale in version "v1" cannot be handled as a Scale: strict decoding error: unknown field "a"`},
		{"PUT", deployment, `{"kind":"Pod","apiVersion":"v1"}`,
			`Pod in version "v1" cannot be handled as a Deployment: converting (v1.Pod) to (apps.Deployment): unknown conversion`},
		{"PUT", deployment, `{"kind":"DeploymentList","apiVersion":"apps/v1"}`,
			`DeploymentList in version "v1" cannot be handled as a Deployment: converting (v1.DeploymentList) to (apps.Deployment): unknown conversion`},
		{"PUT", deployment, `{"kind":"Deployment","apiVersion":"apps/v2"}`,
			`Deployment in version "v2" cannot be handled as a Deployment: no kind "Deployment" is registered for version "apps/v2" in scheme "pkg/runtime/scheme.go:111"`},
		{"PUT", deployment + "/status", `{"kind":"Pod","apiVersion":"v1"}`,
			`Pod in version "v1" cannot be handled as a Deployment: converting (v1.Pod) to (apps.Deployment): unknown conversion`},
		{"PUT", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h/status", `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1"}`,
			`the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)`},
		{"PUT", deployment + "?fieldValidation=Strict", `{"kind":"Deployment","apiVersion":"apps/v1","a":1}`,
			`Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "a"`},
	} {
		got := c.do(tt.method, tt.path, tt.body)
		if got.code != http.StatusBadRequest || got.status(t).Message != tt.want {
			t.Errorf("%s %s of %s: %d %s\nwant %s", tt.method, tt.path, tt.body, got.code, got.body, tt.want)
		}
	}
}
