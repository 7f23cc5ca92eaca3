// Package rbac defines roles and their bindings.
package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	gv := rbacv1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[rbacv1.Role, rbacv1.RoleList](gv, define.Kind{
			Name: "Role", Plural: "roles", NameRule: path.ValidatePathSegmentName, NoGeneration: true, UpsertOnUpdate: true,
		}, roleRules()),
		define.Resource[rbacv1.RoleBinding, rbacv1.RoleBindingList](gv, define.Kind{
			Name: "RoleBinding", Plural: "rolebindings", NameRule: path.ValidatePathSegmentName, NoGeneration: true, UpsertOnUpdate: true,
		}, roleBindingRules()),
		define.Resource[rbacv1.ClusterRole, rbacv1.ClusterRoleList](gv, define.Kind{
			Name: "ClusterRole", Plural: "clusterroles", NameRule: path.ValidatePathSegmentName, Cluster: true, NoGeneration: true, UpsertOnUpdate: true,
		}, clusterRoleRules()),
		define.Resource[rbacv1.ClusterRoleBinding, rbacv1.ClusterRoleBindingList](gv, define.Kind{
			Name: "ClusterRoleBinding", Plural: "clusterrolebindings", NameRule: path.ValidatePathSegmentName, Cluster: true, NoGeneration: true, UpsertOnUpdate: true,
		}, clusterRoleBindingRules()),
	}
}
