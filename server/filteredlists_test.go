package server_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
)

// TestFilteredInformer: an informer of all namespaces holds what its user may see, and
// follows grants and withdrawals with one list.
func TestFilteredInformer(t *testing.T) {
	admin, jane := withRBAC(t, func(c *server.Config) { c.FilteredLists = true })
	ctx := deadline(t)
	if _, err := client.For[*rbacv1.ClusterRole](admin).Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"one", "two"} {
		if _, err := client.For[*corev1.Namespace](admin).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.For[*corev1.ConfigMap](admin).Namespace(namespace).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	grant := func(namespace string) {
		t.Helper()
		if _, err := client.For[*rbacv1.RoleBinding](admin).Namespace(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "viewer"},
			Subjects:   []rbacv1.Subject{{Kind: "User", Name: "jane"}},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	grant("one")
	factory := informer.NewFactory(jane, informer.Options{Reflector: reflector.Options{OnError: func(name string, err error) { t.Errorf("the informer of %s failed: %v", name, err) }}})
	defer factory.Shutdown()
	maps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{Visible: true, FieldSelector: "metadata.name=x"})
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	wantNamespaces(t, maps, "one")
	grant("two")
	wantNamespaces(t, maps, "one", "two")
	if err := client.For[*rbacv1.RoleBinding](admin).Namespace("one").Delete(ctx, "viewers", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantNamespaces(t, maps, "two")
	stats := maps.Stats().Reflector
	var lists int64
	for _, n := range stats.Lists {
		lists += n
	}
	if lists != 1 || stats.Stale != 0 {
		t.Errorf("%d lists: %+v", lists, stats)
	}
}

// wantNamespaces waits until an informer has objects in exactly some namespaces.
func wantNamespaces(t *testing.T, maps *informer.SharedInformer[*corev1.ConfigMap], want ...string) {
	t.Helper()
	testwait.Stable(t, fmt.Sprint("the informer has objects in ", want), func() (any, bool) {
		var have []string
		for _, m := range maps.Lister().List("", labels.Everything()) {
			have = append(have, m.Namespace)
		}
		slices.Sort(have)
		return have, slices.Equal(have, want)
	})
}

// TestFilteredListRefused: a server that does not know the option, or does not allow it, is
// not taken for one that does.
func TestFilteredListRefused(t *testing.T) {
	admin, jane := withRBAC(t)
	ctx := deadline(t)
	for name, c := range map[string]*client.Client{"admin": admin, "jane": jane} {
		maps := client.For[*corev1.ConfigMap](c).Visible()
		_, err := maps.List(ctx, metav1.ListOptions{})
		if !errors.Is(err, client.ErrNotFiltered) || apierrors.IsForbidden(err) != (name == "jane") {
			t.Errorf("%s: list: %v", name, err)
		}
		if _, err = maps.Watch(ctx, metav1.ListOptions{}); !errors.Is(err, client.ErrNotFiltered) {
			t.Errorf("%s: watch: %v", name, err)
		}
	}
}

// TestFilteredListsByAFile: with RBAC before the webhooks of --authorization-config, lists are
// filtered by roles; another file that would have a webhook deny before that does not count.
func TestFilteredListsByAFile(t *testing.T) {
	_, kubeconfig := newReviewServer(t) // it denies what is about secrets
	webhook := authorizerWebhook(kubeconfig, "has(request.resourceAttributes)")
	path := mustWrite(t, "authorization.yaml", authorizersFile(authorizerRBAC, webhook))
	log := newLogRecorder()
	admin, jane := withRBAC(t, func(c *server.Config) {
		c.AuthorizationModes, c.AuthorizationConfigFile, c.FilteredLists, c.Logger = nil, path, true, log.logger()
	})
	ctx := deadline(t)
	if _, err := client.For[*rbacv1.ClusterRole](admin).Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"secrets"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*rbacv1.RoleBinding](admin).Namespace("default").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "viewer"},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: "jane"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	createSecret(ctx, t, admin, "s")
	expect := func(when string) {
		t.Helper()
		secrets, err := client.For[*corev1.Secret](jane).Visible().List(ctx, metav1.ListOptions{})
		if err != nil || len(secrets.Items) != 1 {
			t.Errorf("%s: %d secrets, %v", when, len(secrets.Items), err)
		}
	}
	expect("at first")
	rewrite(t, path, authorizersFile(webhook, authorizerRBAC))
	log.await(t, "--filtered-lists needs RBAC before Webhook in --authorization-config")
	expect("after a file that asks the webhook first")
}

// TestFilteredWatchOfTheSameUser goes on from a list, with roles and without.
func TestFilteredWatchOfTheSameUser(t *testing.T) {
	admin, jane := withRBAC(t, func(c *server.Config) { c.FilteredLists = true })
	ctx := deadline(t)
	for _, c := range []*client.Client{admin, jane} {
		maps := client.For[*corev1.ConfigMap](c).Visible()
		list, err := maps.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(fmt.Errorf("the same user: %w", err))
		}
		w.Close()
	}
}
