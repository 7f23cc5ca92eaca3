package registry_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/registry/patch"
)

// FuzzApply applies anything to a pod that is there: it is refused with a
// Status, or leaves an object that can be applied to again.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		podHead, podHead + "spec: {containers: [{name: c, image: j}]}", podHead + "spec: null",
		podHead + "spec: {containers: [{image: j}]}", podHead + "spec: {containers: [null]}", podHead + "spec: {containers: {}}",
		podHead + "spec: {nodeSelector: {a: null}}", podHead + "spec: {activeDeadlineSeconds: 1.5}", podHead + "status: {startTime: x}",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","finalizers":[1,null,{}]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","ownerReferences":[{"uid":"u"},{"uid":"u"}]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":{},"managedFields":[]}}`,
		"a: &a [*a]", "a: !!binary x", "{", "\xd9\xd9\xf7\xa1",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	fix := newFixture(f)
	key := "/registry/pods/default/p"
	f.Fuzz(func(t *testing.T, body string, cbor bool) {
		kind := types.ApplyYAMLPatchType
		if cbor {
			kind = types.ApplyCBORPatchType
		}
		patch, err := patch.Parse(kind, []byte(body))
		if err != nil {
			wantStatusError(t, err)
			return
		}
		fix.create(t, "pods", newPod("p", ""))
		defer func() {
			kv, err := fix.store.Get(t.Context(), key, 0)
			if err == nil {
				_, err = fix.store.Delete(t.Context(), key, kv.Modified)
			}
			if err != nil {
				t.Error(err)
			}
		}()
		opts := registry.PatchOptions{WriteOptions: by("fuzz"), Force: true}
		first, err := fix.of(t, "pods").Patch(t.Context(), "default", "p", patch, opts)
		if err != nil {
			wantStatusError(t, err)
			return
		}
		again, err := fix.of(t, "pods").Patch(t.Context(), "default", "p", patch, opts)
		if err != nil {
			t.Fatalf("applied once, but not twice: %v", err)
		}
		if again.Revision != first.Revision {
			t.Errorf("applying the same again made revision %d of %d", again.Revision, first.Revision)
		}
	})
}

func wantStatusError(t *testing.T, err error) {
	t.Helper()
	if apierrors.ReasonForError(err) == "" {
		if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code == 0 { //nolint:errorlint // every error of the package is one
			t.Errorf("error %v is no Status", err)
		}
	}
}
