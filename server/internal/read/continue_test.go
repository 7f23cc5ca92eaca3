package read

import (
	"encoding/base64"
	"path"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestContinueTokenIsThatOfKubernetes(t *testing.T) {
	token, err := encodeContinue(42, "ns/", "ns/name")
	must(t, err)
	want := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":42,"start":"name\u0000"}`))
	if token != want {
		t.Errorf("token %s, want %s", token, want)
	}
	got, err := decodeContinue(token)
	must(t, err)
	if got.Revision != 42 || got.Start != "name\x00" {
		t.Errorf("decoded %+v", got)
	}
}

func TestContinueTokenRefusals(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":        `start`,
		"other version":  `{"v":"meta.k8s.io/v9","rv":1,"start":"a"}`,
		"no revision":    `{"v":"meta.k8s.io/v1","start":"a"}`,
		"no start":       `{"v":"meta.k8s.io/v1","rv":1}`,
		"climbs":         `{"v":"meta.k8s.io/v1","rv":1,"start":"../../secrets/a"}`,
		"hides":          `{"v":"meta.k8s.io/v1","rv":1,"start":"a/./b"}`,
		"twice absolute": `{"v":"meta.k8s.io/v1","rv":1,"start":"//a"}`,
		"enormous":       `{"v":"meta.k8s.io/v1","rv":1,"start":"` + strings.Repeat("a", 4000) + `"}`,
	} {
		_, err := decodeContinue(base64.RawURLEncoding.EncodeToString([]byte(text)))
		if !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got %v, want a 400", name, err)
		}
	}
}

// TestContinueTokensOfOtherPrograms are read as Kubernetes reads them.
func TestContinueTokensOfOtherPrograms(t *testing.T) {
	for text, want := range map[string]continueToken{
		`{"v":"meta.k8s.io/v1","rv":-2,"start":"a"}`: {continueVersion, inconsistent, "a"},
		`{"v":"meta.k8s.io/v1","rv":1,"start":"/a"}`: {continueVersion, 1, "a"},
		`{"v":"meta.k8s.io/v1","rv":1,"start":"/"}`:  {continueVersion, 1, "/"},
	} {
		got, err := decodeContinue(base64.RawURLEncoding.EncodeToString([]byte(text)))
		if err != nil || got != want {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func FuzzContinueToken(f *testing.F) {
	token, err := encodeContinue(42, "", "ns/name")
	must(f, err)
	f.Add(token)
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, token string) {
		got, err := decodeContinue(token)
		if err != nil {
			if !apierrors.IsBadRequest(err) {
				t.Fatalf("%q: %v", token, err)
			}
			return
		}
		if !strings.HasPrefix(path.Join("/prefix", got.Start), "/prefix/") || got.Revision == 0 {
			t.Fatalf("%q was let through as %+v", token, got)
		}
		again, err := encodeToken(got)
		must(t, err)
		if back, err := decodeContinue(again); err != nil || back != got {
			t.Fatalf("%+v does not survive: %+v, %v", got, back, err)
		}
	})
}
