package authorization

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/auth"
)

type refusing string

func (r refusing) Authorize(context.Context, auth.Attributes) (auth.Decision, string, error) {
	return auth.NoOpinion, string(r), nil
}

// TestForbidden: the answers of kube-apiserver, byte by byte.
func TestForbidden(t *testing.T) {
	user := auth.User{Name: "jane"}
	for _, test := range []struct {
		asked  auth.Attributes
		reason string
		want   string
	}{
		{
			auth.Attributes{Verb: "list", Resource: "pods", Namespace: "a"}, "",
			`{"metadata":{},"status":"Failure","message":"pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"a\"","reason":"Forbidden","details":{"kind":"pods"},"code":403}`,
		},
		{
			auth.Attributes{Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale", Name: "b"}, "RBAC: role missing",
			`{"metadata":{},"status":"Failure","message":"deployments.apps \"b\" is forbidden: User \"jane\" cannot get resource \"deployments/scale\" in API group \"apps\" at the cluster scope: RBAC: role missing","reason":"Forbidden","details":{"name":"b","group":"apps","kind":"deployments"},"code":403}`,
		},
		{
			auth.Attributes{Verb: "get", Path: "/metrics<script>"}, "",
			`{"metadata":{},"status":"Failure","message":"forbidden: User \"jane\" cannot get path \"/metrics&lt;script&gt;\"","reason":"Forbidden","details":{},"code":403}`,
		},
	} {
		test.asked.User = user
		err := New(refusing(test.reason)).Authorize(t.Context(), test.asked)
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			t.Fatalf("%v", err)
		}
		answer := status.Status()
		got, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		var is, want any
		_ = json.Unmarshal(got, &is)
		if err := json.Unmarshal([]byte(test.want), &want); err != nil {
			t.Fatal(err)
		}
		isBytes, _ := json.Marshal(is)
		wantBytes, _ := json.Marshal(want)
		if string(isBytes) != string(wantBytes) {
			t.Errorf("got  %s\nwant %s", isBytes, wantBytes)
		}
	}
}
