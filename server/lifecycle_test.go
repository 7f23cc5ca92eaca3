package server_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// TestReady: a server that is ready has the objects that every cluster
// has, and reports its version.
func TestReady(t *testing.T) {
	log := newLogRecorder()
	s := start(t, server.Config{DataDir: t.TempDir(), Version: "v9.9.9-test", Logger: log.logger()})
	ctx, c := deadline(t), s.client(t)
	log.await(t, `msg=ready url=`+s.URL())
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		if _, err := client.For[*corev1.Namespace](c).Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	service, err := client.For[*corev1.Service](c).Namespace("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP != "10.96.0.1" {
		t.Errorf("default/kubernetes: %+v, %v", service, err)
	}
}

// TestServiceCIDR: services get their addresses from the range of the flag.
func TestServiceCIDR(t *testing.T) {
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, ServiceCIDR: prefix("172.30.0.0/24")})
	service, err := client.For[*corev1.Service](s.client(t)).Namespace("default").Get(deadline(t), "kubernetes", metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP != "172.30.0.1" {
		t.Errorf("default/kubernetes: %+v, %v", service, err)
	}
}

// TestRestart: a server on the data directory of one that has stopped has its
// objects, identity, certificates and kubeconfig.
func TestRestart(t *testing.T) {
	ctx, dir, port := deadline(t), t.TempDir(), reservePort(t)
	first := start(t, server.Config{DataDir: dir, SecurePort: port})
	c := first.client(t) // as it was before the restart
	before := create(ctx, t, c, "kept")
	kubeconfig := read(t, first.Kubeconfig())
	files := map[string]string{}
	for _, pattern := range []string{"*.crt", "*.key"} {
		paths, err := filepath.Glob(filepath.Join(dir, "pki", pattern))
		if err != nil || len(paths) < 3 {
			t.Fatalf("%s: %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			files[path] = read(t, path)
		}
	}
	first.stop(t)

	second := start(t, server.Config{DataDir: dir, SecurePort: port})
	after, err := configMaps(c).Get(ctx, "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the object was %v, and is %v", before.ObjectMeta, after.ObjectMeta)
	}
	if got := read(t, second.Kubeconfig()); got != kubeconfig {
		t.Errorf("the kubeconfig has changed:\n%s\n%s", kubeconfig, got)
	}
	for path, content := range files {
		if read(t, path) != content {
			t.Errorf("%s has changed", path)
		}
	}
	if written := create(ctx, t, c, "new"); number(t, written.ResourceVersion) <= number(t, before.ResourceVersion) {
		t.Errorf("version %s was given after %s", written.ResourceVersion, before.ResourceVersion)
	}
}

// TestMemoryIsNotDurable: objects in memory storage are lost with the server.
func TestMemoryIsNotDurable(t *testing.T) {
	ctx, dir := deadline(t), t.TempDir()
	first := start(t, server.Config{DataDir: dir, Storage: server.Memory})
	create(ctx, t, first.client(t), "forgotten")
	first.stop(t)
	second := start(t, server.Config{DataDir: dir, Storage: server.Memory})
	list, err := configMaps(second.client(t)).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=forgotten"})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d objects, %v", len(list.Items), err)
	}
}

// TestDrain: in a shutdown, watchers get the removal of the server's address from
// default/kubernetes first, their watches end without an error, and the server
// stops long before the hour that requests may take.
func TestDrain(t *testing.T) {
	ctx := deadline(t)
	for name, options := range map[string]client.Options{"HTTP/2": {}, "HTTP/1.1": {ForceHTTP1: true}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, ShutdownTimeout: time.Hour})
			c, err := client.FromKubeconfig(s.Kubeconfig(), options)
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseIdleConnections()
			slices := openWatch(ctx, t, client.For[*discoveryv1.EndpointSlice](c).Namespace("default"))
			idle := openWatch(ctx, t, client.For[*corev1.Pod](c))

			s.stop(t)
			var last client.WatchEvent[*discoveryv1.EndpointSlice]
			for err = error(nil); err == nil; {
				var event client.WatchEvent[*discoveryv1.EndpointSlice]
				if event, err = slices.Next(); err == nil && event.Type != watch.Bookmark {
					last = event
				}
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("the watch ended with %v", err)
			}
			if last.Type != watch.Modified || len(last.Object.Endpoints) != 0 {
				t.Errorf("the last of default/kubernetes was %s with %v", last.Type, last.Object.Endpoints)
			}
			for err = error(nil); err == nil; {
				_, err = idle.Next()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("the idle watch ended with %v", err)
			}
		})
	}
}

// openWatch opens a watch and waits until it has begun.
func openWatch[T client.Object](ctx context.Context, t *testing.T, resource client.Resource[T]) *client.Watch[T] {
	t.Helper()
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := resource.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// TestHosts: the serving certificate is valid for the configured names, and the one
// on disk is replaced when they change.
func TestHosts(t *testing.T) {
	dir := t.TempDir()
	start(t, server.Config{DataDir: dir, Storage: server.Memory}).stop(t)
	s := start(t, server.Config{DataDir: dir, Storage: server.Memory, Hosts: []string{"levelwire.example"}})
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = "levelwire.example"
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	create(deadline(t), t, c, "by-name")
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
