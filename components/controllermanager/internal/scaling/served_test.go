package scaling

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/discovery"
)

// versions is a server with one group. v1 is the preferred version; each has these resources.
type versions map[string][]string

func (v versions) RoundTrip(r *http.Request) (*http.Response, error) {
	code, body := http.StatusNotFound, `{"kind":"Status","status":"Failure","code":404,"reason":"NotFound"}`
	name, isVersion := strings.CutPrefix(r.URL.Path, "/apis/example.com/")
	switch {
	case r.URL.Path == "/api":
		code, body = http.StatusOK, `{"kind":"APIVersions","versions":[]}`
	case r.URL.Path == "/apis":
		code, body = http.StatusOK, `{"kind":"APIGroupList","groups":[{"name":"example.com","versions":[{"version":"v1"},{"version":"v1beta1"}],"preferredVersion":{"version":"v1"}}]}`
	case isVersion:
		var all []string
		for _, resource := range v[name] {
			all = append(all, fmt.Sprintf(`{"name":%q,"kind":"Widget","namespaced":true,"verbs":["get"]}`, resource))
		}
		code, body = http.StatusOK, fmt.Sprintf(`{"kind":"APIResourceList","resources":[%s]}`, strings.Join(all, ","))
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestServed(t *testing.T) {
	plain, scaled := []string{"widgets"}, []string{"widgets", "widgets/status", "widgets/scale"}
	for name, test := range map[string]struct {
		served  versions
		of      string // version
		want    string
		without bool // the subresource
	}{
		"both have it":                           {versions{"v1": scaled, "v1beta1": scaled}, "v1beta1", "v1", false},
		"the preferred version has it":           {versions{"v1": scaled, "v1beta1": plain}, "v1beta1", "v1", false},
		"the kind's version has it":              {versions{"v1": plain, "v1beta1": scaled}, "v1beta1", "v1beta1", false},
		"another version than the kind's has it": {versions{"v1": plain, "v1beta1": scaled}, "v1", "v1", true},
		"only the kind's version has the kind":   {versions{"v1": nil, "v1beta1": scaled}, "v1beta1", "v1beta1", false},
		"neither has it":                         {versions{"v1": plain, "v1beta1": plain}, "v1beta1", "v1", true},
		"the kind's version is served no more":   {versions{"v1": plain}, "v1alpha1", "v1", true},
	} {
		c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{WrapTransport: func(http.RoundTripper) http.RoundTripper { return test.served }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Served(t.Context(), discovery.NewMapper(c, discovery.Options{}), schema.GroupVersionKind{Group: "example.com", Version: test.of, Kind: "Widget"})
		if err != nil || r.Mapping.Kind.Version != test.want || Has(r) == test.without {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
