package server_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/subresource"
	"github.com/levelwire/levelwire/server"
)

// constrainedRight is a right of the account default/default to act as another user.
type constrainedRight struct {
	namespace string // of a RoleBinding; "": it holds in the whole cluster
	rules     []rbacv1.PolicyRule
}

// constrainedFixture is a server with a pod of the account default/default on the node n1.
type constrainedFixture struct {
	*running
	admin *client.Client
	pod   *corev1.Pod
}

func newConstrained(t *testing.T) *constrainedFixture {
	t.Helper()
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	f, ctx := &constrainedFixture{running: s, admin: s.client(t)}, deadline(t)
	var err error
	f.pod, err = client.For[*corev1.Pod](f.admin).Namespace("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create(ctx, t, f.admin, "watched")
	return f
}

// grant binds a right to the account by a name.
func (f *constrainedFixture) grant(t *testing.T, name string, right constrainedRight) {
	t.Helper()
	ctx := deadline(t)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "default"}}
	ref, of := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: name}, metav1.ObjectMeta{Name: name}
	_, err := client.For[*rbacv1.ClusterRole](f.admin).Create(ctx, &rbacv1.ClusterRole{ObjectMeta: of, Rules: right.rules}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if right.namespace == "" {
		_, err = client.For[*rbacv1.ClusterRoleBinding](f.admin).Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: of, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		_, err = client.For[*rbacv1.RoleBinding](f.admin).Namespace(right.namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: of, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (f *constrainedFixture) withdraw(t *testing.T, name string, right constrainedRight) {
	t.Helper()
	err := client.For[*rbacv1.ClusterRoleBinding](f.admin).Delete(deadline(t), name, metav1.DeleteOptions{})
	if right.namespace != "" {
		err = client.For[*rbacv1.RoleBinding](f.admin).Namespace(right.namespace).Delete(deadline(t), name, metav1.DeleteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// actingAs returns a client that acts as another user, by a token of the account that is bound to
// the pod, or to nothing.
func (f *constrainedFixture) actingAs(t *testing.T, user string, bound bool) *client.Client {
	t.Helper()
	var spec authenticationv1.TokenRequestSpec
	if bound {
		spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: f.pod.Name, UID: f.pod.UID}
	}
	status, err := subresource.CreateToken(deadline(t), client.For[*corev1.ServiceAccount](f.admin).Namespace("default"), "default", spec)
	if err != nil {
		t.Fatal(err)
	}
	return f.as(t, func(c *rest.Config) {
		c.BearerToken, c.Impersonate = status.Token, rest.ImpersonationConfig{UserName: user}
	})
}

// expectWithdrawn opens a watch, withdraws a right, and expects that to be its end.
func expectWithdrawn[T client.Object](t *testing.T, api client.Resource[T], opts metav1.ListOptions, withdraw func()) {
	t.Helper()
	w, err := api.Watch(deadline(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if event, err := w.Next(); err != nil || event.Type != "ADDED" {
		t.Fatalf("%+v, %v", event, err)
	}
	withdraw()
	if event, err := w.Next(); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, "RightWithdrawn") {
		t.Errorf("after a right was withdrawn: %+v, %v", event, err)
	}
}

// TestImpersonatedNode: by the token of its pod an account is its own node, for what it may do
// as that, and no other; its watch ends with either right.
func TestImpersonatedNode(t *testing.T) {
	f := newConstrained(t)
	rights := map[string]constrainedRight{
		"be-the-node": {rules: []rbacv1.PolicyRule{{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"nodes"}, Verbs: []string{"impersonate:associated-node"}}}},
		"read-as-the-node": {rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"impersonate-on:associated-node:list", "impersonate-on:associated-node:watch"}},
			{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{"impersonate-on:associated-node:create"}},
		}},
	}
	for name, right := range rights {
		f.grant(t, name, right)
	}
	ctx, own := deadline(t), metav1.ListOptions{FieldSelector: "spec.nodeName=n1"}
	node := f.actingAs(t, "system:node:n1", true)
	if user, err := whoami(t, node); err != nil || user.Username != "system:node:n1" || strings.Join(user.Groups, " ") != "system:nodes system:authenticated" {
		t.Errorf("%+v, %v", user, err)
	}
	pods := client.For[*corev1.Pod](node)
	if list, err := pods.List(ctx, own); err != nil || len(list.Items) != 1 {
		t.Errorf("the pods of its node: %+v, %v", list, err)
	}
	if err := pods.Namespace("default").Delete(ctx, f.pod.Name, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node may delete its pods, but the account may not as the node: %v", err)
	}
	for name, c := range map[string]*client.Client{
		"another node":           f.actingAs(t, "system:node:n2", true),
		"a token without a pod":  f.actingAs(t, "system:node:n1", false),
		"an account of the node": f.actingAs(t, "system:serviceaccount:default:robot", true),
	} {
		if _, err := client.For[*corev1.Pod](c).List(ctx, own); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, right := range rights {
		expectWithdrawn(t, pods, own, func() { f.withdraw(t, name, right) })
		if _, err := pods.List(ctx, own); !apierrors.IsForbidden(err) {
			t.Errorf("without the right to %s: %v", name, err)
		}
		f.grant(t, name, right)
	}
}

// TestImpersonatedAccount: an account is another one in the namespaces of its right to that,
// for what it may do as that; its watch ends with either right.
func TestImpersonatedAccount(t *testing.T) {
	f := newConstrained(t)
	rights := map[string]constrainedRight{
		"be-the-robot": {"default", []rbacv1.PolicyRule{{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"robot"}, Verbs: []string{"impersonate:serviceaccount"}}}},
		"read-as-the-robot": {"default", []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"impersonate-on:serviceaccount:get", "impersonate-on:serviceaccount:list", "impersonate-on:serviceaccount:watch"}},
		}},
	}
	for name, right := range rights {
		f.grant(t, name, right)
	}
	ctx, one := deadline(t), metav1.ListOptions{FieldSelector: "metadata.name=watched"}
	maps := configMaps(f.actingAs(t, "system:serviceaccount:default:robot", true))
	if _, err := maps.List(ctx, one); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:default:robot") {
		t.Errorf("before the robot has a role: %v", err)
	}
	_, err := client.For[*rbacv1.RoleBinding](f.admin).Namespace("default").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "robot"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "robot"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := maps.List(ctx, one); err != nil || len(list.Items) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	for name, user := range map[string]string{"another account": "default:other", "one of another namespace": "kube-system:robot"} {
		if _, err := configMaps(f.actingAs(t, "system:serviceaccount:"+user, true)).List(ctx, one); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, right := range rights {
		expectWithdrawn(t, maps, one, func() { f.withdraw(t, name, right) })
		if _, err := maps.List(ctx, one); !apierrors.IsForbidden(err) {
			t.Errorf("without the right to %s: %v", name, err)
		}
		f.grant(t, name, right)
	}
}
