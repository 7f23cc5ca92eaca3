package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// said are the texts of errors.
func said(errs field.ErrorList) []string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

// check compares all that is said with what kube-apiserver says, in its order. A text of want may be the beginning of
// what is said, if it ends with an ellipsis.
func check(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	same := func(got, want string) bool {
		prefix, open := strings.CutSuffix(want, "...")
		return got == want || open && strings.HasPrefix(got, prefix)
	}
	if got := said(errs); !slices.EqualFunc(got, want, same) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func replaceAll(r *resource.Resource, obj, old resource.Object) field.ErrorList {
	var errs field.ErrorList
	if f := r.Strategy.Validate; f != nil {
		errs = f(obj)
	}
	if f := r.Strategy.ValidateUpdate; f != nil {
		errs = append(errs, f(obj, old)...)
	}
	return errs
}

// list writes a member many times.
func list(n int, member func(i int) string) string {
	members := make([]string, n)
	for i := range members {
		members[i] = member(i)
	}
	return "[" + strings.Join(members, ", ") + "]"
}

const (
	label     = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'..."
	subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters..."
)

func TestDeviceClasses(t *testing.T) {
	for _, tt := range []struct{ edits, want []string }{
		{nil, nil},
		{[]string{"spec={}"}, nil},
		{[]string{"spec.selectors=[{}]", "spec.config=[{}, {opaque: {driver: d, parameters: a}}]", "spec.extendedResourceName=gpu"}, []string{
			"spec.selectors[0].cel: Required value",
			"spec.config[0].opaque: Required value",
			`spec.config[1].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object`,
			`spec.extendedResourceName: Invalid value: "gpu": a name must be a domain-prefixed path, such as 'example.com/my-prop'`,
		}},
		{[]string{"spec.selectors=" + list(33, func(int) string { return "{}" }), "spec.config=" + list(33, func(int) string { return "{}" }), "spec.extendedResourceName=kubernetes.io/a"}, []string{
			"spec.selectors: Too many: 33: must have at most 32 items",
			"spec.config: Too many: 33: must have at most 32 items",
			`spec.extendedResourceName: Invalid value: "kubernetes.io/a": must not have "kubernetes.io/" domain`,
		}},
		{[]string{"spec.config.0.opaque.driver=" + strings.Repeat("a.", 40) + "a"}, []string{"spec.config[0].opaque.driver: Too long: may not be more than 63 characters"}},
	} {
		r, class := manifest(t, "deviceclass", tt.edits...)
		check(t, validateNew(r, class), tt.want...)
		_, old := manifest(t, "deviceclass")
		check(t, replaceAll(r, class, old), tt.want...)
	}
	large := "spec.config=[{opaque: {driver: d, parameters: {a: '" + strings.Repeat("a", 10<<10) + "'}}}]"
	r, class := manifest(t, "deviceclass", large)
	check(t, validateNew(r, class), "spec.config[0].opaque.parameters: Too long: may not be more than 10240 bytes")
	check(t, replaceAll(r, class, class))
	// Of the start of a generated name, kube-apiserver says nothing where something else is wrong.
	_, class = manifest(t, "deviceclass", "metadata.generateName=a/b", "spec.selectors=[{}]")
	check(t, validateNew(r, class), "spec.selectors[0].cel: Required value")
}

func TestResourceSlices(t *testing.T) {
	const device = "spec.devices.0."
	for name, tt := range map[string]struct{ edits, want []string }{
		"fine": {nil, nil},
		"empty": {[]string{"spec={}"}, []string{
			"spec.driver: Required value", "spec.pool.name: Required value", "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
			"spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
		}},
		"names": {[]string{"spec.driver='-'", "spec.pool={name: a//B, generation: -1, resourceSliceCount: -1}", "spec.nodeName=B"}, []string{
			`spec.driver: Invalid value: "-": ` + subdomain, `spec.pool.name: Invalid value: "": ` + subdomain, `spec.pool.name: Invalid value: "B": ` + subdomain,
			"spec.pool.resourceSliceCount: Invalid value: -1: must be greater than zero", "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
			`spec.nodeName: Invalid value: "B": ` + subdomain,
		}},
		"no node": {[]string{"spec.nodeName=''", "spec.allNodes=false", "spec.perDeviceNodeSelection=false"}, []string{
			`spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string`,
			"spec.allNodes: Invalid value: false: must be either unset or set to true",
			"spec.perDeviceNodeSelection: Invalid value: false: must be either unset or set to true",
			"spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
		}},
		"two ways": {[]string{"spec.allNodes=true", "spec.nodeSelector={nodeSelectorTerms: [{}, {matchExpressions: [{key: a, operator: In, values: [a b]}]}]}", "spec.sharedCounters=[]"}, []string{
			`spec.nodeSelector.nodeSelectorTerms[1].matchExpressions[0].values[0]: Invalid value: "a b": a valid label must be...`,
			"spec.nodeSelector.nodeSelectorTerms: Invalid value: [...",
			"spec: Invalid value: \"{`nodeName`, `nodeSelector`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
			"spec: Invalid value: \"\": only one of `sharedCounters` or `devices` is allowed",
		}},
		"ways of devices": {[]string{"spec.nodeName-", "spec.perDeviceNodeSelection=true", "spec.devices=[{name: a}, {name: b, nodeName: '', allNodes: false}, {name: c, nodeName: c, allNodes: true}, {name: d, nodeSelector: {}}]"}, []string{
			"spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
			`spec.devices[1].nodeName: Invalid value: "": must not be empty`, "spec.devices[1].allNodes: Invalid value: false: must be either unset or set to true",
			"spec.devices[1]: Required value: exactly one of...",
			"spec.devices[2]: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of...",
			"spec.devices[3].nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term",
		}},
		"ways of devices of one node": {[]string{device + "nodeName=a"}, []string{
			"spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec",
		}},
		"names of devices":        {[]string{"spec.devices=[{name: A}, {name: b}, {name: b}]"}, []string{`spec.devices[0].name: Invalid value: "A": ` + label, `spec.devices[2]: Duplicate value: "b"`}},
		"too many devices":        {[]string{"spec.devices=" + list(129, func(int) string { return "{}" })}, []string{"spec.devices: Too many: 129: must have at most 128 items"}},
		"too many elaborate ones": {[]string{"spec.devices=" + list(65, func(int) string { return "{attributes: {a: {ints: [1]}}}" })}, []string{"spec.devices: Too many: 65: must have at most 64 items"}},
		"names of attributes": {[]string{device + "attributes={'': {int: 1}, /a: {int: 1}, b/: {int: 1}, c d: {int: 1}, e/f/g h: {int: 1}, " + strings.Repeat("x", 100) + ": {int: 1, bool: true}}"}, []string{
			`spec.devices[0].attributes: Invalid value: "": a valid C identifier...`, `spec.devices[0].attributes: Invalid value: "": the domain must not be empty`,
			`spec.devices[0].attributes: Invalid value: "": the name must not be empty`, `spec.devices[0].attributes: Invalid value: "c d": a valid C identifier...`,
			"spec.devices[0].attributes: Too long: may not be more than 32 bytes",
			"spec.devices[0].attributes[" + strings.Repeat("x", 47) + "..." + strings.Repeat("x", 46) + `]: Invalid value: {"int":1,"bool":true}: exactly one value must be specified`,
			"spec.devices[0].attributes[" + strings.Repeat("x", 100) + "]: Invalid value: \"{int, bool}\": must specify exactly one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`",
		}},
		"values": {[]string{device + "attributes={a: {}, b: {string: '" + strings.Repeat("b", 65) + "'}, c: {version: v1}, d: {ints: []}, e: {ints: [], int: 1}, f: {strings: ['" + strings.Repeat("b", 65) + "'], versions: ['1']}}"}, []string{
			"spec.devices[0].attributes[b].string: Too long: may not be more than 64 bytes",
			`spec.devices[0].attributes[c].version: Invalid value: "v1": must be a string compatible with semver.org spec 2.0.0`,
			"spec.devices[0].attributes[d].ints: Invalid value: []: must not be empty if specified",
			"spec.devices[0].attributes[e].ints: Invalid value: []: must not be empty if specified",
			`spec.devices[0].attributes[e]: Invalid value: {"int":1}: exactly one value must be specified`,
			"spec.devices[0].attributes[f].strings[0]: Too long: may not be more than 64 bytes",
			`spec.devices[0].attributes[f].versions[0]: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0`,
			"spec.devices[0].attributes[a]: Invalid value: \"\": must specify one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`",
			`spec.devices[0].attributes[d]: Invalid value: "": must specify one of:...`,
			`spec.devices[0].attributes[f]: Invalid value: "{strings, versions}": must specify exactly one of:...`,
		}},
		"taints": {[]string{device + "taints=[{key: a b, value: a b}, {key: a, effect: Never}]"}, []string{
			`spec.devices[0].taints[0].key: Invalid value: "a b": name part...`, `spec.devices[0].taints[0].value: Invalid value: "a b": a valid label...`,
			"spec.devices[0].taints[0].effect: Required value",
			`spec.devices[0].taints[1].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"`,
		}},
		"counters": {[]string{"spec.devices-", "spec.sharedCounters=[{}, {name: A, counters: {B: {value: 1}}}, {name: A, counters: {b: {value: 1}}}]"}, []string{
			`spec.sharedCounters[2]: Duplicate value: {"name":"A","counters":{"b":{"value":"1"}}}`,
			"spec.sharedCounters[0].name: Required value", "spec.sharedCounters[0].counters: Required value",
			`spec.sharedCounters[1].name: Invalid value: "A": ` + label, `spec.sharedCounters[1].counters: Invalid value: "B": ` + label, `spec.sharedCounters[2].name: Invalid value: "A": ` + label,
		}},
		"consumed counters": {[]string{device + "consumesCounters=[{}, {counterSet: a, counters: {a: {value: 1}}, compatibilityGroups: [A, b, b]}]"}, []string{
			"spec.devices[0].consumesCounters[0].counterSet: Required value", "spec.devices[0].consumesCounters[0].counters: Required value",
			"spec.devices[0].consumesCounters[1].compatibilityGroups: Too many: 3: must have at most 2 items",
		}},
		"partitions": {[]string{"spec.partitionTypeAttribute=gpu.example.com/type", "spec.devices=[{name: a}, {name: b, consumesCounters: [{counterSet: a, counters: {a: {value: 1}}}]}, {name: c, attributes: {type: {int: 1}}, consumesCounters: [{counterSet: a, counters: {a: {value: 1}}}]}]"}, []string{
			"spec.devices[1].attributes[gpu.example.com/type]: Required value: device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set",
			"spec.devices[2].attributes[gpu.example.com/type]: Invalid value: {\"int\":1}: must be a string value because `partitionTypeAttribute` names this attribute",
		}},
		"resources of nodes": {[]string{device + "nodeAllocatableResources={cpu: {}, memory: {mapping: {capacityKey: a}}, pods: {mapping: {capacityMultiplier: 1, deviceMultiplier: 0}, overhead: {perPod: -1}}}"}, []string{
			"spec.devices[0].nodeAllocatableResources[cpu]: Required value: at least one of mapping or overhead must be set",
			`spec.devices[0].nodeAllocatableResources[memory].mapping.capacityKey: Not found: "a"`,
			"spec.devices[0].nodeAllocatableResources[memory].mapping.capacityMultiplier: Required value: capacityMultiplier is required when capacityKey is set",
			`spec.devices[0].nodeAllocatableResources[pods]: Invalid value: "pods": must be a node allocatable resource name`,
			`spec.devices[0].nodeAllocatableResources[pods].mapping.deviceMultiplier: Invalid value: "0": must be positive`,
			"spec.devices[0].nodeAllocatableResources[pods].mapping.capacityKey: Required value: capacityKey is required when capacityMultiplier is set",
			`spec.devices[0].nodeAllocatableResources[pods].overhead.perPod: Invalid value: "-1": must be non-negative`,
		}},
		"skipped": {[]string{"spec.skipNodeOperations=[NodePrepareResources]"}, []string{
			`spec.skipNodeOperations: Invalid value: ["NodePrepareResources"]: NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, slice := manifest(t, "resourceslice", tt.edits...)
			check(t, validateNew(r, slice), tt.want...)
		})
	}
}

func TestDeviceCapacity(t *testing.T) {
	const step = "spec.devices[0].capacity[memory].requestPolicy.validRange."
	for policy, want := range map[string][]string{
		"{}":                                       nil,
		"{validValues: [1], validRange: {}}":       {`spec.devices[0].capacity[memory].requestPolicy: Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`},
		"{validValues: [1]}":                       {"spec.devices[0].capacity[memory].requestPolicy.default: Required value: required when validValues is defined"},
		"{validRange: {}}":                         {"spec.devices[0].capacity[memory].requestPolicy.default: Required value: required when validRange is defined"},
		"{default: 1, validRange: {}}":             {step + "min: Required value: required when validRange is defined"},
		"{default: 1, validValues: [500m, 1, 10]}": nil,
		"{default: 1, validRange: {min: 1, max: 9, step: 2}}": nil,
		"{default: 3, validValues: [2, 1, 1, 11]}": {
			`spec.devices[0].capacity[memory].requestPolicy.validValues[1]: Invalid value: "1": values must be sorted in ascending order`,
			`spec.devices[0].capacity[memory].requestPolicy.validValues[3]: Invalid value: "11": option is larger than capacity value: 10`,
			`spec.devices[0].capacity[memory].requestPolicy.validValues[2]: Duplicate value: "1"`,
			`spec.devices[0].capacity[memory].requestPolicy.validValues: Invalid value: "3": default value is not valid according to the requestPolicy`,
		},
		"{default: 1, validValues: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}": {
			"spec.devices[0].capacity[memory].requestPolicy.validValues: Too many: 11: must have at most 10 items",
			`spec.devices[0].capacity[memory].requestPolicy.validValues: Invalid value: "1": default value is not valid according to the requestPolicy`,
		},
		"{default: 20, validRange: {min: 11, max: 12}}": {
			step + `min: Invalid value: "11": min is larger than capacity value: 10`, step + `max: Invalid value: "12": max is larger than capacity value: 10`,
			step + `default: Invalid value: "20": default is more than max: 12`,
		},
		"{default: 1, validRange: {min: 3, max: 2, step: 0}}": {
			step + `default: Invalid value: "1": default is less than min: 3`, step + `max: Invalid value: "3": min is larger than max: 2`,
			step + `step: Invalid value: "0": must be greater than zero`,
		},
		"{default: 2, validRange: {min: 1, max: 5, step: 10}}": {
			step + `step: Invalid value: "10": one step 11 is larger than capacity value: 10`,
			step + `step: Invalid value: "2": value is not a multiple of a given step (10) from (1)`, step + `step: Invalid value: "5": value is not a multiple of a given step (10) from (1)`,
		},
		"{default: 1, validRange: {min: 1, step: 20E}}": {
			step + `step: Invalid value: "20E": one step 20000000000000000001 is larger than capacity value: 10`, step + `step: Invalid value: "20E": must not be larger than 9223372036854775807`,
		},
		"{default: 1500m, validRange: {min: 1, max: 3, step: 1}}": {step + `step: Invalid value: "1500m": value is not a multiple of a given step (1) from (1)`},
		"{default: 1, validRange: {min: 1, step: 1u}}":            {step + `step: Invalid value: "1u": value cannot be represented as a milli value`},
	} {
		t.Run(policy, func(t *testing.T) {
			capacity := "spec.devices.0.capacity={memory: {value: 10, requestPolicy: " + policy + "}}"
			r, slice := manifest(t, "resourceslice", capacity, "spec.devices.0.allowMultipleAllocations=true")
			check(t, validateNew(r, slice), want...)
			check(t, replaceAll(r, slice, slice)) // it was there before
			_, slice = manifest(t, "resourceslice", capacity)
			check(t, validateNew(r, slice), "spec.devices[0].capacity[memory].requestPolicy: Forbidden: allowMultipleAllocations must be true")
		})
	}
}

func TestDeviceSizes(t *testing.T) {
	members := func(n int, value string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("a%d: %s", i, value)
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	r, slice := manifest(t, "resourceslice", "spec.devices.0.attributes="+members(32, "{ints: [1, 2]}"))
	check(t, validateNew(r, slice), "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must not exceed 32",
		"spec.devices[0]: Invalid value: 64: the total number of attribute values must not exceed 48")
	_, slice = manifest(t, "resourceslice", "spec.devices-", "spec.sharedCounters=[{name: a, counters: "+members(33, "{value: 1}")+"}]")
	check(t, validateNew(r, slice), "spec.sharedCounters[0].counters: Too many: 33: must have at most 32 items")
}

func TestResourceSlicesStay(t *testing.T) {
	r, old := manifest(t, "resourceslice")
	_, slice := manifest(t, "resourceslice", "spec.driver=other", "spec.pool.name=other", "spec.nodeName=other", "spec.pool.generation=-1")
	check(t, replaceAll(r, slice, old), "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
		`spec.pool.name: Invalid value: "other": field is immutable`, `spec.driver: Invalid value: "other": field is immutable`, `spec.nodeName: Invalid value: "other": field is immutable`)
	_, slice = manifest(t, "resourceslice", "spec.devices=[]", "spec.pool.generation=2")
	check(t, replaceAll(r, slice, old))
	_, slice = manifest(t, "resourceslice", "spec.devices.0.taints=[{key: a, effect: Never}]")
	check(t, replaceAll(r, slice, slice))
	check(t, replaceAll(r, slice, old), `spec.devices[0].taints[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"`)
	_, slice = manifest(t, "resourceslice", "spec.driver=GPU")
	if got := r.Strategy.Warnings(slice, nil); !slices.Contains(got, `spec.driver: driver names should be lowercase; "GPU" contains uppercase characters`) {
		t.Error(got)
	}
}

func TestDeviceTaintRules(t *testing.T) {
	for _, tt := range []struct{ edits, want []string }{
		{nil, nil},
		{[]string{"spec.deviceSelector-"}, nil},
		{[]string{"spec.deviceSelector={driver: '', pool: a b, device: A}", "spec.taint={value: a b}"}, []string{
			"spec.deviceSelector.driver: Required value", `spec.deviceSelector.pool: Invalid value: "a b": ` + subdomain, `spec.deviceSelector.device: Invalid value: "A": ` + label,
			`spec.taint.key: Invalid value: "": name part must be non-empty`, `spec.taint.key: Invalid value: "": name part must consist of...`,
			`spec.taint.value: Invalid value: "a b": a valid label must be...`, "spec.taint.effect: Required value",
		}},
		{[]string{"spec.taint.effect=Never"}, []string{`spec.taint.effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"`}},
	} {
		r, rule := manifest(t, "devicetaintrule", tt.edits...)
		check(t, validateNew(r, rule), tt.want...)
		_, old := manifest(t, "devicetaintrule")
		check(t, replaceAll(r, rule, old), tt.want...)
	}
	r, future := manifest(t, "devicetaintrule", "spec.taint.effect=Never")
	check(t, replaceAll(r, future, future))
}

func TestDeviceTaintRuleStatus(t *testing.T) {
	condition := func(i int) string {
		return fmt.Sprintf("{type: T%d, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}", i)
	}
	r, old := manifestAsIs(t, "devicetaintrule")
	for n, want := range map[int][]string{8: nil, 9: {"status.conditions: Too many: 9: must have at most 8 items"}} {
		_, rule := manifestAsIs(t, "devicetaintrule", "status.conditions="+list(n, condition))
		check(t, r.Strategy.ValidateStatus(rule, old), want...)
	}
	_, rule := manifestAsIs(t, "devicetaintrule", "status.conditions="+list(2, func(int) string { return condition(1) }))
	check(t, r.Strategy.ValidateStatus(rule, old), `status.conditions[1]: Duplicate value: "T1"`)
}

// TestDeviceKinds: what kube-apiserver selects slices by, and how it takes the rules about taints: a PUT names the version
// that it replaces, and the name that an object has is not checked again.
func TestDeviceKinds(t *testing.T) {
	r, _ := manifest(t, "resourceslice")
	var fields []string
	for _, f := range r.Fields {
		fields = append(fields, f.Name)
	}
	if !slices.Equal(fields, []string{"spec.nodeName", "spec.driver", "spec.pool.name"}) {
		t.Error(fields)
	}
	r, rule := manifest(t, "devicetaintrule", "metadata.generateName=A b")
	if errs := r.Strategy.ValidateName(rule, false); len(errs) > 0 || r.Strategy.UnconditionalUpdate {
		t.Error(errs, r.Strategy.UnconditionalUpdate)
	}
}
