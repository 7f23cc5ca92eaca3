package relay

import (
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

const notFoundStatus = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`

// TestResourceIsGone: a cache is dropped at the first 404 that the upstream's discovery confirms. kube-apiserver sends a 404 without a Status for a group
// that it does not have; the same from a proxy in between, which has a page for every path, says nothing.
func TestResourceIsGone(t *testing.T) {
	const group = `{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}]}`
	const boxes = `{"name":"boxes","singularName":"box","namespaced":true,"kind":"Box","verbs":["list","watch"]}`
	for name, test := range map[string]struct {
		groups, resources string // 404 if empty
		status            string // of the 404
		gone              bool
	}{
		"the group":                  {groups: "", gone: true},
		"the version":                {groups: strings.ReplaceAll(group, "v1", "v2"), gone: true},
		"the resource":               {groups: group, resources: "-", status: notFoundStatus, gone: true},
		"a proxy's page":             {groups: "404"},
		"a 404, and it is served":    {groups: group, resources: boxes},
		"a Status, and it is served": {groups: group, resources: boxes, status: notFoundStatus},
	} {
		t.Run(name, func(t *testing.T) {
			there := true
			r := relayOf(t, func(w http.ResponseWriter, req *http.Request) {
				resources := test.resources
				if there {
					resources = boxes
				}
				w.Header().Set("Content-Type", "application/json")
				switch {
				case req.URL.Path == "/apis" && test.groups != "404":
					_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+test.groups+`]}`)
				case req.URL.Path == "/apis/example.com/v1" && resources != "":
					_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[`+strings.Trim(resources, "-")+`]}`)
				case test.status != "":
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, test.status)
				default:
					http.Error(w, "404 page not found", http.StatusNotFound)
				}
			})
			r.running, r.kinds.builtin = t.Context(), builtin.Table()
			res, err := r.kinds.find(t.Context(), schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boxes"})
			if err != nil {
				t.Fatal(err)
			}
			there = false
			for _, find := range []struct {
				who string
				out func(s *source)
			}{
				{"the stream", func(s *source) {
					_, err := s.endpoint.Watch(t.Context(), metav1.ListOptions{})
					s.failed("", err)
				}},
				{"a question", func(s *source) {
					if at, err := s.Current(t.Context()); err == nil {
						t.Errorf("the version is %d", at)
					}
				}},
			} {
				s := r.newSource(res)
				defer s.stop()
				if find.out(s); s.isBroken() != test.gone {
					t.Errorf("%s finds out: dropped %t, want %t", find.who, s.isBroken(), test.gone)
				}
			}
		})
	}
}
