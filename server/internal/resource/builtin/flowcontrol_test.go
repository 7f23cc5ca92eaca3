package builtin_test

import (
	"slices"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

func TestFlowSchemas(t *testing.T) {
	const (
		rule  = "spec.rules.0."
		at    = "spec.rules[0]."
		res   = rule + "resourceRules.0."
		resAt = at + "resourceRules[0]."
		url   = rule + "nonResourceRules.0.nonResourceURLs="
		urlAt = at + "nonResourceRules[0].nonResourceURLs"
		verbs = `supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"`
		kinds = `supported values: "Group", "ServiceAccount", "User"`
	)
	checkRefusals(t, []refusal{
		{"flowschema", nil, nil},
		{"flowschema", []string{"spec.matchingPrecedence=-1"}, []string{"spec.matchingPrecedence: Invalid value: -1: must be a positive value"}},
		{"flowschema", []string{"spec.matchingPrecedence=10001"}, []string{"spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"}},
		{"flowschema", []string{"spec.matchingPrecedence=1"}, []string{"spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"}},
		{"flowschema", []string{"spec.distinguisherMethod.type=ByMood"}, []string{`spec.distinguisherMethod.type: Unsupported value: {"type":"ByMood"}: supported values: "ByNamespace", "ByUser"`}},
		{"flowschema", []string{"spec.priorityLevelConfiguration-"}, []string{"spec.priorityLevelConfiguration.name: Required value: must reference a priority level"}},
		{"flowschema", []string{"spec.rules-"}, nil},
		{"flowschema", []string{"spec.rules=[{}]"}, []string{
			"spec.rules[0].subjects: Required value: subjects must contain at least one value",
			"spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
		}},
		{"flowschema", []string{rule + "subjects.0.kind="}, []string{at + `subjects[0].kind: Unsupported value: "": ` + kinds}},
		{"flowschema", []string{rule + "subjects.0={kind: ServiceAccount}"}, []string{at + "subjects[0].serviceAccount: Required value: serviceAccount is required when subject kind is 'ServiceAccount'"}},
		{"flowschema", []string{rule + "subjects.0.serviceAccount={name: a b}"}, []string{
			at + `subjects[0].serviceAccount.name: Invalid value: "a b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character` +
				` (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			at + "subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account",
		}},
		{"flowschema", []string{rule + "subjects.1={kind: User, group: {name: g}, serviceAccount: {name: a, namespace: b}}"}, []string{
			at + "subjects[1].user: Required value: user is required when subject kind is 'User'",
			at + "subjects[1].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'",
			at + "subjects[1].group: Forbidden: group is forbidden when subject kind is not 'Group'",
		}},
		{"flowschema", []string{rule + "subjects.2={kind: Group, group: {name: ''}}"}, []string{at + "subjects[2].group.name: Required value"}},
		{"flowschema", []string{res + "verbs=[]", res + "apiGroups=[]", res + "resources=[]", res + "namespaces=[]"}, []string{
			resAt + "verbs: Required value: verbs must contain at least one value",
			resAt + "apiGroups: Required value: resource rules must supply at least one api group",
			resAt + "resources: Required value: resource rules must supply at least one resource",
			resAt + "namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace",
		}},
		{"flowschema", []string{res + "verbs=[get, '*']", res + "apiGroups=['*', a]", res + "resources=['*', a]", res + "namespaces=[a, '*']"}, []string{
			resAt + `verbs: Invalid value: ["get","*"]: if '*' is present, must not specify other verbs`,
			resAt + `apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other api groups`,
			resAt + `resources: Invalid value: ["*","a"]: if '*' is present, must not specify other resources`,
			resAt + `namespaces: Invalid value: ["a","*"]: if '*' is present, must not specify other namespaces`,
		}},
		{"flowschema", []string{res + "clusterScope=true", res + "namespaces=[]"}, nil},
		{"flowschema", []string{res + "verbs=[get, eat]", res + "namespaces=[a.b]"}, []string{
			resAt + `verbs: Unsupported value: ["get","eat"]: ` + verbs,
			resAt + `namespaces[0]: Invalid value: "a.b": each member of this list must be '*' or a DNS-1123 label; must not contain dots`,
		}},
		{"flowschema", []string{url + "[]"}, []string{urlAt + ": Required value: nonResourceURLs must contain at least one value"}},
		{"flowschema", []string{url + "['*', /a]"}, []string{urlAt + `: Invalid value: ["*","/a"]: if '*' is present, must not specify other non-resource URLs`}},
		{"flowschema", []string{url + "['', a, /a b, //, /a*, /a/*/*]"}, []string{
			urlAt + `[0]: Invalid value: "": must not be empty`, urlAt + `[1]: Invalid value: "a": must start with slash`,
			urlAt + `[2]: Invalid value: "/a b": must not contain white-space`, urlAt + `[3]: Invalid value: "//": must not contain double slash`,
			urlAt + `[4]: Invalid value: "/a*": wildcard can only do suffix matching`, urlAt + `[5]: Invalid value: "/a/*/*": wildcard can only do suffix matching`,
		}},
	})
}

func TestPriorityLevels(t *testing.T) {
	const queuing = "spec.limited.limitResponse.queuing"
	checkRefusals(t, []refusal{
		{"prioritylevel", nil, nil},
		{"prioritylevel", []string{"metadata.annotations={flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares: ''}"},
			[]string{"metadata.annotations: Forbidden: annotation 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' is forbidden"}},
		{"prioritylevel", []string{"spec.type="}, []string{"spec.limited: Forbidden", "spec.type: Required value"}},
		{"prioritylevel", []string{"spec.type=Exempt"}, []string{`spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if ` + "`name` is 'exempt'", "spec.limited: Forbidden"}},
		{"prioritylevel", []string{"spec.type=Other"}, []string{`spec.type: Unsupported value: "Other": supported values: "Exempt", "Limited"`, "spec.limited: Forbidden"}},
		{"prioritylevel", []string{"spec.limited-"}, []string{"spec.limited: Required value"}},
		{"prioritylevel", []string{"spec.exempt={}"}, []string{"spec.exempt: Forbidden"}},
		{"prioritylevel", []string{"spec.limited.nominalConcurrencyShares=0"}, nil},
		{"prioritylevel", []string{"spec.limited.nominalConcurrencyShares=-1", "spec.limited.lendablePercent=101", "spec.limited.borrowingLimitPercent=-1"}, []string{
			"spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
			"spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
			"spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer",
		}},
		{"prioritylevel", []string{queuing + "-"}, []string{queuing + ": Required value"}},
		{"prioritylevel", []string{"spec.limited.limitResponse.type=Reject"}, []string{queuing + ": Forbidden"}},
		{"prioritylevel", []string{"spec.limited.limitResponse.type="}, []string{queuing + ": Forbidden", "spec.limited.limitResponse.type: Required value"}},
		{"prioritylevel", []string{"spec.limited.limitResponse.type=Other"}, []string{
			`spec.limited.limitResponse.type: Unsupported value: "Other": supported values: "Queue", "Reject"`, queuing + ": Forbidden",
		}},
		{"prioritylevel", []string{queuing + "={queueLengthLimit: -1, queues: -1, handSize: -1}"}, []string{
			queuing + ".queueLengthLimit: Invalid value: -1: must be positive", queuing + ".queues: Invalid value: -1: must be positive", queuing + ".handSize: Invalid value: -1: must be positive",
		}},
		{"prioritylevel", []string{queuing + "={queues: 10000001, handSize: 1}"}, []string{queuing + ".queues: Invalid value: 10000001: must not be greater than 10000000"}},
		{"prioritylevel", []string{queuing + "={queues: 4}"}, []string{queuing + ".handSize: Invalid value: 8: should not be greater than queues (4)"}},
		{"prioritylevel", []string{queuing + "={queues: 1024, handSize: 8}"},
			[]string{queuing + ".handSize: Invalid value: 8: required entropy bits of deckSize 1024 and handSize 8 should not be greater than 60"}},
	})
}

// TestFlowControlConditions: each condition in a status has a type of its own.
func TestFlowControlConditions(t *testing.T) {
	r, obj := manifest(t, "flowschema")
	schema := obj.(*flowcontrolv1.FlowSchema)
	schema.Status.Conditions = []flowcontrolv1.FlowSchemaCondition{{Type: "A"}, {Type: "A"}, {}}
	want := []string{"Duplicate status.conditions[1].type", "Required status.conditions[2].type"}
	if got := complaints(r.Strategy.ValidateStatus(schema, obj)); !slices.Equal(got, want) {
		t.Errorf("a FlowSchema: %v, not %v", got, want)
	}
	r, obj = manifest(t, "prioritylevel")
	level := obj.(*flowcontrolv1.PriorityLevelConfiguration)
	level.Status.Conditions = []flowcontrolv1.PriorityLevelConfigurationCondition{{Type: "A"}, {Type: "A"}, {}}
	if got := complaints(r.Strategy.ValidateStatus(level, obj)); !slices.Equal(got, want) {
		t.Errorf("a PriorityLevelConfiguration: %v, not %v", got, want)
	}
}
