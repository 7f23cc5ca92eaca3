package serviceaccount_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/server/internal/serviceaccount"
)

// testTimeout is how long anything may take before a test fails.
const testTimeout = 3 * time.Minute

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// TestEveryNamespaceHas an account and an authority: those of every cluster,
// new ones, those that were there before, and again when they were deleted or
// changed.
func TestEveryNamespaceHas(t *testing.T) {
	ctx := deadline(t)
	c := levelwiretest.Start(t).Client(client.Options{})
	for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		// They are there when the server is ready.
		_, err := client.For[*corev1.ServiceAccount](c).Namespace(namespace).Get(ctx, serviceaccount.DefaultName, metav1.GetOptions{})
		must(t, err)
		_, err = client.For[*corev1.ConfigMap](c).Namespace(namespace).Get(ctx, serviceaccount.RootCAName, metav1.GetOptions{})
		must(t, err)
	}
	_, err := client.For[*corev1.Namespace](c).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	must(t, err)
	accounts, maps := client.For[*corev1.ServiceAccount](c).Namespace("new"), client.For[*corev1.ConfigMap](c).Namespace("new")
	first := await(ctx, t, accounts, func(a *corev1.ServiceAccount) bool { return a.Name == serviceaccount.DefaultName })
	err = accounts.Delete(ctx, first.Name, metav1.DeleteOptions{})
	must(t, err)
	await(ctx, t, accounts, func(a *corev1.ServiceAccount) bool { return a.Name == first.Name && a.UID != first.UID })

	good := await(ctx, t, maps, func(m *corev1.ConfigMap) bool { return m.Name == serviceaccount.RootCAName })
	if !strings.HasPrefix(good.Data["ca.crt"], "-----BEGIN CERTIFICATE-----") {
		t.Errorf("ca.crt: %q", good.Data)
	}
	_, err = maps.Patch(ctx, good.Name, types.MergePatchType, []byte(`{"data":{"ca.crt":"wrong"}}`), metav1.PatchOptions{})
	must(t, err)
	await(ctx, t, maps, func(m *corev1.ConfigMap) bool {
		return m.Name == good.Name && m.ResourceVersion != good.ResourceVersion && m.Data["ca.crt"] == good.Data["ca.crt"]
	})
	err = maps.Delete(ctx, good.Name, metav1.DeleteOptions{})
	must(t, err)
	await(ctx, t, maps, func(m *corev1.ConfigMap) bool { return m.Name == good.Name && m.UID != good.UID })
}

// TestPodRightAfterItsNamespace never finds its account missing.
func TestPodRightAfterItsNamespace(t *testing.T) {
	ctx := deadline(t)
	c := levelwiretest.Start(t).Client(client.Options{})
	for i := range 20 {
		name := "n" + string(rune('a'+i))
		_, err := client.For[*corev1.Namespace](c).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		_, err = client.For[*corev1.Pod](c).Namespace(name).Create(ctx, pod, metav1.CreateOptions{})
		must(t, err)
	}
}

func TestSwitchedOff(t *testing.T) {
	ctx := deadline(t)
	cl := levelwiretest.Start(t, func(c *server.Config) { c.DisableAdmissionPlugins = []string{"ServiceAccount"} }).Client(client.Options{})
	list, err := client.For[*corev1.ServiceAccount](cl).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d accounts, %v", len(list.Items), err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	made, err := client.For[*corev1.Pod](cl).Namespace("default").Create(ctx, pod, metav1.CreateOptions{})
	if err != nil || made.Spec.ServiceAccountName != "" || len(made.Spec.Volumes) != 0 {
		t.Errorf("%+v, %v", made, err)
	}
}

// TestTokenSecret is filled, authenticates, and goes with its account.
func TestTokenSecret(t *testing.T) {
	ctx := deadline(t)
	c := levelwiretest.Start(t).Client(client.Options{})
	secrets := client.For[*corev1.Secret](c).Namespace("default")
	accounts := client.For[*corev1.ServiceAccount](c).Namespace("default")
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	must(t, err)
	for name, account := range map[string]string{"good": "robot", "orphan": "missing"} {
		_, err = secrets.Create(ctx, &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account},
		}}, metav1.CreateOptions{})
		must(t, err)
	}
	filled := await(ctx, t, secrets, func(s *corev1.Secret) bool { return s.Name == "good" && len(s.Data["token"]) > 0 })
	if string(filled.Data["namespace"]) != "default" || len(filled.Data["ca.crt"]) == 0 || filled.Annotations[corev1.ServiceAccountUIDKey] == "" {
		t.Errorf("%v %v", filled.Data, filled.Annotations)
	}
	review := func() authenticationv1.TokenReviewStatus {
		answer, err := client.For[*authenticationv1.TokenReview](c).Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: string(filled.Data["token"])},
		}, metav1.CreateOptions{})
		must(t, err)
		return answer.Status
	}
	if status := review(); !status.Authenticated || status.User.Username != "system:serviceaccount:default:robot" {
		t.Errorf("%+v", status)
	}
	used := await(ctx, t, secrets, func(s *corev1.Secret) bool {
		return s.Name == "good" && s.Labels["kubernetes.io/legacy-token-last-used"] != ""
	})
	since, err := client.For[*corev1.ConfigMap](c).Namespace("kube-system").Get(ctx, serviceaccount.TrackingName, metav1.GetOptions{})
	must(t, err)
	if used.Labels["kubernetes.io/legacy-token-last-used"] < since.Data["since"] || since.Data["since"] == "" {
		t.Errorf("used %v, noted since %v", used.Labels, since.Data)
	}
	_, err = secrets.Patch(ctx, "good", types.MergePatchType, []byte(`{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2026-01-01"}}}`), metav1.PatchOptions{})
	must(t, err)
	if status := review(); status.Authenticated || !strings.Contains(status.Error, "has been marked invalid") {
		t.Errorf("marked as invalid: %+v", status)
	}
	err = accounts.Delete(ctx, "robot", metav1.DeleteOptions{})
	must(t, err)
	awaitGone(ctx, t, secrets, "good")
	awaitGone(ctx, t, secrets, "orphan")
	if status := review(); status.Authenticated || status.Error == "" {
		t.Errorf("after the account is gone: %+v", status)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await returns the first state of an object that fits, from now on. The watch
// begins with everything that is there.
func await[T client.Object](ctx context.Context, t *testing.T, r client.Resource[T], fits func(T) bool) T {
	t.Helper()
	w, err := r.Watch(ctx, metav1.ListOptions{})
	must(t, err)
	seen := testwait.Events(t, "an object that fits", testwait.Follow(t, w), testwait.Last(func(event client.WatchEvent[T]) bool {
		return event.Type != watch.Deleted && fits(event.Object)
	}))
	return seen[len(seen)-1].Object
}

// awaitGone waits until there is no object of a name.
func awaitGone[T client.Object](ctx context.Context, t *testing.T, r client.Resource[T], name string) {
	t.Helper()
	list, err := r.List(ctx, metav1.ListOptions{})
	must(t, err)
	for _, obj := range list.Items {
		if obj.GetName() != name {
			continue
		}
		w, err := r.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=" + name})
		must(t, err)
		defer w.Close()
		for {
			event, err := w.Next()
			must(t, err)
			if event.Type == watch.Deleted {
				return
			}
		}
	}
}
