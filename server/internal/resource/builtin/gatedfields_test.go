package builtin_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestFieldsOfClosedGates: fields that kube-apiserver drops while their gate is closed are checked here
// as it checks them when the gate is open.
func TestFieldsOfClosedGates(t *testing.T) {
	const (
		c      = "spec.containers.0."
		linux  = "spec.os={name: linux}"
		hook   = c + "lifecycle={preStop: {httpGet: {port: 80, path: /, scheme: %s, host: %q, protocol: %s}}}"
		signal = c + "lifecycle={stopSignal: %s}"
		group  = "spec.schedulingGroup="
		answer = "spec.evictionResponders="
	)
	hookAt := "spec.containers[0].lifecycle.preStop.httpGet."
	many := "[" + strings.Repeat("{name: example.com/a, priority: 1000}, ", 10) + "{name: example.com/a, priority: 1000}]"
	checkRefusals(t, []refusal{
		{"pod", []string{fmt.Sprintf(signal, "SIGTERM")}, []string{
			"spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`",
		}},
		{"pod", []string{linux, fmt.Sprintf(signal, "SIGRTMIN+15")}, nil},
		{"pod", []string{"spec.os={name: windows}", "spec.securityContext-", fmt.Sprintf(signal, "SIGINT")}, []string{
			`spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGINT": supported values: "SIGKILL", "SIGTERM"`,
		}},
		{"pod", []string{fmt.Sprintf(hook, "HTTP", "", "HTTP2")}, nil},
		{"pod", []string{fmt.Sprintf(hook, "HTTPS", "", "HTTP1")}, nil},
		{"pod", []string{fmt.Sprintf(hook, "HTTP", "", "H3")}, []string{hookAt + `protocol: Unsupported value: "H3": supported values: "HTTP1", "HTTP2"`}},
		{"pod", []string{fmt.Sprintf(hook, "HTTPS", "", "HTTP2")}, []string{hookAt + `protocol: Invalid value: "HTTP2": is only supported with HTTP (H2C)`}},
		{"pod", []string{fmt.Sprintf(hook, "HTTP", "a", "HTTP2")}, []string{hookAt + "host: Invalid value: \"a\": must be empty when `protocol` is \"HTTP2\""}},
		{"pod", []string{c + "livenessProbe={grpc: {port: 80, mode: Open}}"}, []string{
			`spec.containers[0].livenessProbe.grpc.mode: Unsupported value: "Open": supported values: "Plaintext", "TLS"`,
		}},
		{"pod", []string{group + "{}"}, []string{"spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`"}},
		{"pod", []string{group + "{podGroupName: a}", answer + "[{name: example.com/a, priority: 1000}]"}, []string{
			"spec.schedulingGroup: Forbidden: may not be set when evictionResponders is set",
		}},
		{"pod", []string{answer + "[{name: example.com/a, priority: 1000}, {name: b.k8s.io/a, priority: 999}, {}, {name: example.com/a, priority: 100001}]"}, []string{
			`spec.evictionResponders[3]: Duplicate value: {"name":"example.com/a","priority":100001}`,
			`spec.evictionResponders[1].name: Invalid value: "b.k8s.io/a": domain names *.k8s.io, *.kubernetes.io are reserved`,
			"spec.evictionResponders[1].priority: Invalid value: 999: priorities 0-999 are reserved for responders with *.k8s.io suffix",
			"spec.evictionResponders[2].name: Required value", "spec.evictionResponders[2].priority: Required value",
			"spec.evictionResponders[3].priority: Invalid value: 100001: must be less than or equal to 100000",
		}},
		{"node", []string{"spec.podPreemptionPolicy={disableResizePreemption: [a, b/c, a, '-']}"}, []string{
			"spec.podPreemptionPolicy.disableResizePreemption[3]: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
			`spec.podPreemptionPolicy.disableResizePreemption[2]: Duplicate value: "a"`,
		}},
		{"pod", []string{answer + many}, []string{"spec.evictionResponders: Too many: 11: must have at most 10 items"}},
	})
}
