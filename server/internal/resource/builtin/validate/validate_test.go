package validate

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestOneOfListsInOrder: the values of an enumeration are listed in the order of the alphabet, as
// kube-apiserver lists them, whatever their order in the check.
func TestOneOfListsInOrder(t *testing.T) {
	errs := OneOf(field.NewPath("protocol"), "ICMP", "UDP", "TCP", "SCTP")
	const want = `protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"`
	if len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("%v, not %s", errs, want)
	}
	const own = `effect: Unsupported value: "Never": supported values: "NoSchedule", "NoExecute"`
	if errs := OneOfInOrder(field.NewPath("effect"), "Never", "NoSchedule", "NoExecute"); len(errs) != 1 || errs[0].Error() != own {
		t.Errorf("%v, not %s", errs, own)
	}
}
