package objectmeta

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestPlainMetadataIsValid holds what is not shown to the library against it,
// and would show if ordinary names were not plain.
func TestPlainMetadataIsValid(t *testing.T) {
	long := strings.Repeat("a", maxKeyName)
	domain := strings.Repeat("a.", maxKeyPrefix/2) + "a"
	for _, s := range []string{"app", "app.kubernetes.io/name", "a/b", "A_b.C-9", long, domain + "/" + long, "0/0", "a-b.c/d"} {
		if !plainKey(s) {
			t.Errorf("%q is ordinary", s)
		}
	}
	for _, s := range []string{
		"", "/", "a/", "/a", "a/b/c", "-a", "a-", ".a", "a.", "ä", "a b", "A/b", "a..b/c", "a.-b/c", "-a/b", "a-/b", ".a/b", "a./b",
		long + "a", "a/" + long + "a", domain + "b.c/d", "a\x00", "a\n",
	} {
		checkPlain(t, s)
		if plainKey(s) {
			t.Errorf("%q is plain", s)
		}
	}
}

func checkPlain(t *testing.T, s string) {
	t.Helper()
	if plainKey(s) {
		for _, form := range []string{s, strings.ToLower(s)} {
			if errs := validation.IsQualifiedName(form); len(errs) > 0 {
				t.Errorf("%q is plain, but %v", s, errs)
			}
		}
	}
	if plainName(s) {
		if errs := validation.IsValidLabelValue(s); len(errs) > 0 {
			t.Errorf("%q is plain, but %v", s, errs)
		}
	}
}

func FuzzPlainMetadata(f *testing.F) {
	f.Add("app.kubernetes.io/name")
	f.Add("a-b.c/d_E.f")
	f.Fuzz(checkPlain)
}

// TestFinalizersOfBuiltinKinds: kube-apiserver refuses a finalizer that is neither one
// of its own nor qualified by a domain.
func TestFinalizersOfBuiltinKinds(t *testing.T) {
	for name, valid := range map[string]bool{
		"kubernetes": true, "orphan": true, "foregroundDeletion": true, "example.com/hold": true,
		"hold": false, "Orphan": false, "kubernetes.io": false,
	} {
		if errs := validateFinalizers([]string{"example.com/first", name}); (len(errs) == 0) != valid {
			t.Errorf("%q: %v", name, errs)
		}
	}
}

// TestFinalizersOfEachGroup: the rule for built-in kinds is not that of all of them.
func TestFinalizersOfEachGroup(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"hold"}}}
	for group, refused := range map[string]bool{"": true, "rbac.authorization.k8s.io": true, "coordination.k8s.io": false, "node.k8s.io": false, "apiregistration.k8s.io": false} {
		if errs := ValidateFinalizers(&resource.Resource{Group: group}, object); (len(errs) > 0) != refused {
			t.Errorf("group %q: %v", group, errs)
		}
	}
}

// TestGenerateNameOfReplaced: no name is made of it any more, and kube-apiserver still
// wants it to be part of a path, for every kind.
func TestGenerateNameOfReplaced(t *testing.T) {
	res := &resource.Resource{Namespaced: true}
	for prefix, valid := range map[string]bool{"": true, "web-": true, "Web -": true, "a/b": false, "a%b": false} {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "a", GenerateName: prefix}}
		if errs := ValidateReplaced(res, obj); (len(errs) == 0) != valid {
			t.Errorf("%q: got %v, want valid %t", prefix, errs, valid)
		}
	}
}
