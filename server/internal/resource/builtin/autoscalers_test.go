package builtin_test

import "testing"

func TestAutoscalers(t *testing.T) {
	const (
		metric  = "spec.metrics[0]"
		sources = `supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`
		cpu     = "resource: {name: cpu, target: {type: Utilization, averageUtilization: 1}}"
	)
	checkRefusals(t, []refusal{
		{"autoscaler", []string{"spec.minReplicas=-1", "spec.maxReplicas=-2", "spec.scaleTargetRef.apiVersion=v1"}, []string{
			"spec.maxReplicas: Invalid value: -2: must be greater than or equal to `minReplicas`",
			`spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group`,
			"spec.minReplicas: Invalid value: -1: must be greater than or equal to 0", "spec.maxReplicas: Invalid value: -2: must be greater than or equal to 1",
		}},
		{"autoscaler", []string{"spec.maxReplicas=0", "spec.minReplicas=0", "spec.metrics=[{type: External}]"}, []string{
			metric + ".external: Required value: must populate information for the given metric source", "spec.maxReplicas: Required value",
		}},
		{"autoscaler", []string{"spec.metrics=[{type: '', " + cpu + "}]"}, []string{
			metric + ".type: Required value: must specify a metric source type", metric + `.type: Unsupported value: "": ` + sources, metric + `.type: Unsupported value: "": ` + sources,
		}},
		{"autoscaler", []string{"spec.metrics=[{type: Pods, " + cpu + "}]"}, []string{metric + ".pods: Required value: must populate information for the given metric source"}},
		{"autoscaler", []string{"spec.metrics=[{type: Pods, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 1}}, resource: {}}]"},
			[]string{metric + ".resource: Forbidden: must populate the given metric source only"}},
		{"autoscaler", []string{"spec.metrics=[{type: Object, object: {describedObject: {kind: '', name: a/b, apiVersion: a/b/c}, metric: {name: m}, target: {type: Value, value: 1}}}]"}, []string{
			metric + ".object.describedObject.kind: Required value", metric + `.object.describedObject.name: Invalid value: "a/b": may not contain '/'`,
			metric + `.object.describedObject.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`,
		}},
	})
}
