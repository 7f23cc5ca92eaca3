package informer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// visit runs one life of a program that looks at the ConfigMaps of a
// namespace and keeps them in dir.
func visit(t *testing.T, c *client.Client, dir string, look func(configMaps *informer.SharedInformer[*corev1.ConfigMap])) string {
	t.Helper()
	var log bytes.Buffer
	f := informer.NewFactory(c, informer.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Disk: informer.DiskOptions{Directory: dir},
	})
	configMaps := informer.For[*corev1.ConfigMap](f, informer.ListOptions{Namespace: "default", FieldSelector: "metadata.name!=kube-root-ca.crt"})
	f.Start(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	look(configMaps)
	f.Shutdown()
	return log.String()
}

func createConfigMap(t *testing.T, c *client.Client, name string) *corev1.ConfigMap {
	t.Helper()
	created, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func TestRestartWithARealServerListsNothing(t *testing.T) {
	c, dir := start(t), t.TempDir()
	createConfigMap(t, c, "kept")
	createConfigMap(t, c, "deleted-while-away")
	visit(t, c, dir, func(*informer.SharedInformer[*corev1.ConfigMap]) {})
	if err := client.For[*corev1.ConfigMap](c).Namespace("default").Delete(t.Context(), "deleted-while-away", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	missed := createConfigMap(t, c, "created-while-away")
	visit(t, c, dir, func(configMaps *informer.SharedInformer[*corev1.ConfigMap]) {
		lister, err := configMaps.ListerAfter(t.Context(), missed.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"kept": true, "deleted-while-away": false, "created-while-away": true} {
			if _, ok := lister.Get("default", name); ok != want {
				t.Errorf("%s is there: %v", name, ok)
			}
		}
		if stats := configMaps.Stats(); stats.Reflector.ListCount() != 0 || stats.Disk.Restored != 2 {
			t.Errorf("%d lists, %+v", stats.Reflector.ListCount(), stats.Disk)
		}
	})
}

func TestCorruptFileWithARealServerListsOnce(t *testing.T) {
	c, dir := start(t), t.TempDir()
	createConfigMap(t, c, "a")
	visit(t, c, dir, func(*informer.SharedInformer[*corev1.ConfigMap]) {})
	files, err := filepath.Glob(filepath.Join(dir, "v1-configmaps-*.cache"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	if err := os.Truncate(files[0], 100); err != nil {
		t.Fatal(err)
	}
	log := visit(t, c, dir, func(configMaps *informer.SharedInformer[*corev1.ConfigMap]) {
		if n := configMaps.Stats().Reflector.ListCount(); n != 1 || configMaps.Lister().Len() == 0 {
			t.Errorf("%d lists, %d objects", n, configMaps.Lister().Len())
		}
	})
	if !strings.Contains(log, "truncated") {
		t.Errorf("logged:\n%s", log)
	}
}

func TestFileOfAnotherClusterIsRefused(t *testing.T) {
	dir := t.TempDir()
	visit(t, start(t), dir, func(*informer.SharedInformer[*corev1.ConfigMap]) {})
	log := visit(t, start(t), dir, func(configMaps *informer.SharedInformer[*corev1.ConfigMap]) {
		if n := configMaps.Stats().Reflector.ListCount(); n != 1 {
			t.Errorf("%d lists, want 1", n)
		}
	})
	if !strings.Contains(log, "it is about cluster") {
		t.Errorf("logged:\n%s", log)
	}
}

// With a directory, a program that starts again has its objects at once, and
// asks the server only for what it missed.
func ExampleDiskOptions() {
	c, stop := exampleServer()
	defer stop()
	dir, err := os.MkdirTemp("", "levelwire-example-*")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	ctx := context.Background()

	for range 2 {
		factory := informer.NewFactory(c, informer.Options{Disk: informer.DiskOptions{Directory: dir}})
		services := informer.For[*corev1.Service](factory, informer.ListOptions{Namespace: "default"})
		factory.Start(ctx)
		check(factory.WaitForSync(ctx))
		fmt.Println(services.Lister().Len(), "service after", services.Stats().Reflector.ListCount(), "lists")
		factory.Shutdown()
	}
	// Output:
	// 1 service after 1 lists
	// 1 service after 0 lists
}

// Read your writes: wait until the cache shows what a write returned.
func ExampleSharedInformer_ListerAfter() {
	c, stop := exampleServer()
	defer stop()
	ctx := context.Background()

	factory := informer.NewFactory(c, informer.Options{})
	defer factory.Shutdown()
	configMaps := informer.For[*corev1.ConfigMap](factory, informer.ListOptions{})
	factory.Start(ctx)

	written, err := client.For[*corev1.ConfigMap](c).Namespace("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
	check(err)
	limited, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	lister, err := configMaps.ListerAfter(limited, written.ResourceVersion)
	check(err)
	_, ok := lister.Get("default", "mine")
	fmt.Println("found:", ok)
	// Output: found: true
}
