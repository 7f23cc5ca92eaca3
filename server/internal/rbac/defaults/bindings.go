package defaults

import rbacv1 "k8s.io/api/rbac/v1"

// clusterRoleBindings are those that are not of controllers.
func clusterRoleBindings() []*rbacv1.ClusterRoleBinding {
	return []*rbacv1.ClusterRoleBinding{
		clusterRoleBinding("cluster-admin", group("system:masters")),
		clusterRoleBinding("system:basic-user", group("system:authenticated")),
		clusterRoleBinding("system:cluster-trust-bundle-discovery", group("system:serviceaccounts")),
		clusterRoleBinding("system:discovery", group("system:authenticated")),
		clusterRoleBinding("system:kube-controller-manager", user("system:kube-controller-manager")),
		clusterRoleBinding("system:kube-dns", account("kube-dns")),
		clusterRoleBinding("system:kube-scheduler", user("system:kube-scheduler")),
		clusterRoleBinding("system:monitoring", group("system:monitoring")),
		clusterRoleBinding("system:node"),
		clusterRoleBinding("system:node-proxier", user("system:kube-proxy")),
		clusterRoleBinding("system:public-info-viewer", group("system:authenticated"), group("system:unauthenticated")),
		clusterRoleBinding("system:service-account-issuer-discovery", group("system:serviceaccounts")),
		clusterRoleBinding("system:volume-scheduler", user("system:kube-scheduler")),
	}
}

// namespacedRoles are those of namespaces.
func namespacedRoles() []*rbacv1.Role {
	return []*rbacv1.Role{
		role("kube-public", "system:controller:bootstrap-signer",
			on(read, "core", "configmaps"),
			onNamed("update", "core", "configmaps", "cluster-info"),
			onEvents(),
		),
		role("kube-system", "extension-apiserver-authentication-reader",
			onNamed(read, "core", "configmaps", "extension-apiserver-authentication"),
		),
		role("kube-system", "system::leader-locking-kube-controller-manager",
			on("create get list update watch", "coordination.k8s.io", "leases"),
			on("create get list update watch", "coordination.k8s.io", "leasecandidates"),
		),
		role("kube-system", "system::leader-locking-kube-scheduler",
			on("create get list update watch", "coordination.k8s.io", "leases"),
			on("create get list update watch", "coordination.k8s.io", "leasecandidates"),
		),
		role("kube-system", "system:controller:bootstrap-signer", on(read, "core", "secrets")),
		role("kube-system", "system:controller:cloud-provider", on("create get list watch", "core", "configmaps")),
		role("kube-system", "system:controller:token-cleaner",
			on("delete get list watch", "core", "secrets"),
			onEvents(),
		),
	}
}

// roleBindings are those of namespaces.
func roleBindings() []*rbacv1.RoleBinding {
	return []*rbacv1.RoleBinding{
		roleBinding("kube-public", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer", account("bootstrap-signer")),
		roleBinding("kube-system", "system::extension-apiserver-authentication-reader", "extension-apiserver-authentication-reader", user("system:kube-controller-manager"), user("system:kube-scheduler")),
		roleBinding("kube-system", "system::leader-locking-kube-controller-manager", "system::leader-locking-kube-controller-manager", user("system:kube-controller-manager"), account("kube-controller-manager"), account("leader-election-controller")),
		roleBinding("kube-system", "system::leader-locking-kube-scheduler", "system::leader-locking-kube-scheduler", user("system:kube-scheduler"), account("kube-scheduler")),
		roleBinding("kube-system", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer", account("bootstrap-signer")),
		roleBinding("kube-system", "system:controller:cloud-provider", "system:controller:cloud-provider", account("cloud-provider")),
		roleBinding("kube-system", "system:controller:token-cleaner", "system:controller:token-cleaner", account("token-cleaner")),
	}
}
