package apiserver

import (
	"strings"
	"testing"
)

// TestOrderOfChecks: of several mistakes in a request, the one is answered that Kubernetes looks
// at first: for each verb another order.
func TestOrderOfChecks(t *testing.T) {
	c := newWritable(t, func(s *setup) { s.config.MaxBodyBytes = 1 << 10 })
	const (
		form, media, size, options, body = "form", "media type", "size", "options", "body"
		reviews                          = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	)
	codes := map[string]int{form: 406, media: 415, size: 413, options: 422, body: 400}
	for _, tt := range []struct {
		method, path string
		order        []string
	}{
		{"POST", configMaps, []string{form, media, size, options, body}},
		{"POST", "/api/v1/namespaces/default/pods/a/eviction", []string{form, media, size, options, body}},
		{"POST", reviews, []string{form, media, size, options, body}},
		{"PUT", configMaps + "/a", []string{form, size, options, media, body}},
		{"PUT", "/apis/apps/v1/namespaces/default/deployments/a/scale", []string{form, size, options, media, body}},
		{"PATCH", configMaps + "/a", []string{media, form, size, options, body}},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/a/scale", []string{media, form, size, options, body}},
	} {
		for i, first := range tt.order {
			headers := map[string]string{"Content-Type": jsonBody, "Accept": "Accept: application/json"}
			if tt.method == "PATCH" {
				headers["Content-Type"] = merge
			}
			path, sent := tt.path, "}"
			for _, mistake := range tt.order[i:] {
				switch mistake {
				case form:
					headers["Accept"] = "Accept: image/png"
				case media:
					headers["Content-Type"] = "Content-Type: image/png"
				case size:
					sent = strings.Repeat("}", 2<<10)
				case options:
					path += "?dryRun=Some"
				}
			}
			if got := c.do(tt.method, path, sent, headers["Content-Type"], headers["Accept"]); got.code != codes[first] {
				t.Errorf("%s %s with wrong %s: %d, want %d: %s", tt.method, tt.path, strings.Join(tt.order[i:], ", "), got.code, codes[first], got.body)
			}
		}
	}
}
