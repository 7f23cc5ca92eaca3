package fieldmanager

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/levelwire/levelwire/server/internal/resource/builtin"
)

// TestRawJSONThatCannotBeRead: what the library cannot read in an object, on which it panics, leaves the
// managedFields as they were, and is the client's fault where the object is applied to.
func TestRawJSONThatCannotBeRead(t *testing.T) {
	m := Manager{Resource: builtin.Table().Lookup("apps", "v1", "controllerrevisions"), Now: time.Unix(1, 0)}
	for _, raw := range []string{`1e400`, `{"a":1e400}`, `[1e400]`, `{`, `x`} {
		revision := func(data string) *appsv1.ControllerRevision {
			return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Data: runtime.RawExtension{Raw: []byte(data)}, Revision: 1}
		}
		created := revision(raw)
		m.Update(t.Context(), nil, created, "one")
		if created.ManagedFields != nil {
			t.Errorf("%s: created with %v", raw, created.ManagedFields)
		}
		live := revision(`{"a":1}`)
		m.Update(t.Context(), nil, live, "one")
		updated := live.DeepCopy()
		updated.Data.Raw = []byte(raw)
		m.Update(t.Context(), live, updated, "two")
		if len(live.ManagedFields) != 1 || len(updated.ManagedFields) != 1 || updated.ManagedFields[0].Manager != "one" {
			t.Errorf("%s: updated from %v to %v", raw, live.ManagedFields, updated.ManagedFields)
		}
		patch := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": map[string]any{"name": "r"}, "revision": int64(2),
		}}
		if _, err := m.Apply(t.Context(), updated, patch, "three", true); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: an apply is answered with %v", raw, err)
		}
	}
}
