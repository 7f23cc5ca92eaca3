package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// TestListsContinueAfterARestart reads the rest of a list, and all of it at its
// version, from a server that was started after the list had begun.
func TestListsContinueAfterARestart(t *testing.T) {
	ctx, config := deadline(t), server.Config{DataDir: t.TempDir(), SecurePort: reservePort(t)}
	first := start(t, config)
	c := first.client(t)
	labels := map[string]string{"part": "of-the-list"}
	add := func(name string) {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}}
		if _, err := configMaps(c).Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		add(fmt.Sprint("object-", i))
	}
	page := listed(ctx, t, c, metav1.ListOptions{Limit: 2})
	if err := configMaps(c).Delete(ctx, "object-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	first.stop(t)

	second := start(t, config)
	add("object-2-new")
	next := listed(ctx, t, c, metav1.ListOptions{Limit: 2, Continue: page.Continue})
	if got := names(next); got != "object-2 object-3" || next.ResourceVersion != page.ResourceVersion || next.Continue == "" {
		t.Errorf("the second page is %q at %s, not of the list that began at %s", got, next.ResourceVersion, page.ResourceVersion)
	}
	if got := names(listed(ctx, t, c, metav1.ListOptions{Continue: next.Continue})); got != "object-4" {
		t.Errorf("the last page is %q", got)
	}
	exact := listed(ctx, t, c, metav1.ListOptions{ResourceVersion: page.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if got := names(exact); got != "object-0 object-1 object-2 object-3 object-4" {
		t.Errorf("the list at its version is %q", got)
	}
	second.stop(t)
}

// listed lists the objects of the test.
func listed(ctx context.Context, t *testing.T, c *client.Client, opts metav1.ListOptions) *client.List[*corev1.ConfigMap] {
	t.Helper()
	opts.LabelSelector = "part=of-the-list"
	list, err := configMaps(c).List(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func names(list *client.List[*corev1.ConfigMap]) string {
	var all []string
	for _, obj := range list.Items {
		all = append(all, obj.Name)
	}
	return strings.Join(all, " ")
}
