package builtin_test

import (
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

const dnsSubdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character" +
	` (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`

func TestIngresses(t *testing.T) {
	const (
		paths   = "spec.rules.0.http.paths"
		at      = "spec.rules[0].http.paths"
		first   = paths + ".0."
		firstAt = at + "[0]."
		backend = firstAt + "backend"
		slashes = `may not contain '/'`
	)
	checkRefusals(t, []refusal{
		{"ingress", []string{"spec.rules-"}, []string{"spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"}},
		{"ingress", []string{"spec.rules.0.host=10.0.0.1", paths + "=[]"}, []string{`spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address`, at + ": Required value"}},
		{"ingress", []string{"spec.rules.0.host='2001:db8::1'"}, []string{
			`spec.rules[0].host: Invalid value: "2001:db8::1": must be a DNS name, not an IP address`, `spec.rules[0].host: Invalid value: "2001:db8::1": ` + dnsSubdomain,
		}},
		{"ingress", []string{"spec.tls=[{hosts: [10.0.0.1], secretName: a_b}]", "spec.ingressClassName=''"}, []string{
			`spec.tls[0].secretName: Invalid value: "a_b": ` + dnsSubdomain, `spec.ingressClassName: Invalid value: "": ` + dnsSubdomain,
		}},
		{"ingress", []string{first + "pathType-"}, []string{firstAt + "pathType: Required value: pathType must be specified"}},
		{"ingress", []string{first + "pathType=''", first + "path=a"}, []string{firstAt + `pathType: Unsupported value: "": supported values: "Exact", "ImplementationSpecific", "Prefix"`}},
		{"ingress", []string{first + "path=a//%2F/."}, []string{
			firstAt + `path: Invalid value: "a//%2F/.": must be an absolute path`, firstAt + `path: Invalid value: "a//%2F/.": must not contain '//'`,
			firstAt + `path: Invalid value: "a//%2F/.": must not contain '%2F'`, firstAt + `path: Invalid value: "a//%2F/.": cannot end with '/.'`,
		}},
		{"ingress", []string{first + "path=", first + "pathType=ImplementationSpecific"}, nil},
		{"ingress", []string{first + "path=//", first + "pathType=ImplementationSpecific"}, nil},
		{"ingress", []string{first + "backend={}"}, []string{backend + `: Invalid value: "": resource or service backend is required`}},
		{"ingress", []string{first + "backend={service: {name: ''}, resource: {}}"}, []string{backend + `: Invalid value: "": cannot set both resource and service backends`}},
		{"ingress", []string{first + "backend={service: {name: '', port: {}}}"}, []string{backend + ".service.name: Required value", backend + ": Required value: port name or number is required"}},
		{"ingress", []string{first + "backend={service: {name: 1a, port: {name: web, number: 80}}}"}, []string{backend + `: Invalid value: "": cannot set both port name & port number`}},
		{"ingress", []string{first + "backend={resource: {apiGroup: a_b, kind: '', name: a/b}}"}, []string{
			backend + `.resource.apiGroup: Invalid value: "a_b": ` + dnsSubdomain, backend + ".resource.kind: Required value", backend + `.resource.name: Invalid value: "a/b": ` + slashes,
		}},
		{"ingress", []string{"metadata.annotations={kubernetes.io/ingress.class: slow}"}, []string{
			`annotations.kubernetes.io/ingress.class: Invalid value: "slow": must match ` + "`ingressClassName` when both are specified",
		}},
		{"ingress", []string{"metadata.annotations={kubernetes.io/ingress.class: fast}"}, nil},

		{"ingressclass", []string{"spec.controller=a/" + strings.Repeat("b", 250)}, []string{"spec.controller: Too long: may not be more than 250 bytes"}},
		{"ingressclass", []string{"spec.controller="}, []string{"spec.controller: Required value"}},
		{"ingressclass", []string{"spec.parameters={apiGroup: a_b, kind: a/b, scope: Other}"}, []string{
			`spec.parameters.apiGroup: Invalid value: "a_b": ` + dnsSubdomain, `spec.parameters.kind: Invalid value: "a/b": ` + slashes,
			`spec.parameters.scope: Unsupported value: "Other": supported values: "Cluster", "Namespace"`, "spec.parameters.name: Required value",
		}},
		{"ingressclass", []string{"spec.parameters.scope=Namespace"}, []string{"spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"}},
		{"ingressclass", []string{"spec.parameters.namespace=a"}, []string{"spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"}},
		{"ingressclass", []string{"spec.parameters.scope=Namespace", "spec.parameters.namespace=a.b"}, []string{`spec.parameters.namespace: Invalid value: "a.b": must not contain dots`}},
	})
}

func TestNetworkPolicies(t *testing.T) {
	const ports, block = "spec.ingress.0.ports=", "spec.ingress.0.from.0.ipBlock="
	const portsAt, peer = "spec.ingress[0].ports", "spec.ingress[0].from[0]"
	checkRefusals(t, []refusal{
		{"networkpolicy", []string{ports + "[{protocol: ''}, {endPort: 9}, {port: 80, endPort: 70000}, {port: 80, endPort: 0}, {port: A, endPort: 9}]"}, []string{
			portsAt + `[0].protocol: Unsupported value: "": supported values: "TCP", "UDP", "SCTP"`,
			portsAt + "[1].endPort: Invalid value: 9: may not be specified when `port` is not specified",
			portsAt + "[2].endPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
			portsAt + "[3].endPort: Invalid value: 0: must be greater than or equal to `port`",
			portsAt + "[3].endPort: Invalid value: 0: must be between 1 and 65535, inclusive",
			portsAt + "[4].endPort: Invalid value: 9: may not be specified when `port` is non-numeric",
			portsAt + `[4].port: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
			portsAt + `[4].port: Invalid value: "A": must contain at least one letter (a-z)`,
		}},
		{"networkpolicy", []string{block + "{cidr: '', except: [x]}", "spec.policyTypes=[Other]"}, []string{
			`spec.policyTypes[0]: Unsupported value: "Other": supported values: "Ingress", "Egress"`, peer + ".ipBlock.cidr: Required value",
		}},
		{"networkpolicy", []string{block + "{cidr: 10.0.0.0/8, except: [10.0.0.0/8, 11.0.0.0/9]}", "spec.ingress.0.from.0.podSelector={}"}, []string{
			peer + ".ipBlock.except[0]: Invalid value: \"10.0.0.0/8\": must be a strict subset of `cidr`",
			peer + ".ipBlock.except[1]: Invalid value: \"11.0.0.0/9\": must be a strict subset of `cidr`",
			peer + ": Forbidden: may not specify both ipBlock and another peer",
		}},
	})
}

func TestAddressesOfServices(t *testing.T) {
	const parent, at = "spec.parentRef=", "spec.parentRef"
	checkRefusals(t, []refusal{
		{"ipaddress", []string{"metadata.name=010.1.2.3"}, []string{`metadata.name: Invalid value: "010.1.2.3": must not have leading 0s`}},
		{"ipaddress", []string{"metadata.name=a"}, []string{`metadata.name: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`}},
		{"ipaddress", []string{at + "-"}, []string{at + ": Required value"}},
		{"ipaddress", []string{parent + "{group: a_b, resource: '', name: '', namespace: a/b}"}, []string{
			at + `.group: Invalid value: "a_b": ` + dnsSubdomain, at + `.namespace: Invalid value: "a/b": may not contain '/'`, at + ".resource: Required value", at + ".name: Required value",
		}},
		{"servicecidr", []string{"spec.cidrs=[]"}, []string{"spec.cidrs: Required value: at least one CIDR required"}},
		{"servicecidr", []string{"spec.cidrs=[a, b, c]"}, []string{`spec.cidrs: Invalid value: {"cidrs":["a","b","c"]}: may only hold up to 2 values`}},
		{"servicecidr", []string{"spec.cidrs=[10.0.0.0/8, 11.0.0.0/8]"}, []string{
			`spec.cidrs: Invalid value: ["10.0.0.0/8","11.0.0.0/8"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64`,
		}},
		{"servicecidr", []string{"spec.cidrs=[10.0.0.0/8, '2001:db8::/64']"}, nil},
	})
}

// TestUpdatesOfNetworking: what an object had before may stay, and a ServiceCIDR may grow by the other family.
func TestUpdatesOfNetworking(t *testing.T) {
	for _, tt := range []struct {
		manifest   string
		old, edits []string
		want       []string
	}{
		{"ingress", []string{"spec.tls=[{secretName: a_b}]"}, []string{"spec.tls=[{secretName: c_d}]"}, nil},
		{"ingress", nil, []string{"spec.tls=[{secretName: c_d}]"}, []string{"Invalid spec.tls[0].secretName"}},
		{"ingress", []string{"spec.rules.0.host='*.a.b'", "spec.rules.0.http.paths=[]"}, []string{"spec.rules.0.host='*.a.b'", "spec.rules.0.http.paths=[]"}, nil},
		{"ingress", nil, []string{"spec.rules.0.host='*.a.b'", "spec.rules.0.http.paths=[]"}, []string{"Required spec.rules[0].http.paths"}},
		{"ingress", nil, []string{"metadata.annotations={kubernetes.io/ingress.class: slow}"}, nil},
		{"networkpolicy", []string{"spec.ingress.0.from.0.ipBlock={cidr: 10.0.0.0/08}"}, []string{"spec.ingress.0.from.0.ipBlock={cidr: 10.0.0.0/08}"}, nil},
		{"networkpolicy", nil, []string{"spec.ingress.0.from.0.ipBlock={cidr: 10.0.0.0/08}"}, []string{"Invalid spec.ingress[0].from[0].ipBlock.cidr"}},
		{"servicecidr", nil, []string{"spec.cidrs=[10.100.0.0/16, '2001:db8::/64']"}, nil},
		{"servicecidr", nil, []string{"spec.cidrs=[10.101.0.0/16]"}, []string{"Invalid spec.cidrs[0]"}},
		{"servicecidr", nil, []string{"spec.cidrs=[10.100.0.0/16, 10.101.0.0/16]"}, []string{"Invalid spec.cidrs"}},
		{"servicecidr", nil, []string{"spec.cidrs=[]"}, []string{"Invalid spec.cidrs"}},
	} {
		r, old := manifest(t, tt.manifest, tt.old...)
		_, obj := manifest(t, tt.manifest, tt.edits...)
		if got := complaints(r.Strategy.ValidateUpdate(obj, old)); !slices.Equal(got, tt.want) {
			t.Errorf("%s %v: %v, not %v", tt.manifest, tt.edits, got, tt.want)
		}
	}
	r, old := manifest(t, "ingress")
	ingress := old.DeepCopyObject().(*networkingv1.Ingress)
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "x"}, {Hostname: "10.0.0.1"}, {IP: "10.0.0.1"}}
	want := []string{"Invalid status.loadBalancer.ingress[0].ip", "Invalid status.loadBalancer.ingress[1].hostname"}
	if got := complaints(r.Strategy.ValidateStatus(ingress, old)); !slices.Equal(got, want) {
		t.Errorf("a status: %v, not %v", got, want)
	}
}

func TestWarningsOfNetworking(t *testing.T) {
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     []string
	}{
		{"ingress", []string{"metadata.annotations={kubernetes.io/ingress.class: fast}"}, nil},
		{"ingress", []string{"metadata.annotations={kubernetes.io/ingress.class: fast}", "spec.ingressClassName-"},
			[]string{`annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`}},
		{"networkpolicy", []string{"spec.egress=[{to: [{ipBlock: {cidr: '2001:db8:0::/64', except: ['2001:db8:0::/65']}}]}]"}, []string{
			`spec.egress[0].to[0].ipBlock.cidr: IPv6 CIDR value "2001:db8:0::/64" should be in RFC 5952 canonical format ("2001:db8::/64")`,
			`spec.egress[0].to[0].ipBlock.except[0]: IPv6 CIDR value "2001:db8:0::/65" should be in RFC 5952 canonical format ("2001:db8::/65")`,
		}},
	} {
		r, obj := manifest(t, tt.manifest, tt.edits...)
		if got := warnings(r, obj, nil); !slices.Equal(got, tt.want) {
			t.Errorf("%s %v: %q, not %q", tt.manifest, tt.edits, got, tt.want)
		}
	}
}
