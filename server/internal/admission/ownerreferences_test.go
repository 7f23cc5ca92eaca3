package admission_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/admission"
)

// TestOwnerReferencesPermissionEnforcement: who may not delete an object may not give it
// an owner, whose end would delete it; and who may not set an owner's finalizers may not
// make the owner wait.
func TestOwnerReferencesPermissionEnforcement(t *testing.T) {
	s := levelwiretest.Start(t, func(c *server.Config) {
		c.EnableAdmissionPlugins = []string{admission.OwnerReferencesPermissionEnforcement}
	})
	admin := &cluster{s.Client(client.Options{}), t}
	as, err := client.New(s.UserConfig("jane"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	jane := &cluster{as, t}
	allow := func(name string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		must[*rbacv1.Role](t, name)(create(admin, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}))
		must[*rbacv1.RoleBinding](t, name)(create(admin, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
		}))
	}
	allow("writer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "update"}})
	yes := true
	owned := func(name string, blocking *bool) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: "d", UID: "1", BlockOwnerDeletion: blocking},
		}}}
	}
	maps := client.For[*corev1.ConfigMap](jane.Client).Namespace("default")
	update := func(obj *corev1.ConfigMap) error {
		_, err := maps.Update(t.Context(), obj, metav1.UpdateOptions{})
		return err
	}

	must[*corev1.ConfigMap](t, "without an owner")(create(jane, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	must[*corev1.ConfigMap](t, "with one that does not wait")(create(jane, owned("b", nil)))
	_, err = create(jane, owned("c", &yes))
	mustSay(t, "an owner that waits", err, "cannot set blockOwnerDeletion")
	mustSay(t, "an owner of an object that may not be deleted", update(owned("a", nil)), "cannot set an ownerRef on a resource you can't delete")
	changed := owned("b", nil)
	changed.Data = map[string]string{"k": "v"}
	if err := update(changed); err != nil {
		t.Errorf("an update that keeps the owners: %v", err)
	}

	allow("deleter", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"delete"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments/finalizers"}, Verbs: []string{"update"}})
	must[*corev1.ConfigMap](t, "an owner that waits, with the right")(create(jane, owned("c", &yes)))
	if err := update(owned("a", &yes)); err != nil {
		t.Errorf("an owner, with the right to delete: %v", err)
	}
}
