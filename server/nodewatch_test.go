package server_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// TestKubeletsWatchEndsWithItsPod: the watch of a secret ends when the last pod of the node
// that refers to it is gone, and not before; that of another node goes on.
func TestKubeletsWatchEndsWithItsPod(t *testing.T) {
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, AuthorizationModes: []string{"Node", "RBAC"},
		TokenAuthFile: mustWrite(t, "tokens.csv", []byte("1,system:node:one,u1,system:nodes\n2,system:node:two,u2,system:nodes\n")),
	})
	admin, ctx := s.client(t), deadline(t)
	if _, err := client.For[*corev1.Secret](admin).Namespace("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := client.For[*corev1.Pod](admin).Namespace("default")
	for name, node := range map[string]string{"first": "one", "last": "one", "other": "two"} {
		if _, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}},
		}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	watch := func(token string) *client.Watch[*corev1.Secret] {
		kubelet := s.as(t, func(c *rest.Config) { c.BearerToken = token })
		w, err := client.For[*corev1.Secret](kubelet).Namespace("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=s"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		if event, err := w.Next(); err != nil || event.Object.Name != "s" {
			t.Fatalf("%+v, %v", event, err)
		}
		return w
	}
	one, two := watch("1"), watch("2")
	change := func(value string) {
		t.Helper()
		if _, err := client.For[*corev1.Secret](admin).Namespace("default").UpdateWithRetry(ctx, "s", func(s *corev1.Secret) error {
			s.Data = map[string][]byte{"k": []byte(value)}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	end := func(pod string) {
		t.Helper()
		if err := pods.Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Fatal(err)
		}
	}
	end("first")
	change("1")
	for _, w := range []*client.Watch[*corev1.Secret]{one, two} {
		if event, err := w.Next(); err != nil || string(event.Object.Data["k"]) != "1" {
			t.Fatalf("while a pod refers to the secret: %+v, %v", event, err)
		}
	}
	end("last")
	if event, err := one.Next(); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, "RightWithdrawn") {
		t.Errorf("after the last pod: %+v, %v", event, err)
	}
	change("2")
	if event, err := two.Next(); err != nil || string(event.Object.Data["k"]) != "2" {
		t.Errorf("the other node: %+v, %v", event, err)
	}
}
