package rbac

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Columns adds the columns of the kinds of the group.
func Columns(all columns.Layouts) {
	gv := rbacv1.SchemeGroupVersion
	all.Add(gv, "ClusterRole", columns.NameAndCreation())
	all.Add(gv, "ClusterRoleBinding", clusterRoleBindingLayout())
	all.Add(gv, "Role", columns.NameAndCreation())
	all.Add(gv, "RoleBinding", roleBindingLayout())
}

// bindingColumns are those of a kind of bindings: what the descriptions call it, and what the documentation of its role says, which
// kube-apiserver takes from the beta version.
func bindingColumns(binding, role string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		columns.NameColumn,
		columns.Text("Role", role),
		columns.AgeColumn,
		columns.Wide(columns.Text("Users", "Users in the "+binding)),
		columns.Wide(columns.Text("Groups", "Groups in the "+binding)),
		columns.Wide(columns.Text("ServiceAccounts", "ServiceAccounts in the "+binding)),
	}
}

func roleBindingLayout() columns.Layout {
	return columns.Table(func(b *rbacv1.RoleBinding, now time.Time) []any {
		return bindingCells(b.Name, &b.RoleRef, b.Subjects, columns.Since(b.CreationTimestamp, now))
	}, bindingColumns("roleBinding", rbacv1beta1.RoleBinding{}.SwaggerDoc()["roleRef"])...)
}

func clusterRoleBindingLayout() columns.Layout {
	return columns.Table(func(b *rbacv1.ClusterRoleBinding, now time.Time) []any {
		return bindingCells(b.Name, &b.RoleRef, b.Subjects, columns.Since(b.CreationTimestamp, now))
	}, bindingColumns("clusterRoleBinding", rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"])...)
}

func bindingCells(name string, role *rbacv1.RoleRef, subjects []rbacv1.Subject, age string) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{
		name, role.Kind + "/" + role.Name, age,
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}
