package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{[]string{exactly + "selectors=[{cel: {expression: '1'}}, {cel: {expression: device.nix}}, {cel: {expression: device.driver.matches('x')}}]"}, []string{
			`spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "1": must evaluate to bool...`,
			`spec.devices.requests[0].exactly.selectors[1].cel.expression: Invalid value: "device.nix": compilation failed: ERROR...`,
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
		{[]string{exactly + "derivedAttributes=[{name: a.example.com/b, expression: device.driver}, {name: b}, {name: b}]", devices + "constraints=[{matchAttribute: a.example.com/b, requests: [gpu]}]"}, []string{
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
