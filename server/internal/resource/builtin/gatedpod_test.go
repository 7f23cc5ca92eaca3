package builtin_test

import (
	"slices"
	"testing"
)

// TestGatedPodIsOnlyNarrowed: what directs a pod that waits at a scheduling gate may only be narrowed.
func TestGatedPodIsOnlyNarrowed(t *testing.T) {
	const (
		gates    = "spec.schedulingGates=[{name: g}]"
		required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms="
		term     = "{matchExpressions: [{key: k, operator: In, values: [v]}]}"
		more     = "{matchExpressions: [{key: k, operator: In, values: [v]}, {key: l, operator: Exists}]}"
		wider    = "{matchExpressions: [{key: k, operator: In, values: [v, w]}]}"
		fields   = "{matchFields: [{key: metadata.name, operator: In, values: [node]}]}"
		both     = "{matchExpressions: [{key: l, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [node]}]}"
		prefer   = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution=[{weight: 1, preference: {matchExpressions: [{key: k, operator: Exists}]}}]"
		apart    = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{topologyKey: t, labelSelector: {matchLabels: {a: b}}}]"
		together = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{topologyKey: t, labelSelector: {matchLabels: {a: b}}}]"
		terms    = "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	)
	for _, tt := range []struct {
		name     string
		old, new []string
		want     []string
	}{
		{"a requirement more in the term", []string{required + "[" + term + "]"}, []string{required + "[" + more + "]"}, nil},
		{"requirements on fields more", []string{required + "[" + fields + "]"}, []string{required + "[" + both + "]"}, nil},
		{"a value more in a requirement", []string{required + "[" + term + "]"}, []string{required + "[" + wider + "]"}, []string{terms + "[0]"}},
		{"a requirement less", []string{required + "[" + more + "]"}, []string{required + "[" + term + "]"}, []string{terms + "[0]"}},
		{"another requirement on fields", []string{required + "[" + both + "]"}, []string{required + "[{matchExpressions: [{key: l, operator: Exists}]}]"}, []string{terms + "[0]"}},
		{"a term more", []string{required + "[" + term + "]"}, []string{required + "[" + term + ", " + more + "]"}, []string{terms}},
		{"a term less", []string{required + "[" + term + ", " + more + "]"}, []string{required + "[" + term + "]"}, []string{terms}},
		{"requirements in a term that matches no node", []string{required + "[{}]"}, []string{required + "[" + term + "]"}, []string{terms + "[0]"}},
		{"both terms are wrong", []string{required + "[" + more + ", " + more + "]"}, []string{required + "[" + term + ", " + wider + "]"}, []string{terms + "[0]", terms + "[1]"}},
		{"node affinity goes", []string{apart, required + "[" + term + "]"}, []string{apart}, []string{terms}},
		{"affinity goes", []string{required + "[" + term + "]"}, nil, []string{terms}},
		{"affinity of the node comes", nil, []string{required + "[" + term + "]"}, nil},
		{"affinity of the node comes to that of pods", []string{apart}, []string{apart, required + "[" + term + "]"}, nil},
		{"preferences come", []string{required + "[" + term + "]"}, []string{required + "[" + term + "]", prefer}, nil},
		{"preferences go", []string{prefer}, nil, nil},
		{"the selector and the affinity are wrong", []string{"spec.nodeSelector={a: b}", required + "[" + term + "]"}, []string{"spec.nodeSelector={a: c}", required + "[" + wider + "]"}, []string{
			"Invalid spec.nodeSelector", terms + "[0]",
		}},
		{"gates come", nil, []string{"spec.schedulingGates=[{name: h}, {name: g}, {name: i}, {name: h}]"}, []string{
			"Duplicate spec.schedulingGates[3]", "Forbidden spec.schedulingGates[2].name", "Forbidden spec.schedulingGates[3].name",
		}},
		{"anti-affinity goes", []string{apart, required + "[" + term + "]"}, []string{required + "[" + term + "]"}, []string{"Forbidden spec"}},
		{"anti-affinity comes", []string{required + "[" + term + "]"}, []string{required + "[" + term + "]", apart}, []string{"Forbidden spec"}},
		{"affinity to pods comes with that to nodes", nil, []string{required + "[" + term + "]", together}, []string{"Forbidden spec"}},
		{"affinity to pods goes, as a whole", []string{together}, nil, []string{"Forbidden spec"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, old := manifest(t, "pod", append([]string{"spec.nodeName-", gates}, tt.old...)...)
			_, obj := manifest(t, "pod", append([]string{"spec.nodeName-", gates}, tt.new...)...)
			if got := complaints(r.Strategy.ValidateUpdate(obj, old)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestGateOfAPodWithoutGates: a gate that may not come is refused once.
func TestGateOfAPodWithoutGates(t *testing.T) {
	r, old := manifest(t, "pod", "spec.nodeName-")
	_, obj := manifest(t, "pod", "spec.nodeName-", "spec.schedulingGates=[{name: g}]")
	want := []string{"Forbidden spec.schedulingGates[0].name"}
	if got := complaints(r.Strategy.ValidateUpdate(obj, old)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
