package builtin_test

import (
	"strings"
	"testing"
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
