package rbac

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
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

var bindingColumns = []metav1.TableColumnDefinition{
	columns.NameColumn,
	columns.Text("Role", "The role that the subjects get."),
	columns.AgeColumn,
	columns.Wide(columns.Text("Users", "The users that get the role.")),
	columns.Wide(columns.Text("Groups", "The groups that get the role.")),
	columns.Wide(columns.Text("ServiceAccounts", "The service accounts that get the role.")),
}

func roleBindingLayout() columns.Layout {
	return columns.Table(func(b *rbacv1.RoleBinding, now time.Time) []any {
		return bindingCells(b.Name, &b.RoleRef, b.Subjects, columns.Since(b.CreationTimestamp, now))
	}, bindingColumns...)
}

func clusterRoleBindingLayout() columns.Layout {
	return columns.Table(func(b *rbacv1.ClusterRoleBinding, now time.Time) []any {
		return bindingCells(b.Name, &b.RoleRef, b.Subjects, columns.Since(b.CreationTimestamp, now))
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
