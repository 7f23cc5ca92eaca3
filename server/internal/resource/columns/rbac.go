package columns

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rbacGroup(all layouts) {
	gv := rbacv1.SchemeGroupVersion
	all.add(gv, "ClusterRole", nameAndCreation())
	all.add(gv, "ClusterRoleBinding", clusterRoleBindings())
	all.add(gv, "Role", nameAndCreation())
	all.add(gv, "RoleBinding", roleBindings())
}

var bindingColumns = []metav1.TableColumnDefinition{
	nameColumn,
	text("Role", "The role that the subjects get."),
	ageColumn,
	wide(text("Users", "The users that get the role.")),
	wide(text("Groups", "The groups that get the role.")),
	wide(text("ServiceAccounts", "The service accounts that get the role.")),
}

func roleBindings() layout {
	return table(func(b *rbacv1.RoleBinding, now time.Time) []any {
		return bindingCells(b.Name, &b.RoleRef, b.Subjects, since(b.CreationTimestamp, now))
	}, bindingColumns...)
}

func clusterRoleBindings() layout {
	return table(func(b *rbacv1.ClusterRoleBinding, now time.Time) []any {
		return bindingCells(b.Name, &b.RoleRef, b.Subjects, since(b.CreationTimestamp, now))
	}, bindingColumns...)
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
