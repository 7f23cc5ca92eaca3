package request

import "testing"

func TestParsePath(t *testing.T) {
	for path, want := range map[string]Path{
		"/api/v1/pods":                                   {Version: "v1", Plural: "pods"},
		"/api/v1/pods/":                                  {Version: "v1", Plural: "pods"},
		"/api/v1/namespaces":                             {Version: "v1", Plural: "namespaces"},
		"/api/v1/namespaces/a":                           {Version: "v1", Plural: "namespaces", Name: "a"},
		"/api/v1/namespaces/a/status":                    {Version: "v1", Plural: "namespaces", Name: "a", Subresource: "status"},
		"/api/v1/namespaces/a/finalize":                  {Version: "v1", Plural: "namespaces", Name: "a", Subresource: "finalize"},
		"/api/v1/namespaces/a/pods":                      {Version: "v1", Namespaced: true, Namespace: "a", Plural: "pods"},
		"/api/v1/namespaces/a/pods/b":                    {Version: "v1", Namespaced: true, Namespace: "a", Plural: "pods", Name: "b"},
		"/api/v1/namespaces/a/pods/b/log":                {Version: "v1", Namespaced: true, Namespace: "a", Plural: "pods", Name: "b", Subresource: "log"},
		"/api/v1/namespaces/a/services/b/proxy/x/y":      {Version: "v1", Namespaced: true, Namespace: "a", Plural: "services", Name: "b", Subresource: "proxy", Rest: "x/y"},
		"/api/v1/watch/pods":                             {Version: "v1", Watch: true, Plural: "pods"},
		"/api/v1/watch/namespaces/a/pods/b":              {Version: "v1", Watch: true, Namespaced: true, Namespace: "a", Plural: "pods", Name: "b"},
		"/apis/apps/v1/deployments":                      {Group: "apps", Version: "v1", Plural: "deployments"},
		"/apis/apps/v1/namespaces/a/deployments/b/scale": {Group: "apps", Version: "v1", Namespaced: true, Namespace: "a", Plural: "deployments", Name: "b", Subresource: "scale"},
	} {
		if got, ok := ParsePath(path); !ok || got != want {
			t.Errorf("%s: got %+v %v, want %+v", path, got, ok, want)
		}
	}
	for _, path := range []string{"", "/", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/api/v1//pods", "/api/v1/namespaces//pods", "/api/v1/watch"} {
		if got, ok := ParsePath(path); ok {
			t.Errorf("%q is taken for objects: %+v", path, got)
		}
	}
}
