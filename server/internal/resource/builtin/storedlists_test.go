package builtin_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestEmptyListsAreStoredAsNone: kube-apiserver's store does not tell them apart, so that clients
// read null.
func TestEmptyListsAreStoredAsNone(t *testing.T) {
	for _, tt := range []struct{ name, edit, stored string }{
		{"clusterrole", "rules=[]", `"rules":null`},
		{"endpointslice", "endpoints=[]", `"endpoints":null`},
		{"endpointslice", "ports=[]", `"ports":null`},
		{"csinode", "spec.drivers=[]", `"drivers":null`},
		{"csinode", "spec.drivers.0.topologyKeys=[]", `"topologyKeys":null`},
		{"limitrange", "spec.limits=[]", `"limits":null`},
		{"flowschema", "spec.rules.0.resourceRules.0.namespaces=[]", `"namespaces":null`},
		{"secret", "data={a: null}", `"data":{"a":"",`},
	} {
		r, obj := manifest(t, tt.name, tt.edit)
		r.Strategy.CompleteStored(obj)
		stored, err := r.Encode(t.Context(), obj)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(stored), tt.stored) {
			t.Errorf("%s with %s is stored as %s", tt.name, tt.edit, stored)
		}
	}
}

// TestEmptyListsInAStatusAreStoredAsNone is the same for writes of a status.
func TestEmptyListsInAStatusAreStoredAsNone(t *testing.T) {
	for _, tt := range []struct{ name, edit, stored string }{
		{"node", "status.images=[{names: [a]}, {names: []}]", `"images":[{"names":["a"]},{"names":null}]`},
		{"node", "status.allocatable={}", `"allocatable":{"cpu":"4","memory":"8Gi"}`},
		{"autoscaler", "status={currentMetrics: [], desiredReplicas: 1}", `"currentMetrics":null`},
		{"resourceclaim", "status.devices=[{driver: d, pool: p, device: a, conditions: []}]", `"conditions":null`},
	} {
		r, obj := manifestAsIs(t, tt.name, tt.edit)
		r.Strategy.CompleteStatus(obj)
		stored, err := r.Encode(t.Context(), obj)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(stored), tt.stored) {
			t.Errorf("%s with %s is stored as %s", tt.name, tt.edit, stored)
		}
	}
}

// TestEmptyListsInAStatusMayBeAnothers: the object before a write may have the same lists, and stays.
func TestEmptyListsInAStatusMayBeAnothers(t *testing.T) {
	r, obj := manifestAsIs(t, "node", "status.images=[{names: []}]")
	before := obj.(*corev1.Node).Status.Images
	r.Strategy.CompleteStatus(obj)
	if before[0].Names == nil {
		t.Error("the list of the object before has changed")
	}
}
