package helm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/tests/peers/program"
)

// TestRoles: a user with the ClusterRole edit in one namespace takes a release through its
// life there, and nowhere else. With view, a user reads what the release made, and not the
// release: Helm keeps it in Secrets, which view does not allow.
func TestRoles(t *testing.T) {
	programs := filepath.SplitList(os.Getenv("LEVELWIRE_HELM"))
	if len(programs) == 0 {
		t.Skip("LEVELWIRE_HELM does not name helms (a list, as PATH is)")
	}
	levelwire := program.Build(t)
	at := through(t, levelwire, program.Start(t, levelwire, "up", "--storage=memory"))
	editor, viewer := newUser(t, levelwire, at, "editor"), newUser(t, levelwire, at, "viewer")
	for i, path := range programs {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			as := func(kubeconfig, namespace string) *bakery { return newBakery(ctx, t, path, kubeconfig, namespace) }
			admin, inside, outside := as(at.Kubeconfig, fmt.Sprintf("roles-%d", i)), as(editor, fmt.Sprintf("roles-%d", i)), as(editor, fmt.Sprintf("others-%d", i))
			for _, namespace := range []string{inside.namespace, outside.namespace} {
				admin.create(func() error {
					_, err := admin.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
					return err
				})
			}
			admin.bind("edit", "editor")
			admin.bind("view", "viewer")

			// Namespaces and definitions are of the whole cluster.
			inside.refused(`resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`, "install", "shop", chart)
			admin.defineOvens()
			// Helm 3 creates the namespace, Helm 4 applies it.
			inside.refused(`resource "namespaces" in API group ""`, "install", "shop", chart, "--skip-crds", "--create-namespace")
			inside.live("--skip-crds")

			inside.run([]string{"STATUS: deployed"}, "install", "shop", chart, "--skip-crds", "--wait", "--timeout=2m")
			secrets := fmt.Sprintf(`cannot list resource "secrets" in API group "" in the namespace %q`, outside.namespace)
			outside.refused(secrets, "list")
			outside.refused(fmt.Sprintf(`in the namespace %q`, outside.namespace), "install", "shop", chart, "--skip-crds")
			inside.refused(`cannot list resource "secrets" in API group "" at the cluster scope`, "list", "--all-namespaces")

			reader := as(viewer, inside.namespace)
			reader.mustBe("rye", 2)
			reader.refused(`cannot list resource "secrets"`, "list")
			for _, args := range [][]string{{"get", "manifest", "shop"}, {"history", "shop"}, {"status", "shop"}, {"upgrade", "shop", chart}, {"rollback", "shop", "1"}, {"uninstall", "shop"}} {
				reader.refused(`resource "secrets" in API group "" in the namespace`, args...)
			}
			inside.run([]string{"deployed"}, "list")
		})
	}
}

// newUser makes a user of no group, and returns the user's kubeconfig.
func newUser(t *testing.T, levelwire string, at endpoint, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".kubeconfig")
	cmd := exec.CommandContext(t.Context(), levelwire, "user", name, "--data-dir", at.data, "--output", path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("levelwire user: %v\n%s", err, out)
	}
	if at.relay != "" {
		path = program.At(t, at.relay, path)
	}
	return path
}

// refused runs helm, which must fail and print what the server refused.
func (b *bakery) refused(want string, args ...string) {
	b.t.Helper()
	out, err := b.command(args).CombinedOutput()
	if err == nil || !strings.Contains(string(out), want) {
		b.t.Errorf("helm %s: %v, want it to say %q:\n%s", strings.Join(args, " "), err, want, out)
	}
}

// create makes an object that there may be already.
func (b *bakery) create(create func() error) {
	b.t.Helper()
	if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
		b.t.Fatal(err)
	}
}

// bind gives a user a ClusterRole in the namespace.
func (b *bakery) bind(role, user string) {
	b.t.Helper()
	b.create(func() error {
		_, err := b.client.RbacV1().RoleBindings(b.namespace).Create(b.ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		}, metav1.CreateOptions{})
		return err
	})
}

// defineOvens installs what only an administrator may: the definition of the chart's
// custom resource, by a release that is taken away again, and rights on it for those who
// may edit, or view, what is in a namespace.
func (b *bakery) defineOvens() {
	b.t.Helper()
	for role, verbs := range map[string][]string{
		"edit": {"create", "update", "patch", "delete"},
		"view": {"get", "list", "watch"},
	} {
		b.create(func() error {
			_, err := b.client.RbacV1().ClusterRoles().Create(b.ctx, &rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{Name: "ovens-" + role, Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + role: "true"}},
				Rules:      []rbacv1.PolicyRule{{APIGroups: []string{ovens.Group}, Resources: []string{ovens.Resource}, Verbs: verbs}},
			}, metav1.CreateOptions{})
			return err
		})
	}
	b.run([]string{"STATUS: deployed"}, "install", "definition", chart, "--no-hooks")
	b.run(nil, "uninstall", "definition", "--no-hooks", "--wait")
}
