package builtin_test

import (
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

func TestStorageKinds(t *testing.T) {
	const subdomain = "must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character" +
		` (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	checkRefusals(t, []refusal{
		{"csidriver", []string{"spec.fsGroupPolicy=", "spec.volumeLifecycleModes=[Persistent, Brief]"}, []string{
			`spec.volumeLifecycleModes: Unsupported value: "Brief": supported values: "Persistent", "Ephemeral"`,
		}},
		{"csidriver", []string{"spec.fsGroupPolicy=''"}, []string{`spec.fsGroupPolicy: Unsupported value: "": supported values: "File", "None", "ReadWriteOnceWithFSType"`}},
		{"csidriver", []string{"spec.nodeAllocatableUpdatePeriodSeconds=0"}, []string{"spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 0: must be greater than or equal to 10 seconds"}},
		{"storageclass", []string{"provisioner=''", "volumeBindingMode=Later"}, []string{
			`volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"`, "provisioner: Required value",
		}},
		{"storageclass", []string{"allowedTopologies=[{}, {matchLabelExpressions: [{key: zone, values: [b]}]}]"}, []string{
			`allowedTopologies[0].matchLabelExpressions: Duplicate value: ""`, `allowedTopologies[0].matchLabelExpressions: Duplicate value: ""`,
		}},
		{"attachment", []string{"spec.attacher=''", "spec.nodeName=''"}, []string{`spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain ` + subdomain, "spec.attacher: Required value"}},
		{"attachment", []string{"spec.attacher=" + strings.Repeat("a", 64)}, []string{"spec.attacher: Too long: may not be more than 63 characters"}},
		{"attachment", []string{"spec.attacher=Example.com"}, nil},
		{"capacity", nil, nil},
		{"capacity", []string{"storageClassName-", "nodeTopology={matchLabels: {a b: c}}", "capacity=-1"}, []string{
			"nodeTopology.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character" +
				" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
			`storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain ` + subdomain,
			`capacity: Invalid value: "-1": must be greater than or equal to 0`,
		}},
	})
}

// TestUpdatesOfStorageKinds: what must not change, and what a selector that was wrong before may have.
func TestUpdatesOfStorageKinds(t *testing.T) {
	affinity := func(key string) string {
		return "spec.nodeAffinity={required: {nodeSelectorTerms: [{matchExpressions: [{key: " + key + ", operator: Exists}]}]}}"
	}
	for _, tt := range []struct {
		manifest   string
		old, edits []string
		want       []string
	}{
		{"csidriver", nil, []string{"spec.attachRequired=false", "spec.volumeLifecycleModes=[Ephemeral]"}, []string{"Invalid spec.attachedRequired", "Invalid spec.volumeLifecycleModes"}},
		{"claim", nil, []string{"spec.dataSourceRef={apiGroup: a b, kind: A, name: a}"}, []string{"Invalid spec.dataSource.apiGroup", "Invalid spec.dataSourceRef.apiGroup", "Forbidden spec"}},
		{"claim", []string{"spec.dataSourceRef={apiGroup: a, kind: A, name: a}"}, []string{"spec.dataSourceRef={apiGroup: a b, kind: A, name: a}"}, []string{"Forbidden spec"}},
		{"volume", []string{affinity("a")}, []string{affinity("b")}, []string{"Invalid nodeAffinity"}},
		{"volume", []string{affinity("a")}, []string{affinity("''")}, nil}, // refused as any volume with it
		{"volume", []string{affinity("beta.kubernetes.io/os")}, []string{affinity("kubernetes.io/os")}, nil},
		{"csinode", nil, []string{"spec.drivers.0.allocatable={count: 9}"}, nil},
		{"csinode", nil, []string{"spec.drivers=[]"}, nil},
		{"csinode", nil, []string{"spec.drivers.0.nodeID=other"}, []string{"Invalid spec.drivers"}},
		{"attributesclass", nil, []string{"driverName=other", "parameters={z: z}"}, []string{"Forbidden driverName", "Forbidden parameters"}},
		{"capacity", nil, []string{"capacity=2Gi"}, nil},
		{"capacity", nil, []string{"storageClassName=other"}, []string{"Invalid storageClassName"}},
		{"capacity", []string{"nodeTopology={matchExpressions: [{key: a, operator: In, values: [b c]}]}"}, []string{"nodeTopology={matchExpressions: [{key: a, operator: In, values: [b c]}]}"}, nil},
		{"capacity", nil, []string{"nodeTopology={matchLabels: {a: b c}}"}, []string{"Invalid nodeTopology.matchLabels", "Invalid nodeTopology"}},
	} {
		r, old := manifest(t, tt.manifest, tt.old...)
		_, obj := manifest(t, tt.manifest, tt.edits...)
		check := r.Strategy.ValidateUpdate
		if check == nil {
			check = r.Strategy.ValidateUnchanged
		}
		if got := complaints(check(obj, old)); !slices.Equal(got, tt.want) {
			t.Errorf("%s %v: %v, not %v", tt.manifest, tt.edits, got, tt.want)
		}
	}
}

func TestWarningsOfStorageKinds(t *testing.T) {
	const tokens = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"
	requests := "spec.tokenRequests=[{audience: a}]"
	for _, tt := range []struct {
		manifest string
		edits    []string
		want     []string
	}{
		{"csidriver", nil, nil},
		{"csidriver", []string{requests}, []string{tokens}},
		{"csidriver", []string{requests, "spec.serviceAccountTokenInSecrets=false"}, nil},
		{"storageclass", []string{"allowedTopologies=[{matchLabelExpressions: [{key: zone, values: [a]}, {key: beta.kubernetes.io/os, values: [b]}]}]"},
			[]string{`allowedTopologies[0].matchLabelExpressions[1].key: deprecated since v1.14; use "kubernetes.io/os" instead`}},
		{"capacity", []string{"nodeTopology={matchLabels: {beta.kubernetes.io/os: a}, matchExpressions: [{key: beta.kubernetes.io/arch, operator: Exists}]}"}, []string{
			`nodeTopology.matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead`,
			`nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; use "kubernetes.io/os" instead`,
		}},
	} {
		r, obj := manifest(t, tt.manifest, tt.edits...)
		if got := warnings(r, obj, nil); !slices.Equal(got, tt.want) {
			t.Errorf("%s %v: %q, not %q", tt.manifest, tt.edits, got, tt.want)
		}
	}
	r, obj := manifest(t, "csidriver", requests)
	if got := warnings(r, obj, obj); len(got) > 0 {
		t.Errorf("requests that stay: %q", got)
	}
}

func TestHealthOfNodes(t *testing.T) {
	r, obj := manifest(t, "csinode")
	node := obj.(*storagev1.CSINode)
	mode := storagev1.StorageHealthCondition{Status: storagev1.StorageDegraded, Reason: "Slow"}
	node.Status.StorageHealth = []storagev1.StorageHealth{
		{Name: "a", HealthConditions: []storagev1.StorageHealthCondition{mode}},
		{Name: "a", HealthConditions: []storagev1.StorageHealthCondition{{Reason: strings.Repeat("a", 257), Message: strings.Repeat("a", 1025)}, {Status: storagev1.StorageUnreachable}}},
		{HealthConditions: make([]storagev1.StorageHealthCondition, 17)},
	}
	want := []string{
		"Duplicate status.storageHealth[1]",
		"NotSupported status.storageHealth[1].healthConditions[0].status", "TooLong status.storageHealth[1].healthConditions[0].reason", "TooLong status.storageHealth[1].healthConditions[0].message",
		"Required status.storageHealth[1].healthConditions[1].reason",
		"Required status.storageHealth[2].name", "TooMany status.storageHealth[2].healthConditions",
	}
	if got := complaints(r.Strategy.ValidateStatus(node, node)); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
