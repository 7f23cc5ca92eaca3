package builtin_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestValidateServices: all that is wrong with a Service is told, in kube-apiserver's order.
func TestValidateServices(t *testing.T) {
	for _, tt := range []struct {
		edits []string
		want  []string
	}{
		{[]string{"spec.clusterIP=None", "spec.type=NodePort"}, []string{"Invalid spec.clusterIPs[0]"}},
		{[]string{"spec.clusterIP=None", "spec.ports-"}, nil},
		{[]string{"spec.type=ExternalName", "spec.externalName=a.example.", "spec.ipFamilies=[IPv4]"}, []string{"Forbidden spec.ipFamilies"}},
		{[]string{"spec.externalIPs=[127.0.0.1, a]"}, []string{"Invalid spec.externalIPs[0]", "Invalid spec.externalIPs[1]"}},
		{[]string{"spec.type=LoadBalancer", "spec.loadBalancerClass=a b"}, []string{"Invalid spec.loadBalancerClass"}},
		{[]string{"metadata.annotations={service.beta.kubernetes.io/load-balancer-source-ranges: a}"},
			[]string{"Forbidden metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]", "Invalid metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]"}},
		{[]string{"spec.ports=[{port: 0, protocol: A}]", "spec.sessionAffinity=A", "spec.type=A"},
			[]string{"Invalid spec.ports[0].port", "NotSupported spec.ports[0].protocol", "Invalid spec.ports[0].targetPort", "NotSupported spec.sessionAffinity", "NotSupported spec.type"}},
		{[]string{"spec.internalTrafficPolicy=''", "spec.trafficDistribution=''"}, []string{"NotSupported spec.internalTrafficPolicy", "NotSupported spec.trafficDistribution"}},
	} {
		t.Run(strings.Join(tt.edits, " "), func(t *testing.T) {
			r, obj := manifest(t, "service", tt.edits...)
			if got := complaints(validateNew(r, obj)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestStatusOfBalancers: what a controller says of a load balancer is checked, and what was stored
// before stays.
func TestStatusOfBalancers(t *testing.T) {
	for _, tt := range []struct {
		ingress string
		want    []string
	}{
		{"{ip: 192.0.2.1, hostname: a.example.com}", nil},
		{"{ip: 192.0.2.1, ipMode: Proxy}", nil},
		{"{ip: 192.0.2.01}", nil}, // it was stored
		{"{ip: 192.0.2.02}", []string{"Invalid status.loadBalancer.ingress[0].ip"}},
		{"{ip: 192.0.2.1, ipMode: vip}", []string{"NotSupported status.loadBalancer.ingress[0].ipMode"}},
		{"{hostname: a_b, ipMode: VIP}", []string{"Forbidden status.loadBalancer.ingress[0].ipMode", "Invalid status.loadBalancer.ingress[0].hostname"}},
		{"{hostname: 192.0.2.1}", []string{"Invalid status.loadBalancer.ingress[0].hostname"}},
	} {
		r, old := manifest(t, "service-balanced", "status.loadBalancer.ingress=[{ip: 192.0.2.01}]")
		_, obj := manifest(t, "service-balanced", "status.loadBalancer.ingress=["+tt.ingress+"]")
		if got := complaints(r.Strategy.ValidateStatus(obj, old)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.ingress, got, tt.want)
		}
		first := obj.(*corev1.Service).Status.LoadBalancer.Ingress[0]
		if first.IP != "" && first.IPMode == nil {
			t.Errorf("%s: nothing says how the address is served", tt.ingress)
		}
	}
}

// TestServiceWarnings: what is ignored or deprecated is told to whoever writes it.
func TestServiceWarnings(t *testing.T) {
	for edits, want := range map[string]string{
		"spec.externalName=a":                         `spec.externalName is ignored when spec.type is not "ExternalName"`,
		"spec.externalIPs=[192.0.2.1]":                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
		"spec.clusterIP=None spec.loadBalancerIP=::1": "spec.loadBalancerIP is ignored for headless services",
		"spec.trafficDistribution=PreferClose":        `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`,
	} {
		r, obj := manifest(t, "service", strings.Split(edits, " ")...)
		if got := strings.Join(r.Strategy.Warnings(obj, nil), "; "); got != want {
			t.Errorf("%s: %q, not %q", edits, got, want)
		}
	}
}
