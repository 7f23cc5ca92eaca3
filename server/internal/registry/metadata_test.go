package registry

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
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
