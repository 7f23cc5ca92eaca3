package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/storage/memory"
)

// finalizersOnly allows the finalizers of named objects, and counts what it is asked.
type finalizersOnly struct{ asked int }

func (f *finalizersOnly) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	f.asked++
	if a.Subresource == "finalizers" && a.Name != "*" {
		return auth.Allow, "", nil
	}
	return auth.NoOpinion, "", nil
}

// TestManyOwners: the authorizer, which may be a webhook, is asked once about each owner, and about few of them.
func TestManyOwners(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	table := builtin.Table()
	set, err := registry.NewSet(registry.Config{Store: store, Resources: table})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		references, names int
		asked             int
		refused           bool
	}{
		{20_000, 3, 1 + 3, false},
		{maxBlockedOwners, maxBlockedOwners, 1 + maxBlockedOwners, false},
		{20_000, 20_000, 1 + maxBlockedOwners, true},
	} {
		object := &corev1.ConfigMap{}
		for i := range c.references {
			object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{
				APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprint("d", i%c.names), UID: types.UID(fmt.Sprint(i)), BlockOwnerDeletion: new(true),
			})
		}
		authorizer := &finalizersOnly{}
		err := OwnerReferencesPermissions(set, authorizer)(auth.WithUser(t.Context(), auth.User{Name: "jane"}), &registry.Request{
			Operation: registry.Create, Resource: table.Lookup("", "v1", "configmaps"), Namespace: "default", Object: object,
		})
		if c.refused != apierrors.IsForbidden(err) || err != nil && !strings.Contains(err.Error(), "blockOwnerDeletion") {
			t.Errorf("%d references to %d owners: %v", c.references, c.names, err)
		}
		if authorizer.asked > c.asked {
			t.Errorf("%d references to %d owners: the authorizer was asked %d times, want %d", c.references, c.names, authorizer.asked, c.asked)
		}
	}
}
