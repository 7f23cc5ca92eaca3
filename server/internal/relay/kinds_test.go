package relay

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestNamesOfKinds: users cannot have the relay ask the upstream for a path of theirs.
func TestNamesOfKinds(t *testing.T) {
	for _, c := range []struct {
		group, version, resource string
		want                     bool
	}{
		{"", "v1", "pods", true},
		{"apps", "v1", "deployments", true},
		{"metrics.k8s.io", "v1beta1", "pods", true},
		{"..", "v1", "pods", false},
		{"apps", "..", "pods", false},
		{"a/b", "v1", "pods", false},
		{"apps", "v1?x=y", "pods", false},
		{"apps", "v1", "", false},
		{"apps", "v1", strings.Repeat("p", 1000), false},
	} {
		if got := isName(schema.GroupVersionResource{Group: c.group, Version: c.version, Resource: c.resource}); got != c.want {
			t.Errorf("%q %q %.10q: %v, want %v", c.group, c.version, c.resource, got, c.want)
		}
	}
}
