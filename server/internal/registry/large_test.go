package registry_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
)

// What these tests write fits into one request, and would take minutes, or more memory than there
// is, if each element were compared with each.

// TestManyOwners: owners are compared by what they are, also those that have one uid, and an error
// about all of them is not said for each.
func TestManyOwners(t *testing.T) {
	const many = 20_000
	controls := true
	f := newFixture(t)
	for name, change := range map[string]func(ref *metav1.OwnerReference, i int){
		"distinct":   func(ref *metav1.OwnerReference, i int) { ref.UID = types.UID(fmt.Sprint("u", i)) },
		"of one uid": func(ref *metav1.OwnerReference, i int) { ref.Name = fmt.Sprint("o", many-i) },
		"descending": func(ref *metav1.OwnerReference, i int) { ref.UID = types.UID(fmt.Sprintf("u%6d", many-i)) },
		"equal":      func(*metav1.OwnerReference, int) {},
		"controlling": func(ref *metav1.OwnerReference, i int) {
			ref.UID, ref.Controller = types.UID(fmt.Sprint("u", i)), &controls
		},
	} {
		obj := configMap("a", "1")
		for i := range many {
			ref := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u"}
			change(&ref, i)
			obj.OwnerReferences = append(obj.OwnerReferences, ref)
		}
		_, err := f.of(t, "configmaps").Create(t.Context(), "default", obj, registry.WriteOptions{DryRun: true})
		if refused := name == "controlling"; refused != apierrors.IsInvalid(err) || err != nil && !refused {
			t.Errorf("%s: %.300v", name, err)
		}
		if err != nil && len(err.Error()) > 16<<20 {
			t.Errorf("%s: an answer of %d bytes", name, len(err.Error()))
		}
	}
}
