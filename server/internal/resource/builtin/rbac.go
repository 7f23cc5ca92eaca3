package builtin

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func rbacResources() []*resource.Resource {
	gv := rbacv1.SchemeGroupVersion
	return []*resource.Resource{
		define[rbacv1.Role, rbacv1.RoleList](gv, kind{
			Name: "Role", Plural: "roles", NameRule: path.ValidatePathSegmentName, NoGeneration: true, UpsertOnUpdate: true,
		}, roleRules()),
		define[rbacv1.RoleBinding, rbacv1.RoleBindingList](gv, kind{
			Name: "RoleBinding", Plural: "rolebindings", NameRule: path.ValidatePathSegmentName, NoGeneration: true, UpsertOnUpdate: true,
		}, roleBindingRules()),
		define[rbacv1.ClusterRole, rbacv1.ClusterRoleList](gv, kind{
			Name: "ClusterRole", Plural: "clusterroles", NameRule: path.ValidatePathSegmentName, Cluster: true, NoGeneration: true, UpsertOnUpdate: true,
		}, clusterRoleRules()),
		define[rbacv1.ClusterRoleBinding, rbacv1.ClusterRoleBindingList](gv, kind{
			Name: "ClusterRoleBinding", Plural: "clusterrolebindings", NameRule: path.ValidatePathSegmentName, Cluster: true, NoGeneration: true, UpsertOnUpdate: true,
		}, clusterRoleBindingRules()),
	}
}
