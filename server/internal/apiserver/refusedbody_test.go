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
			`Map in version "v1" cannot be handled as a ConfigMap: no kind "Map" is registered for version "v1"`},
		"a kind of another version": {"", `{"kind":"ConfigMap","apiVersion":"apps/v1"}`,
			`ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "apps/v1"`},
		"of a review, a kind that is not served": {"", `{"kind":"Map","apiVersion":"authentication.k8s.io/v1"}`,
			`Map in version "v1" cannot be handled as a SelfSubjectReview: no kind "Map" is registered for version "authentication.k8s.io/v1"`},
		"another kind": {"", `{"kind":"Secret","apiVersion":"v1"}`, `Secret in version "v1" cannot be handled as a ConfigMap`},
		"another version": {"", `{"kind":"Deployment","apiVersion":"apps/v1"}`,
			`the API version in the data (apps/v1) does not match the expected API version (v1)`},
		"no version": {"", `{"apiVersion":"a/b/c"}`,
			`the object provided is unrecognized (must be of type ConfigMap): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c"})`},
		"no JSON": {"", `abc`,
			`the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of value (616263)`},
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
