package builtin_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// decodedAsIs returns an object as a client has sent it.
func decodedAsIs(t *testing.T, text string) (*resource.Resource, resource.Object) {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatal(err)
	}
	r := builtin.Table().ByKind(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
	obj, _, _, err := r.DecodeBody(resource.MediaTypeYAML, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r, obj
}

// TestStatusWarnings are about addresses that readers may understand differently.
func TestStatusWarnings(t *testing.T) {
	const balancer = "status: {loadBalancer: {ingress: [{ip: 10.0.0.1}, {hostname: a}, {ip: 'FD00::1'}]}}}"
	const said = `status.loadBalancer.ingress[2]: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")`
	for object, want := range map[string][]string{
		"{apiVersion: v1, kind: Service, " + balancer:                   {said},
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, " + balancer: {said},
		"{apiVersion: v1, kind: Pod, status: {podIPs: [{ip: 010.0.0.1}], hostIPs: [{ip: 10.0.0.1}, {ip: '::ffff:10.0.0.2'}]}}": {
			`status.podIPs[0].ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"`,
			`status.hostIPs[1].ip: non-standard IP address "::ffff:10.0.0.2" is invalid: use "10.0.0.2"`,
		},
	} {
		r, obj := decodedAsIs(t, object)
		if got := r.Strategy.StatusWarnings(obj); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
}
