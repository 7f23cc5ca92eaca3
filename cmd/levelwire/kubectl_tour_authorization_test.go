package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// authorizationTour is what a user of `levelwire user` may do without roles, with those of
// Kubernetes, and without them again.
func (k *kubectl) authorizationTour() {
	k.t.Helper()
	jane := k.user("jane-of-"+k.namespace, "dev-"+k.namespace)
	name := "jane-of-" + k.namespace
	jane.isUser([]string{`^Username +` + name + `$`, `^Groups +\[dev-` + k.namespace + ` system:authenticated\]$`})
	jane.refused("no", "auth", "can-i", "get", "pods")
	jane.refused(fmt.Sprintf("pods is forbidden: User %q cannot list resource \"pods\" in API group \"\" in the namespace %q", name, k.namespace), "get", "pods")
	jane.shows([]string{`^selfsubjectreviews\.authentication\.k8s\.io .*\[create\]$`}, "auth", "can-i", "--list")
	if list := jane.run("auth", "can-i", "--list"); strings.Contains(list, "pods") || strings.Contains(list, "*.*") {
		k.t.Errorf("a user without roles may do\n%s", list)
	}
	jane.refused("cannot impersonate", "get", "pods", "--as=bob")

	k.run("create", "rolebinding", "viewers", "--clusterrole=view", "--group=dev-"+k.namespace)
	jane.run("get", "pods,deployments,services")
	jane.shows([]string{`^pods +.*\[get list watch\]$`}, "auth", "can-i", "--list")
	jane.refused("no", "auth", "can-i", "get", "secrets")
	jane.refused("cannot list resource \"secrets\"", "get", "secrets")
	jane.refused("cannot create resource \"deployments\" in API group \"apps\"", "create", "deployment", "granted", "--image=registry.example/any")
	jane.refused("cannot list resource \"pods\"", "get", "pods", "--namespace=kube-system")
	k.shows([]string{`^yes$`}, "auth", "can-i", "list", "pods", "--as="+name, "--as-group=dev-"+k.namespace)
	k.refused("no", "auth", "can-i", "list", "pods", "--as="+name)

	k.run("create", "rolebinding", "editors", "--clusterrole=edit", "--user="+name)
	jane.run("create", "deployment", "granted", "--image=registry.example/any")
	jane.run("scale", "deployment/granted", "--replicas=2")
	k.awaitPods("app=granted", 2, "")
	jane.run("create", "secret", "generic", "granted", "--from-literal=a=b")
	jane.run("delete", "deployment/granted", "secret/granted")
	jane.refused("no", "auth", "can-i", "create", "rolebindings")
	jane.refused("cannot create resource \"roles\"", "create", "role", "readers", "--verb=get", "--resource=pods")

	k.run("create", "rolebinding", "owners", "--clusterrole=admin", "--user="+name)
	jane.run("create", "role", "readers", "--verb=get", "--resource=pods")
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s, namespace: %s}\nrules: [{apiGroups: [''], resources: [%s], verbs: [list]}]\n"
	jane.shows([]string{`readers reconciled$`}, "auth", "reconcile", "-f", k.file("own.yaml", fmt.Sprintf(role, "readers", k.namespace, "pods")))
	k.shows([]string{`pods .*\[get list\]|pods .*\[list get\]`}, "describe", "role", "readers")
	const escalates = "attempting to grant RBAC permissions not currently held"
	jane.refused(escalates, "auth", "reconcile", "-f", k.file("more.yaml", fmt.Sprintf(role, "more", k.namespace, "nodes")))
	jane.refused(escalates, "create", "rolebinding", "everything", "--clusterrole=cluster-admin", "--user="+name)

	k.run("delete", "rolebinding", "viewers", "editors", "owners")
	k.run("delete", "role", "readers")
	jane.refused("cannot list resource \"pods\"", "get", "pods")
}

// user is the same kubectl for another user, whose kubeconfig `levelwire user` makes.
func (k *kubectl) user(name, group string) *kubectl {
	k.t.Helper()
	path := filepath.Join(k.t.TempDir(), "user.kubeconfig")
	if made := invoke(k.ctx, "user", name, "--groups", group, "--data-dir", k.dataDir, "--server", k.server(), "--output", path); made.code != exitOK {
		k.t.Fatalf("%+v", made)
	}
	user := *k
	user.env = append(user.env[:len(user.env):len(user.env)], "KUBECONFIG="+path)
	return &user
}
