package apiserver

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestWhatReviewsReturn: reviews say who has sent them, or nothing but their answer, as kube-apiserver's do.
func TestWhatReviewsReturn(t *testing.T) {
	c := newWritable(t)
	for name, test := range map[string]struct{ path, body, want string }{
		"a question about a subject": {"/apis/authorization.k8s.io/v1/subjectaccessreviews", `{"spec":{"user":"u","nonResourceAttributes":{"path":"/","verb":"get"}}}`,
			`{"f:spec":{"f:nonResourceAttributes":{".":{},"f:path":{},"f:verb":{}},"f:user":{}}}`},
		"a question about oneself": {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get"}}}`,
			`{"f:spec":{"f:resourceAttributes":{".":{},"f:verb":{}}}}`},
		"a question about a namespace": {"/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews",
			`{"spec":{"user":"u","resourceAttributes":{"namespace":"default","verb":"get"}}}`,
			`{"f:spec":{"f:resourceAttributes":{".":{},"f:namespace":{},"f:verb":{}},"f:user":{}}}`},
		"a token": {"/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"another"}}`, `{"f:spec":{"f:token":{}}}`},
		"oneself": {"/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"metadata":{"name":"x"}}`, ``},
		"rules":   {"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"metadata":{"name":"x"},"spec":{"namespace":"default"}}`, ``},
	} {
		var got struct {
			Metadata struct {
				Name, Namespace, CreationTimestamp string
				ManagedFields                      []struct{ FieldsV1 json.RawMessage }
			}
			Spec map[string]any
		}
		c.send(201, "POST", test.path, test.body).into(t, &got)
		fields := ""
		if len(got.Metadata.ManagedFields) == 1 {
			fields = string(got.Metadata.ManagedFields[0].FieldsV1)
		}
		if fields != test.want {
			t.Errorf("%s: owners of %s, want %s", name, fields, test.want)
		}
		if test.want == "" && (got.Metadata.Name != "" || len(got.Spec) > 0) {
			t.Errorf("%s: returned %+v", name, got)
		}
		if (name == "oneself") != (got.Metadata.CreationTimestamp != "") {
			t.Errorf("%s: created at %q", name, got.Metadata.CreationTimestamp)
		}
		if strings.Contains(test.path, "/namespaces/") && got.Metadata.Namespace != "default" {
			t.Errorf("%s: namespace %q", name, got.Metadata.Namespace)
		}
	}
}

// TestReviewsThatAreRefused in the words of kube-apiserver, which name no kind.
func TestReviewsThatAreRefused(t *testing.T) {
	c := newWritable(t)
	const group, about = "/apis/authorization.k8s.io/v1/", `"resourceAttributes":{"namespace":"default","verb":"get"}`
	for body, want := range map[string]string{
		`selfsubjectaccessreviews {"metadata":{"name":"x"},"spec":{` + about + `}}`:                                            `metadata: Invalid value: {"name":"x","managedFields":`,
		`selfsubjectaccessreviews {"metadata":{"labels":{"a":"b"}},"spec":{` + about + `}}`:                                    `: must be empty`,
		`selfsubjectaccessreviews {"spec":{}}`:                                                                                 `spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified`,
		`subjectaccessreviews {"metadata":{"generateName":"x"},"spec":{"user":"u",` + about + `}}`:                             `metadata: Invalid value: {"generateName":"x",`,
		`subjectaccessreviews {"spec":{"user":"u",` + about + `,"nonResourceAttributes":{"path":"/a","verb":"get"}}}`:          `spec: Invalid value: {"Path":"/a","Verb":"get"}: exactly one of`,
		`subjectaccessreviews {"spec":{` + about + `}}`:                                                                        `spec.user: Invalid value: "": at least one of user or group must be specified`,
		`namespaces/default/localsubjectaccessreviews {"metadata":{"name":"x"},"spec":{"user":"u",` + about + `}}`:             `: must be empty except for namespace`,
		`namespaces/other/localsubjectaccessreviews {"spec":{"user":"u",` + about + `}}`:                                       `spec.resourceAttributes.namespace: Invalid value: "default": must match metadata.namespace`,
		`namespaces/default/localsubjectaccessreviews {"spec":{"user":"u","nonResourceAttributes":{"path":"/","verb":"get"}}}`: `spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed on this kind of request`,
	} {
		path, body, _ := strings.Cut(body, " ")
		var got struct{ Message string }
		c.send(422, "POST", group+path, body).into(t, &got)
		if !strings.HasPrefix(got.Message, `.authorization.k8s.io "" is invalid: `) || !strings.Contains(got.Message, want) {
			t.Errorf("%s %s: %s, want %s", path, body, got.Message, want)
		}
	}
	c.send(400, "POST", group+"namespaces/default/localsubjectaccessreviews", `{"metadata":{"namespace":"other"},"spec":{"user":"u",`+about+`}}`)
}

// TestTokenReviewsReadHeaders: a token is reviewed as if it had come in a header.
func TestTokenReviewsReadHeaders(t *testing.T) {
	c := newWritable(t)
	for token, want := range map[string]string{
		"another": `"status":{"user":{},"error":"invalid bearer token"}`, " ": `"status":{"user":{}}`, " " + testToken: `"status":{"user":{}}`,
		testToken + " ": `"authenticated":true`, testToken + " more": `"authenticated":true`,
	} {
		r := c.send(201, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{"spec":{"token":"`+token+`"}}`)
		if !strings.Contains(string(r.body), want) {
			t.Errorf("%q: %s, want %s", token, r.body, want)
		}
	}
}
