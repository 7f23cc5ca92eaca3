package server_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server"
)

// TestContinueTokensExpire, and lists at their version, when the store has been compacted past it, although nothing else is evicted
// from the cache: the client goes on with the token of the refusal. A watch from that version goes on without a list.
func TestContinueTokensExpire(t *testing.T) {
	ctx := deadline(t)
	s := start(t, server.Config{
		DataDir: t.TempDir(), Storage: server.Memory, CompactionInterval: 10 * time.Millisecond, CompactionRetention: time.Millisecond,
		DisableAdmissionPlugins: []string{"ServiceAccount"},
	})
	c := s.client(t)
	for _, name := range []string{"a", "b", "c"} {
		create(ctx, t, c, name)
	}
	page, err := configMaps(c).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	create(ctx, t, c, "later")
	err = testwait.Stable(t, "the continue token expires", func() (error, bool) {
		_, err := configMaps(c).List(ctx, metav1.ListOptions{Limit: 1, Continue: page.Continue})
		return err, err != nil
	})
	var refusal apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &refusal) || refusal.Status().Continue == "" {
		t.Fatalf("%v, want that it has expired, with another token", err)
	}
	rest, err := configMaps(c).List(ctx, metav1.ListOptions{Continue: refusal.Status().Continue})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(names(rest), " later") || rest.ResourceVersion == page.ResourceVersion {
		t.Errorf("the rest is %q at %s", names(rest), rest.ResourceVersion)
	}
	exact := metav1.ListOptions{ResourceVersion: page.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := configMaps(c).List(ctx, exact); !apierrors.IsResourceExpired(err) {
		t.Errorf("a list at the version: %v, want that it has expired", err)
	}
	w, err := configMaps(c).Watch(ctx, metav1.ListOptions{ResourceVersion: page.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if event, err := w.Next(); err != nil || event.Type != watch.Added || event.Object.Name != "later" {
		t.Errorf("the watch begins with %+v, %v", event, err)
	}
}
