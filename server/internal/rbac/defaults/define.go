package defaults

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lists of verbs. All lists in the tables are separated by spaces.
const (
	read       = "get list watch"
	write      = "create delete deletecollection patch update"
	readWrite  = "create delete deletecollection get list patch update watch"
	readUpdate = "get list patch update watch"
	record     = "create patch update"
)

const (
	bootstrappingLabel = "kubernetes.io/bootstrapping"
	bootstrappingValue = "rbac-defaults"
	aggregateTo        = "rbac.authorization.k8s.io/aggregate-to-"
	controllerPrefix   = "system:controller:"
	// coreGroup stands for the group that has no name.
	coreGroup = "core"
)

// on allows verbs on resources of API groups.
func on(verbs, groups, resources string) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: strings.Fields(verbs), Resources: strings.Fields(resources)}
	for _, group := range strings.Fields(groups) {
		if group == coreGroup {
			group = ""
		}
		rule.APIGroups = append(rule.APIGroups, group)
	}
	return rule
}

// onNamed allows verbs on objects with these names alone.
func onNamed(verbs, groups, resources, names string) rbacv1.PolicyRule {
	rule := on(verbs, groups, resources)
	rule.ResourceNames = strings.Fields(names)
	return rule
}

// onPaths allows verbs on paths that are not resources.
func onPaths(verbs, paths string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), NonResourceURLs: strings.Fields(paths)}
}

// onEvents allows what recording events takes.
func onEvents() rbacv1.PolicyRule { return on(record, "core events.k8s.io", "events") }

func metadata(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{bootstrappingLabel: bootstrappingValue},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metadata("", name), Rules: rules}
}

// aggregated is a role whose rules are those of all roles with its label.
func aggregated(name string) *rbacv1.ClusterRole {
	role := clusterRole(name)
	role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{aggregateTo + name: "true"}},
	}}
	return role
}

// partOf labels a role so that an aggregated one has its rules.
func partOf(whole string, role *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	role.Labels[aggregateTo+whole] = "true"
	return role
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metadata(namespace, name), Rules: rules}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

// account is a service account of kube-system.
func account(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: name}
}

// clusterRoleBinding binds the ClusterRole of the same name.
func clusterRoleBinding(name string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metadata("", name), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
}

func roleBinding(namespace, name, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metadata(namespace, name), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}
}

// controllerBindings bind each controller's role to its service account.
func controllerBindings() []*rbacv1.ClusterRoleBinding {
	var bindings []*rbacv1.ClusterRoleBinding
	for _, role := range controllerRoles() {
		bindings = append(bindings, clusterRoleBinding(role.Name, account(strings.TrimPrefix(role.Name, controllerPrefix))))
	}
	return bindings
}
