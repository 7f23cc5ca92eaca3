package registry_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
	"github.com/levelwire/levelwire/server/internal/registry/reporter"
)

// said remembers the warnings of a write.
type said struct{ warnings []string }

func (s *said) Warn(text string)        { s.warnings = append(s.warnings, text) }
func (s *said) Annotate(string, string) {}

// TestOwnerReferencesAreMerged: one that is there twice is kept once, with a warning, and
// with every verb; one that differs in anything is another.
func TestOwnerReferencesAreMerged(t *testing.T) {
	controls := false
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u"}
	other := ref
	other.Controller = &controls
	const before, after = "contains duplicate entries; ", "contains duplicate entries after mutating admission happens; "
	f := newFixture(t)
	r := f.of(t, "configmaps")
	check := func(what string, want int, warned string, write func(ctx context.Context) (*registry.Result, error)) {
		t.Helper()
		s := &said{}
		result, err := write(reporter.With(t.Context(), s))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := len(result.Object.GetOwnerReferences()); got != want {
			t.Errorf("%s: %d references, want %d", what, got, want)
		}
		text := strings.Join(s.warnings, "\n")
		if warned == "" && text != "" || !strings.Contains(text, warned) || len(s.warnings) > 1 || warned != "" && !strings.Contains(text, "duplicate UID(s) observed: u") {
			t.Errorf("%s: warnings %q, want one with %q", what, text, warned)
		}
	}
	with := func(refs ...metav1.OwnerReference) func(context.Context) (*registry.Result, error) {
		return func(ctx context.Context) (*registry.Result, error) {
			return r.Update(ctx, "default", "a", changing(func(c *corev1.ConfigMap) { c.OwnerReferences = refs }), registry.UpdateOptions{})
		}
	}
	patched := func(kind types.PatchType, body string) func(context.Context) (*registry.Result, error) {
		p, err := patch.Parse(kind, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context) (*registry.Result, error) {
			return r.Patch(ctx, "default", "a", p, registry.PatchOptions{WriteOptions: by("m")})
		}
	}
	const json = `{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"u"}`
	check("create", 1, before, func(ctx context.Context) (*registry.Result, error) {
		obj := configMap("a", "1")
		obj.OwnerReferences = []metav1.OwnerReference{ref, ref}
		return r.Create(ctx, "default", obj, registry.WriteOptions{})
	})
	check("update", 1, before, with(ref, ref, ref))
	check("merge patch", 1, after, patched(types.MergePatchType, `{"metadata":{"ownerReferences":[`+json+`,`+json+`]}}`))
	check("JSON patch", 1, after, patched(types.JSONPatchType, `[{"op":"add","path":"/metadata/ownerReferences/-","value":`+json+`}]`))
	check("two that differ", 2, "", with(ref, other))
	check("one", 1, "", with(ref))
	check("apply", 1, "", patched(types.ApplyYAMLPatchType, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[`+json+`]}}`))
}

// TestOwnerReferencesOfHooksAreMerged: so is what admission adds.
func TestOwnerReferencesOfHooksAreMerged(t *testing.T) {
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u"}
	f := newFixture(t, func(c *registry.Config) {
		c.Admission = append(c.Admission, func(_ context.Context, q *registry.Request) error {
			if m, ok := q.Object.(*corev1.ConfigMap); ok {
				m.OwnerReferences = append(m.OwnerReferences, ref)
			}
			return nil
		})
	})
	obj, s := configMap("a", "1"), &said{}
	obj.OwnerReferences = []metav1.OwnerReference{ref}
	result, err := f.of(t, "configmaps").Create(reporter.With(t.Context(), s), "default", obj, registry.WriteOptions{})
	if err != nil || len(result.Object.GetOwnerReferences()) != 1 || len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "after mutating admission") {
		t.Errorf("%+v, warnings %q (%v)", result, s.warnings, err)
	}
}
