package builtin_test

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestEndpointSlices(t *testing.T) {
	const (
		first     = "endpoints.0."
		label     = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
		subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	)
	many := func(what string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(what+", ", n), ", ") + "]"
	}
	checkRefusals(t, []refusal{
		{"endpointslice", []string{"addressType="}, []string{"addressType: Required value"}},
		{"endpointslice", []string{"addressType=Other", first + "addresses=[x]"}, []string{`addressType: Unsupported value: "Other": supported values: "FQDN", "IPv4", "IPv6"`}},
		{"endpointslice", []string{"endpoints=[{addresses: []}, {addresses: " + many("10.0.0.1", 101) + "}]"},
			[]string{"endpoints[0].addresses: Required value", "endpoints[1].addresses: Too many: 101: must have at most 100 items"}},
		{"endpointslice", []string{"endpoints=" + many("{addresses: [10.0.0.1]}", 1001)}, []string{"endpoints: Too many: 1001: must have at most 1000 items"}},
		{"endpointslice", []string{first + "addresses=[x, '2001:db8::1', 169.254.0.1]"}, []string{
			`endpoints[0].addresses[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
			`endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address`,
			`endpoints[0].addresses[2]: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)`,
		}},
		{"endpointslice", []string{"addressType=IPv6", first + "addresses=['::', 10.0.0.1, '2001:DB8::1']"}, []string{
			`endpoints[0].addresses[0]: Invalid value: "::": may not be unspecified (::)`,
			`endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address`,
			`endpoints[0].addresses[2]: Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")`,
		}},
		{"endpointslice", []string{"addressType=FQDN", first + "addresses=[example, a.example.com]"}, []string{`endpoints[0].addresses[0]: Invalid value: "example": should be a domain with at least two segments separated by dots`}},
		{"endpointslice", []string{first + "nodeName=a_b", first + "hostname=A", first + "zone=a b"}, []string{
			`endpoints[0].nodeName: Invalid value: "a_b": ` + subdomain, `endpoints[0].hostname: Invalid value: "A": ` + label,
		}},
		{"endpointslice", []string{first + "hints={forZones: [{name: a}, {name: a}, {name: '-'}], forNodes: [{name: a}, {name: a}, {name: ''}]}"}, []string{
			`endpoints[0].hints.forZones[1].name: Duplicate value: "a"`,
			`endpoints[0].hints.forZones[2].name: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character` +
				` (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			`endpoints[0].hints.forNodes[1].name: Duplicate value: "a"`,
			`endpoints[0].hints.forNodes[2].name: Invalid value: "": ` + subdomain,
		}},
		{"endpointslice", []string{first + "hints={forZones: " + many("{name: a}", 9) + ", forNodes: " + many("{name: a}", 9) + "}"}, []string{"endpoints[0].hints.forZones: Too many: 9: must have at most 8 items"}},
		{"endpointslice", []string{first + "hints={forNodes: " + many("{name: a}", 9) + "}"}, []string{"endpoints[0].hints.forNodes: Too many: 9: must have at most 8 items"}},
		{"endpointslice", []string{"ports=[{port: 1}, {port: 2}, {name: A, protocol: ICMP, appProtocol: a/b/c}, {name: b, port: 0}]"}, []string{
			`ports[1].name: Duplicate value: ""`,
			`ports[2].name: Invalid value: "A": ` + label,
			`ports[2].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"`,
			`ports[2].appProtocol: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character` +
				` (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
		}},
	})
}

// TestUpdatesOfEndpointSlices: labels and a topology count as a change, endpoints that stay are not checked, and the
// topology of old clients becomes the name of the node.
func TestUpdatesOfEndpointSlices(t *testing.T) {
	edit := func(edits ...string) *discoveryv1.EndpointSlice {
		_, obj := manifestAsIs(t, "endpointslice", edits...)
		return obj.(*discoveryv1.EndpointSlice)
	}
	r, _ := manifest(t, "endpointslice")
	old := edit("metadata.generation=3", "endpoints=[{addresses: [0.0.0.0], deprecatedTopology: {kubernetes.io/hostname: node}}]")
	for _, tt := range []struct {
		name       string
		edits      []string
		generation int64
		node       string
		topology   int
		want       []string
	}{
		{"nothing", []string{"endpoints=[{addresses: [0.0.0.0], deprecatedTopology: {kubernetes.io/hostname: node}}]"}, 3, "", 1, nil},
		{"labels", []string{"endpoints=[{addresses: [0.0.0.0], deprecatedTopology: {kubernetes.io/hostname: node}}]", "metadata.labels={a: b}"}, 4, "", 1, nil},
		{"addresses", []string{"endpoints=[{addresses: [10.0.0.9], deprecatedTopology: {kubernetes.io/hostname: node}}]"}, 4, "node", 0, nil},
		{"another node", []string{"endpoints=[{addresses: [0.0.0.0], deprecatedTopology: {kubernetes.io/hostname: other}}]"}, 4, "", 0, []string{"Invalid endpoints[0].addresses[0]"}},
		{"the type", []string{"addressType=FQDN", "endpoints=[]"}, 4, "", 0, []string{"Invalid addressType"}},
	} {
		changed := edit(append(tt.edits, "metadata.generation=3")...)
		r.Strategy.PrepareForUpdate(changed, old)
		if got := complaints(r.Strategy.ValidateUpdate(changed, old)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: refused with %v, not %v", tt.name, got, tt.want)
		}
		node, topology := "", 0
		for _, e := range changed.Endpoints {
			topology += len(e.DeprecatedTopology)
			if e.NodeName != nil {
				node = *e.NodeName
			}
		}
		if changed.Generation != tt.generation || node != tt.node || topology != tt.topology {
			t.Errorf("%s: generation %d, node %q, %d labels of topology", tt.name, changed.Generation, node, topology)
		}
	}
	if made := edit("endpoints.0.deprecatedTopology={kubernetes.io/hostname: node}"); true {
		r.Strategy.PrepareForCreate(made)
		if e := made.Endpoints[0]; e.DeprecatedTopology != nil || e.NodeName != nil {
			t.Errorf("a new slice keeps %+v", e)
		}
	}
}

func TestWarningsOfEndpointSlices(t *testing.T) {
	for _, tt := range []struct {
		edits []string
		want  []string
	}{
		{nil, nil},
		{[]string{"addressType=FQDN", "endpoints.0.addresses=[a.example.com]"}, []string{"spec.addressType: FQDN endpoints are deprecated"}},
		{[]string{"addressType=IPv6", "endpoints.0.addresses=['2001:db8:0::1']"}, []string{`endpoints[0].addresses[0]: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")`}},
		{[]string{"addressType=IPv6", "endpoints.0.addresses=['2001:db8:0::1']", "metadata.labels={endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}"}, nil},
	} {
		r, obj := manifest(t, "endpointslice", tt.edits...)
		if got := r.Strategy.Warnings(obj, nil); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %q, not %q", tt.edits, got, tt.want)
		}
	}
}
