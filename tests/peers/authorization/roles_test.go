package authorization

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/levelwire/levelwire/levelwiretest"
)

const (
	testTimeout = 3 * time.Minute
	namespace   = "default"
)

func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// bind gives a user a default role in the namespace.
func bind(ctx context.Context, t *testing.T, admin kubernetes.Interface, role, user string) {
	t.Helper()
	if _, err := admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestDefaultRoles: what edit and view say is what client-go's clientset may do.
func TestDefaultRoles(t *testing.T) {
	ctx, server := timeout(t), levelwiretest.Start(t)
	admin := kubernetes.NewForConfigOrDie(server.Config())
	editor := kubernetes.NewForConfigOrDie(server.UserConfig("editor"))
	viewer := kubernetes.NewForConfigOrDie(server.UserConfig("viewer"))
	bind(ctx, t, admin, "edit", "editor")
	bind(ctx, t, admin, "view", "viewer")

	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
	}}
	create := func(c kubernetes.Interface, namespace string) error {
		_, err := c.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{})
		return err
	}
	scale := func(c kubernetes.Interface) error {
		_, err := c.AppsV1().Deployments(namespace).UpdateScale(ctx, "web", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 3},
		}, metav1.UpdateOptions{})
		return err
	}
	secrets := func(c kubernetes.Interface) error {
		_, err := c.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	deployments := func(c kubernetes.Interface, namespace string) error {
		_, err := c.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	grant := func(c kubernetes.Interface) error {
		_, err := c.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
		return err
	}
	for _, step := range []struct {
		what    string
		err     error
		allowed bool
	}{
		{"edit creates", create(editor, namespace), true},
		{"edit scales", scale(editor), true},
		{"edit lists secrets", secrets(editor), true},
		{"edit grants", grant(editor), false},
		{"edit elsewhere", create(editor, "kube-system"), false},
		{"edit in all namespaces", deployments(editor, ""), false},
		{"view lists", deployments(viewer, namespace), true},
		{"view lists in all namespaces", deployments(viewer, ""), false},
		{"view lists secrets", secrets(viewer), false},
		{"view scales", scale(viewer), false},
		{"view creates", create(viewer, namespace), false},
		{"edit deletes", editor.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=web"}), true},
	} {
		if step.allowed && step.err != nil || !step.allowed && !apierrors.IsForbidden(step.err) {
			t.Errorf("%s: %v, want it to be allowed: %v", step.what, step.err, step.allowed)
		}
	}
}
