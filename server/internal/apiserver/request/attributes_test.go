package request

import (
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// TestAttributes: what kube-apiserver asks its authorizers for the same requests.
func TestAttributes(t *testing.T) {
	user := auth.User{Name: "jane"}
	for request, want := range map[string]auth.Attributes{
		"GET /api/v1/namespaces/a/pods":                                         {Verb: "list", Version: "v1", Resource: "pods", Namespace: "a"},
		"HEAD /api/v1/namespaces/a/pods/b":                                      {Verb: "get", Version: "v1", Resource: "pods", Namespace: "a", Name: "b"},
		"GET /api/v1/pods?watch=1":                                              {Verb: "watch", Version: "v1", Resource: "pods"},
		"GET /api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Db":      {Verb: "list", Version: "v1", Resource: "secrets", Namespace: "a", Name: "b", FieldSelector: "metadata.name=b"},
		"GET /api/v1/secrets?watch=true&fieldSelector=metadata.name=b,type=x":   {Verb: "watch", Version: "v1", Resource: "secrets", Name: "b", FieldSelector: "metadata.name=b,type=x"},
		"GET /api/v1/secrets?labelSelector=app%3Dx":                             {Verb: "list", Version: "v1", Resource: "secrets", LabelSelector: "app=x"},
		"DELETE /api/v1/namespaces/a/secrets?labelSelector=app%3Dx":             {Verb: "deletecollection", Version: "v1", Resource: "secrets", Namespace: "a", LabelSelector: "app=x"},
		"GET /api/v1/namespaces/a/secrets/b?labelSelector=app%3Dx":              {Verb: "get", Version: "v1", Resource: "secrets", Namespace: "a", Name: "b"},
		"GET /api/v1/secrets?fieldSelector=metadata.name!=b":                    {Verb: "list", Version: "v1", Resource: "secrets", FieldSelector: "metadata.name!=b"},
		"GET /api/v1/secrets?fieldSelector=metadata.name=..":                    {Verb: "list", Version: "v1", Resource: "secrets", FieldSelector: "metadata.name=.."},
		"GET /api/v1/watch/secrets?fieldSelector=metadata.name=b":               {Verb: "watch", Version: "v1", Resource: "secrets"},
		"GET /api/v1/watch/namespaces/a/secrets/b":                              {Verb: "watch", Version: "v1", Resource: "secrets", Namespace: "a", Name: "b"},
		"DELETE /api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Db":   {Verb: "deletecollection", Version: "v1", Resource: "secrets", Namespace: "a", FieldSelector: "metadata.name=b"},
		"GET /api/v1/namespaces/a/secrets/b?watch=true":                         {Verb: "get", Version: "v1", Resource: "secrets", Namespace: "a", Name: "b"},
		"POST /api/v1/namespaces/a/pods/b/binding":                              {Verb: "create", Version: "v1", Resource: "pods", Subresource: "binding", Namespace: "a", Name: "b"},
		"GET /api/v1/namespaces/a/services/b/proxy/x":                           {Verb: "get", Version: "v1", Resource: "services", Subresource: "proxy", Namespace: "a", Name: "b"},
		"GET /api/v1/namespaces":                                                {Verb: "list", Version: "v1", Resource: "namespaces"},
		"GET /api/v1/namespaces/a":                                              {Verb: "get", Version: "v1", Resource: "namespaces", Namespace: "a", Name: "a"},
		"PUT /api/v1/namespaces/a/finalize":                                     {Verb: "update", Version: "v1", Resource: "namespaces", Subresource: "finalize", Namespace: "a", Name: "a"},
		"PATCH /apis/example.com/v2/namespaces/a/tests/b":                       {Verb: "patch", Group: "example.com", Version: "v2", Resource: "tests", Namespace: "a", Name: "b"},
		"POST /apis/apps/v1/deployments/b":                                      {Verb: "create", Group: "apps", Version: "v1", Resource: "deployments", Name: "b"},
		"OPTIONS /apis/apps/v1/deployments":                                     {Verb: "options", Group: "apps", Version: "v1", Resource: "deployments"},
		"GET /api/v1/namespaces?fieldSelector=metadata.name%3Da&watch=false":    {Verb: "list", Version: "v1", Resource: "namespaces", Name: "a", FieldSelector: "metadata.name=a"},
		"GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregate/": {Verb: "get", Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: "system:aggregate"},
	} {
		method, target := "", ""
		for i := range request {
			if request[i] == ' ' {
				method, target = request[:i], request[i+1:]
				break
			}
		}
		r := httptest.NewRequest(method, target, nil)
		path, ok := ParsePath(r.URL.Path)
		if !ok {
			t.Errorf("%s is not about objects", request)
			continue
		}
		want.User, want.Path = user, r.URL.Path
		if got := path.Attributes(r, user); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", request, got, want)
		}
	}
}
