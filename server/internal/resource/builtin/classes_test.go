package builtin_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

func TestPriorityAndRuntimeClasses(t *testing.T) {
	const reserved = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
	checkRefusals(t, []refusal{
		{"priorityclass", []string{"value=1000000001", "preemptionPolicy=Sometimes"}, []string{
			"value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
			`preemptionPolicy: Unsupported value: "Sometimes": supported values: "PreemptLowerPriority", "Never"`,
		}},
		{"priorityclass", []string{"preemptionPolicy=''"}, []string{"preemptionPolicy: Required value"}},
		{"priorityclass", []string{"metadata.name=system-mine"}, []string{reserved + "system-mine is not a known system priority class"}},
		{"priorityclass", []string{"metadata.name=system-node-critical"}, []string{reserved + "value of system-node-critical PriorityClass must be 2000001000"}},
		{"priorityclass", []string{"metadata.name=system-node-critical", "value=2000001000", "globalDefault=true"}, []string{reserved + "globalDefault of system-node-critical PriorityClass must be false"}},
		{"priorityclass", []string{"metadata.name=system-node-critical", "value=2000001000"}, nil},

		{"runtimeclass", nil, nil},
		{"runtimeclass", []string{"handler=", "overhead.podFixed={tpu: 1, cpu: -1}", "scheduling.nodeSelector={a: b c}"}, []string{
			`overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`,
			`overhead.limits[tpu]: Invalid value: "tpu": must be a standard resource type or fully qualified`,
			`overhead.limits[tpu]: Invalid value: "tpu": must be a standard resource for containers`,
			`scheduling.nodeSelector: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character` +
				` (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
			"handler: Required value",
		}},
		{"runtimeclass", []string{"handler=" + strings.Repeat("x", 64)}, []string{"handler: Invalid value: \"" + strings.Repeat("x", 64) + "\": must be no more than 63 bytes"}},
		{"runtimeclass", []string{"scheduling.tolerations=[{key: a, operator: Gt, value: '1'}]"}, []string{
			`scheduling.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"`,
		}},
		{"runtimeclass", []string{"overhead.podFixed={hugepages-2Mi: 2Mi}"}, []string{"overhead: Forbidden: HugePages require cpu or memory"}},
		{"runtimeclass", []string{"scheduling.tolerations=[{key: a, operator: Exists}, {key: a, operator: Exists}, {key: a, operator: Exists, effect: NoExecute}]"},
			[]string{`scheduling.tolerations[1]: Duplicate value: {"key":"a","operator":"Exists"}`}},
	})
	r, obj := manifest(t, "runtimeclass", "scheduling.nodeSelector={beta.kubernetes.io/os: linux}")
	if got, want := r.Strategy.Warnings(obj, nil), []string{`scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead`}; !slices.Equal(got, want) {
		t.Errorf("warned of %q", got)
	}
}

// TestStrictGenerations: of some kinds, kube-apiserver takes an empty list for another one than none.
func TestStrictGenerations(t *testing.T) {
	for _, tt := range []struct {
		manifest, edit string
		want           int64
	}{
		{"networkpolicy", "metadata.labels={a: b}", 3},
		{"networkpolicy", "spec.podSelector.matchExpressions=[]", 4},
		{"networkpolicy", "spec.egress=[]", 4},
		{"webhook", "metadata.labels={a: b}", 3},
		{"webhook", "webhooks.0.matchConditions=[]", 4},
		{"webhook", "webhooks.0.clientConfig.caBundle=''", 4},
	} {
		r, old := manifestAsIs(t, tt.manifest, "metadata.generation=3")
		_, obj := manifestAsIs(t, tt.manifest, "metadata.generation=3", tt.edit)
		r.Strategy.PrepareForUpdate(obj, old)
		if got := obj.GetGeneration(); got != tt.want {
			t.Errorf("%s with %s: generation %d, not %d", tt.manifest, tt.edit, got, tt.want)
		}
	}
}

// TestGenerations: those of PriorityClasses stay, and annotations of Deployments count.
func TestGenerations(t *testing.T) {
	r, obj := manifest(t, "priorityclass")
	if got := obj.(*schedulingv1.PriorityClass).Generation; got != 1 || !r.Strategy.NoGeneration {
		t.Errorf("a new PriorityClass has generation %d", got)
	}
	r, obj = manifest(t, "deployment", "metadata.generation=3")
	deployment := obj.(*appsv1.Deployment)
	for _, tt := range []struct {
		annotations map[string]string
		want        int64
	}{{nil, 3}, {map[string]string{"a": "b"}, 4}} {
		changed := deployment.DeepCopy()
		changed.Annotations = tt.annotations
		if r.Strategy.PrepareForUpdate(changed, deployment); changed.Generation != tt.want {
			t.Errorf("%v: generation %d", tt.annotations, changed.Generation)
		}
	}
}
