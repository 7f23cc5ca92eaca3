package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestPairWarnings are about pairs that do not fit, and an annotation that is new.
func TestPairWarnings(t *testing.T) {
	for _, tt := range []struct{ object, old, want string }{
		{"{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, data: {tls.crt: YQ==, tls.key: YQ==}}", "", "tls: failed to find any PEM data in certificate input"},
		{"{apiVersion: v1, kind: Secret, data: {tls.crt: YQ==, tls.key: YQ==}}", "", ""},
		{"{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {kubernetes.io/enforce-mountable-secrets: ''}}}",
			"{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {kubernetes.io/enforce-mountable-secrets: ''}}}", ""},
	} {
		r, obj := prepared(t, tt.object)
		var old resource.Object
		if tt.old != "" {
			_, old = prepared(t, tt.old)
		}
		if got := strings.Join(r.Strategy.Warnings(obj, old), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.object, got, tt.want)
		}
	}
}

// TestReplicationControllersKeepNonConvertibleFields that an annotation of the old object names.
func TestReplicationControllersKeepNonConvertibleFields(t *testing.T) {
	const head = "{apiVersion: v1, kind: ReplicationController, metadata: {annotations: {non-convertible.kubernetes.io/"
	r, old := prepared(t, head+"a: x, non-convertible.kubernetes.io/spec.selector: z}}, spec: {selector: {a: b}}}")
	_, obj := prepared(t, "{apiVersion: v1, kind: ReplicationController, spec: {selector: {a: c}}}")
	var got []string
	for _, err := range r.Strategy.ValidateUpdate(obj, old) {
		got = append(got, err.Error())
	}
	want := []string{"spec.template: Required value", `a: Not found: "x": unknown non-convertible field`, `spec.selector: Invalid value: {"a":"c"}: cannot update non-convertible selector`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
