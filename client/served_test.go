package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestServed(t *testing.T) {
	const page, status = "<html><body>404 Not Found</body></html>", `{"kind":"Status","apiVersion":"v1","code":404,"reason":"NotFound"}`
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	const others = `{"kind":"APIGroupList","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v2"}]}]}`
	for name, test := range map[string]struct {
		gvr        schema.GroupVersionResource
		answers    map[string]string // by path; others are 404
		fallback   string            // the body of a 404
		want, fail bool
	}{
		"served":                       {gvr: pods, answers: map[string]string{"/api/v1": `{"kind":"APIResourceList","resources":[{"name":"nodes"},{"name":"pods"}]}`}, want: true},
		"the list lacks it":            {gvr: pods, answers: map[string]string{"/api/v1": `{"kind":"APIResourceList","resources":[{"name":"pods/status"}]}`}},
		"no such group version":        {gvr: widgets, answers: map[string]string{"/apis": others}, fallback: status},
		"no such path":                 {gvr: widgets, answers: map[string]string{"/apis": others}, fallback: "404 page not found\n"},
		"pages for everything":         {gvr: widgets, fallback: page, fail: true},
		"pages but for the groups":     {gvr: widgets, answers: map[string]string{"/apis": others}, fallback: page, fail: true},
		"plain pages for everything":   {gvr: widgets, fallback: "404 page not found\n", fail: true},
		"Status for everything":        {gvr: widgets, fallback: status, fail: true},
		"no core group":                {gvr: pods, fallback: status, fail: true},
		"another document":             {gvr: pods, answers: map[string]string{"/api/v1": `{}`}, fail: true},
		"a page that pretends success": {gvr: pods, answers: map[string]string{"/api/v1": page}, fail: true},
		"a list that says nothing":     {gvr: pods, answers: map[string]string{"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1"}`}, fail: true},
		"a list of null":               {gvr: pods, answers: map[string]string{"/api/v1": `{"kind":"APIResourceList","resources":null}`}, fail: true},
		"a list of nothing":            {gvr: pods, answers: map[string]string{"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`}},
		"a list of others":             {gvr: pods, answers: map[string]string{"/api/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments"}]}`}, fail: true},
		"groups that say nothing":      {gvr: widgets, answers: map[string]string{"/apis": `{"kind":"APIGroupList"}`}, fallback: status, fail: true},
		"no groups":                    {gvr: widgets, answers: map[string]string{"/apis": `{"kind":"APIGroupList","groups":[]}`}, fallback: status},
		"the groups have it": {gvr: widgets, fallback: status, fail: true,
			answers: map[string]string{"/apis": `{"kind":"APIGroupList","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1"}]}]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, ok := test.answers[r.URL.Path]
				switch {
				case ok:
					w.Header().Set("Content-Type", "application/json")
				case test.fallback == page:
					w.Header().Set("Content-Type", "text/html")
				case test.fallback == status:
					w.Header().Set("Content-Type", "application/json")
				default:
					w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				}
				if !ok {
					w.WriteHeader(http.StatusNotFound)
					body = test.fallback
				}
				_, _ = io.WriteString(w, body)
			}))
			defer server.Close()
			c, err := New(&rest.Config{Host: server.URL}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseIdleConnections()
			served, err := Dynamic(c, test.gvr).Served(t.Context())
			if served != test.want || (err != nil) != test.fail {
				t.Errorf("served %v, %v", served, err)
			}
		})
	}
}
