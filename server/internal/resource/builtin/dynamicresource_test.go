package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestResourceClaims(t *testing.T) {
	const devices, exactly = "spec.devices.", "spec.devices.requests.0.exactly."
	request := devices + "requests=[{name: gpu, exactly: {deviceClassName: gpus}}]"
	unknown := "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	for _, tt := range []struct {
		edits, want []string
	}{
		{nil, nil},
		{[]string{devices + "requests=[{}]"}, []string{
			`spec.devices.requests[0].name: Invalid value: "": ` + label,
			"spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
		}},
		{[]string{devices + "requests.0.firstAvailable=[{name: a, deviceClassName: b}]"}, []string{
			"spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
		}},
		{[]string{devices + "requests=[{name: a, exactly: {deviceClassName: b}}, {name: a, exactly: {deviceClassName: B}}]"}, []string{
			`spec.devices.requests[1].exactly.deviceClassName: Invalid value: "B": ` + subdomain,
			`spec.devices.requests[1]: Duplicate value: {"name":"a","exactly":{"deviceClassName":"B","allocationMode":"ExactCount","count":1}}`,
		}},
		{[]string{devices + "requests=" + list(33, func(int) string { return "{}" })}, []string{"spec.devices.requests: Too many: 33: must have at most 32 items"}},
		{[]string{exactly + "deviceClassName="}, []string{"spec.devices.requests[0].exactly.deviceClassName: Required value"}},
		{[]string{exactly + "selectors=[{}, {cel: {expression: '" + strings.Repeat("a", 10<<10+1) + "'}}]"}, []string{
			"spec.devices.requests[0].exactly.selectors[0].cel: Required value",
			"spec.devices.requests[0].exactly.selectors[1].cel.expression: Too long: may not be more than 10240 bytes",
		}},
		{[]string{exactly + "selectors=" + list(33, func(int) string { return "{}" })}, []string{"spec.devices.requests[0].exactly.selectors: Too many: 33: must have at most 32 items"}},
		{[]string{exactly + "count=-1"}, []string{"spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero"}},
		{[]string{exactly + "allocationMode=All", exactly + "count=2"}, []string{
			"spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
		}},
		{[]string{exactly + "allocationMode=Some"}, []string{`spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"`}},
		{[]string{exactly + "tolerations=[{key: a b, operator: Exists, value: a}, {value: a b}, {operator: In, effect: Never}]"}, []string{
			"spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: \"a\": must be empty for operator `Exists`",
			`spec.devices.requests[0].exactly.tolerations[1].value: Invalid value: "a b": a valid label must be...`,
			`spec.devices.requests[0].exactly.tolerations[0].key: Invalid value: "a b": name part must consist of...`,
			`spec.devices.requests[0].exactly.tolerations[2].operator: Unsupported value: "In": supported values: "Equal", "Exists"`,
			`spec.devices.requests[0].exactly.tolerations[2].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"`,
		}},
		{[]string{exactly + "derivedAttributes=[{name: a.example.com/b, expression: x}, {name: b}, {name: b}]", devices + "constraints=[{matchAttribute: a.example.com/b, requests: [gpu]}]"}, []string{
			`spec.devices.requests[0].exactly.derivedAttributes[1].name: Invalid value: "b": must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request`,
			`spec.devices.requests[0].exactly.derivedAttributes[2].name: Invalid value: "b": must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request`,
			`spec.devices.requests[0].exactly.derivedAttributes[2]: Duplicate value: "b"`,
			`spec.devices.requests[0].exactly.derivedAttributes[1].name: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash`,
			"spec.devices.requests[0].exactly.derivedAttributes[1].expression: Required value",
			`spec.devices.requests[0].exactly.derivedAttributes[2].name: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash`,
			"spec.devices.requests[0].exactly.derivedAttributes[2].expression: Required value",
		}},
		{[]string{devices + "requests=[{name: gpu, firstAvailable: [{name: A, count: -1}, {name: b, deviceClassName: B}, {name: b, deviceClassName: b}]}]"}, []string{
			`spec.devices.requests[0].firstAvailable[0].name: Invalid value: "A": ` + label,
			"spec.devices.requests[0].firstAvailable[0].count: Invalid value: -1: must be greater than zero",
			`spec.devices.requests[0].firstAvailable[2]: Duplicate value: {"name":"b","deviceClassName":"b","allocationMode":"ExactCount","count":1}`,
			"spec.devices.requests[0].firstAvailable[0].deviceClassName: Required value",
			`spec.devices.requests[0].firstAvailable[1].deviceClassName: Invalid value: "B": ` + subdomain,
		}},
		{[]string{devices + "constraints=[{}, {requests: [gpu, gpu, other, a/b/c, gpu/x], matchAttribute: B.example.com/c d, distinctAttribute: a}]"}, []string{
			`spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`,
			`spec.devices.constraints[1].requests[2]: Invalid value: "other": ` + unknown,
			`spec.devices.constraints[1].requests[3]: Invalid value: "a/b/c": ` + unknown,
			`spec.devices.constraints[1].requests[4]: Invalid value: "gpu/x": ` + unknown,
			`spec.devices.constraints[1].requests[1]: Duplicate value: "gpu"`,
			`spec.devices.constraints[1].matchAttribute: Invalid value: "B.example.com": prefix: ` + subdomain,
			`spec.devices.constraints[1].matchAttribute: Invalid value: "c d": a valid C identifier must start with...`,
			`spec.devices.constraints[1].distinctAttribute: Invalid value: "a": a fully qualified name must be a domain and a name separated by a slash`,
		}},
		{[]string{devices + "config=[{requests: [A], opaque: {driver: '-', parameters: [1]}}, {}, {opaque: {parameters: {}}}, {opaque: {driver: d}}]"}, []string{
			`spec.devices.config[0].requests[0]: Invalid value: "A": ` + label,
			`spec.devices.config[0].requests[0]: Invalid value: "A": ` + unknown,
			`spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object`,
			"spec.devices.config[1].opaque: Required value",
			"spec.devices.config[3].opaque.parameters: Required value",
			`spec.devices.config[0].opaque.driver: Invalid value: "-": an RFC 1123 subdomain must consist of alphanumeric characters...`,
			"spec.devices.config[2].opaque.driver: Required value",
		}},
		{[]string{devices + "config=[{opaque: {driver: d, parameters: {a: '" + strings.Repeat("a", 10<<10) + "'}}}]"}, []string{
			"spec.devices.config[0].opaque.parameters: Too long: may not be more than 10240 bytes",
		}},
	} {
		t.Run(strings.Join(tt.edits, " ")[:min(60, len(strings.Join(tt.edits, " ")))], func(t *testing.T) {
			r, claim := manifest(t, "resourceclaim", append([]string{request}, tt.edits...)...)
			check(t, validateNew(r, claim), tt.want...)

			inTemplate := func(list []string) []string {
				var moved []string
				for _, text := range list {
					moved = append(moved, strings.ReplaceAll(text, "spec.devices.", "spec.spec.devices."))
				}
				return moved
			}
			r, template := manifest(t, "resourceclaimtemplate", inTemplate(append([]string{request}, tt.edits...))...)
			check(t, validateNew(r, template), inTemplate(tt.want)...)
		})
	}
}

func TestResourceClaimsStay(t *testing.T) {
	const request = "spec.devices.requests=[{name: gpu, exactly: {deviceClassName: a, count: -1}}]"
	r, old := manifest(t, "resourceclaim")
	_, claim := manifest(t, "resourceclaim", request)
	check(t, replaceAll(r, claim, old), "spec: Invalid value: null: field is immutable")
	check(t, replaceAll(r, claim, claim))

	r, old = manifest(t, "resourceclaimtemplate")
	_, template := manifest(t, "resourceclaimtemplate", "spec."+request, "spec.metadata.name=a", "spec.metadata.uid=b", "spec.metadata.labels={a b: c}")
	check(t, replaceAll(r, template, old), `spec.metadata.labels: Invalid value: "a b": name part must consist of...`,
		"spec.metadata.name: Forbidden: cannot be set", "spec.metadata.uID: Forbidden: cannot be set",
		"spec.spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero", "spec: Invalid value: ...")
}

func TestResourceClaimStatus(t *testing.T) {
	const (
		result    = "{request: gpu, driver: gpu.example.com, pool: one/a, device: d0}"
		allocated = "status.allocation={devices: {results: [" + result + "]}}"
		reserved  = "status.reservedFor=[{resource: pods, name: a, uid: u}]"
		results   = "status.allocation.devices.results[0]."
		id        = "0123abcd-0000-1111-2222-333344445555"
	)
	for name, tt := range map[string]struct {
		before, after, want []string
	}{
		"allocated": {nil, []string{allocated, reserved, "status.devices=[{driver: gpu.example.com, pool: one/a, device: d0, data: {a: b}}]"}, nil},
		"freed":     {[]string{allocated}, nil, nil},
		"moved": {[]string{allocated}, []string{"status.allocation={devices: {results: [{request: gpu, driver: gpu.example.com, pool: one/a, device: d1}]}}"},
			[]string{"status.allocation: Invalid value: null: field cannot be modified once set"}},
		"reserved without allocation": {nil, []string{reserved}, []string{"status.reservedFor: Forbidden: may not be specified when `allocated` is not set"}},
		"reserved wrongly": {[]string{allocated}, []string{allocated, "status.reservedFor=[{}, {resource: pods, name: a}]"}, []string{
			"status.reservedFor[0].resource: Required value", "status.reservedFor[0].name: Required value", "status.reservedFor[0].uid: Required value",
			"status.reservedFor[1].uid: Required value", `status.reservedFor[1]: Duplicate value: {"resource":"pods","name":"a","uid":""}`,
		}},
		"reserved too often": {[]string{allocated}, []string{allocated, "status.reservedFor=" + list(257, func(int) string { return "{}" })}, []string{
			"status.reservedFor: Too many: 257: must have at most 256 items",
		}},
		"wrong results": {nil, []string{"status.allocation={devices: {results: [{request: other, driver: A_b, pool: a//B, device: D, shareID: x, tolerations: [{operator: In}], skipNodeOperations: [NodePrepareResources, NodePrepareResources, Other]}]}, nodeSelector: {}}"}, []string{
			results + `request: Invalid value: "other": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`,
			results + `device: Invalid value: "D": ` + label,
			results + `skipNodeOperations: Invalid value: ["NodePrepareResources","NodePrepareResources","Other"]: NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped`,
			"status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term",
			results + `driver: Invalid value: "A_b": an RFC 1123 subdomain must consist of alphanumeric characters...`,
			results + `pool: Invalid value: "a//B": segment 1: must not be empty`,
			results + `pool: Invalid value: "B": segment 2: ` + subdomain,
			results + `tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"`,
			results + `shareID: Invalid value: "x": must be a lowercase UUID in 8-4-4-4-12 format`,
			results + `skipNodeOperations[1]: Duplicate value: "NodePrepareResources"`,
			results + `skipNodeOperations[2]: Unsupported value: "Other": supported values: "*", "NodePrepareResources", "NodeUnprepareResources"`,
		}},
		"conditions of binding": {nil, []string{"status.allocation={devices: {results: [{request: gpu, driver: d, pool: p, device: d, bindingConditions: [a b, c, c], bindingFailureConditions: [c]}, {request: gpu, driver: d, pool: p, device: d, bindingConditions: [a, b, c, d, e]}]}}"}, []string{
			results + `bindingConditions[0]: Invalid value: "a b": name part must consist of...`,
			results + `bindingConditions[2]: Duplicate value: "c"`,
			results + `bindingFailureConditions[0]: Invalid value: "c": bindingFailureConditions must not overlap with bindingConditions`,
			"status.allocation.devices.results[1].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions",
			"status.allocation.devices.results[1].bindingConditions: Too many: 5: must have at most 4 items",
		}},
		"configuration": {nil, []string{"status.allocation={devices: {results: [" + result + "], config: [{requests: [other]}, {source: Other, opaque: {driver: d, parameters: {}}}]}}"}, []string{
			`status.allocation.devices.config[0].requests[0]: Invalid value: "other": must be the name of...`,
			"status.allocation.devices.config[0].opaque: Required value",
			"status.allocation.devices.config[0].source: Required value",
			`status.allocation.devices.config[1].source: Unsupported value: "Other": supported values: "FromClaim", "FromClass"`,
		}},
		"status of devices": {[]string{allocated}, []string{allocated, "status.devices=[{pool: p, device: d, driver: a, shareID: " + id + "}, {driver: gpu.example.com, pool: one/a, device: d0, data: [1], conditions: [{}], " +
			"networkData: {interfaceName: '" + strings.Repeat("a", 257) + "', hardwareAddress: '" + strings.Repeat("a", 129) + "', ips: [10.0.0.1/8, 10.0.0.1/8, a]}}, {driver: gpu.example.com, pool: one/a, device: d0}]"}, []string{
			`status.devices[0]: Invalid value: {"Driver":"a","Pool":"p","Device":"d","ShareID":"` + id + `"}: must be an allocated device in the claim`,
			"status.devices[1].conditions[0].type: Required value: is required",
			"status.devices[1].conditions[0].status: Required value", "status.devices[1].conditions[0].lastTransitionTime: Required value",
			"status.devices[1].conditions[0].reason: Required value",
			`status.devices[1].data: Invalid value: "<value omitted>": must be a valid JSON object`,
			`status.devices[1].networkData.ips[2]: Invalid value: "a": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)`,
			`status.devices[2]: Duplicate value: {"driver":"gpu.example.com","pool":"one/a","device":"d0","conditions":null}`,
			"status.devices[1].networkData.interfaceName: Too long: may not be more than 256 bytes",
			`status.devices[1].networkData.ips[1]: Duplicate value: "10.0.0.1/8"`,
			"status.devices[1].networkData.hardwareAddress: Too long: may not be more than 128 bytes",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, old := manifestAsIs(t, "resourceclaim", tt.before...)
			_, claim := manifestAsIs(t, "resourceclaim", tt.after...)
			check(t, r.Strategy.ValidateStatus(claim, old), tt.want...)
		})
	}
}

// TestDeletedClaimTakesNoPods: a claim that is deleted may only be reserved for fewer.
func TestDeletedClaimTakesNoPods(t *testing.T) {
	r, obj := manifestAsIs(t, "resourceclaim", "status.allocation={devices: {}}", "status.reservedFor=[{resource: pods, name: a, uid: u}, {resource: pods, name: b, uid: v}]")
	old := obj.(*resourcev1.ResourceClaim)
	old.DeletionTimestamp = &metav1.Time{}
	fewer := old.DeepCopy()
	fewer.Status.ReservedFor = fewer.Status.ReservedFor[1:]
	check(t, r.Strategy.ValidateStatus(fewer, old))
	check(t, r.Strategy.ValidateStatus(old, fewer), "status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")
}

// TestDeallocatedDevices: with a device, what its driver said of it goes.
func TestDeallocatedDevices(t *testing.T) {
	status := func(device int) string { return fmt.Sprintf("{driver: d, pool: p, device: d%d}", device) }
	result := func(device int) string { return fmt.Sprintf("{driver: d, pool: p, device: d%d, request: gpu}", device) }
	devices := "status.devices=" + list(3, status)
	r, old := manifestAsIs(t, "resourceclaim", "status.allocation.devices.results="+list(2, result), devices)
	for want, edits := range map[int][]string{
		3: {"status.allocation.devices.results=" + list(2, result), devices},
		2: {"status.allocation.devices.results=" + list(1, result), devices},
		1: {devices},
		0: {"status.devices=" + list(1, status)},
	} {
		_, obj := manifestAsIs(t, "resourceclaim", edits...)
		claim := obj.(*resourcev1.ResourceClaim)
		r.Strategy.PrepareForStatusUpdate(claim, old)
		if got := claim.Status.Devices; len(got) != want || want == 0 && got != nil {
			t.Errorf("%v are left, not %d", got, want)
		}
	}
}

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
