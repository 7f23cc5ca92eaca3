package namespace

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pace"
)

// widgets is a server with two objects. It answers 405 to the verbs in refuses, whatever
// discovery says.
type widgets struct {
	names, refuses []string
	page           bool // and not a Status
	endless        int  // pages; each leads to itself
}

func (s *widgets) RoundTrip(r *http.Request) (*http.Response, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/example.com/v1/namespaces/team/widgets"), "/")
	verb := strings.ToLower(r.Method)
	switch {
	case verb == "get":
		verb = "list"
	case name == "":
		verb = "deletecollection"
	}
	code, body := http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	switch {
	case slices.Contains(s.refuses, verb):
		code, body = http.StatusMethodNotAllowed, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":405,"reason":"MethodNotAllowed"}`
	case r.URL.Path == "/api/v1/namespaces/team":
		body = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"team","uid":"1"},"spec":{"finalizers":["kubernetes"]}}`
	case verb == "deletecollection":
		s.names = nil
	case verb == "delete":
		s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == name })
	default:
		var items []string
		for _, n := range s.names {
			items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"team","name":%q,"resourceVersion":"1"}}`, n))
		}
		token := ""
		if s.endless > 0 {
			s.endless, token = s.endless-1, "again"
		}
		body = fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5","continue":%q},"items":[%s]}`, token, strings.Join(items, ","))
	}
	contentType := "application/json"
	if code != http.StatusOK && s.page {
		contentType, body = "text/html", "<html>not allowed</html>"
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// emptied has the controller empty the namespace of widgets.
func (s *widgets) emptied(t *testing.T, namespace *corev1.Namespace) (before, remaining int, err error) {
	t.Helper()
	cl, err := client.New(&rest.Config{Host: "http://server"}, client.Options{WrapTransport: func(http.RoundTripper) http.RoundTripper { return s }})
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{client: cl, api: client.For[*corev1.Namespace](cl), pace: pace.New(1)}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	found, err := c.emptyOf(t.Context(), discovery.Resource{Mapping: scheme.Mapping{Kind: kind, Resource: "widgets", Scope: scheme.Namespaced},
		Verbs: []string{"list", "delete", "deletecollection"}}, namespace)
	return found.before, found.remaining, err
}

// A server whose pages have no end is not asked for ever at once.
func TestPagesWithoutAnEnd(t *testing.T) {
	const pages = 100
	s := &widgets{names: []string{"a", "b"}, endless: pages}
	_, _, err := s.emptied(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "1"}})
	if err == nil || s.endless < pages-3 || len(s.names) > 0 {
		t.Errorf("%d pages were read, the server has %q, %v", pages-s.endless, s.names, err)
	}
}

// A resource for which the server does not do what discovery says keeps no namespace, as
// long as there is another way. One that cannot be deleted does, while there are any.
func TestVerbsThatAreOnlyInDiscovery(t *testing.T) {
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "1"}}
	for name, test := range map[string]struct {
		refuses   []string
		remaining int
		fails     bool
	}{
		"none":                        {nil, 0, false},
		"deletecollection":            {[]string{"deletecollection"}, 0, false},
		"list":                        {[]string{"list"}, 0, false},
		"list, by a proxy":            {[]string{"list"}, 0, true},
		"all":                         {[]string{"list", "delete", "deletecollection"}, 0, false},
		"delete":                      {[]string{"delete"}, 0, false},
		"delete and deletecollection": {[]string{"delete", "deletecollection"}, 2, true},
	} {
		s := &widgets{names: []string{"a", "b"}, refuses: test.refuses, page: name == "list, by a proxy"}
		_, remaining, err := s.emptied(t, team)
		if remaining != test.remaining || (err != nil) != test.fails {
			t.Errorf("%s: %d remain, %v", name, remaining, err)
		}
		if gone := len(s.names) == 0; gone == (test.fails || slices.Contains(test.refuses, "list")) {
			t.Errorf("%s: the server has %q", name, s.names)
		}
	}
}
