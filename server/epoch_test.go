package server_test

import (
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage/etcd"
)

// TestCopiedBackup: the files of an etcd are replaced by an earlier copy of them, without
// etcd's tools. A client with a version that was lost gets 410 from the next start on,
// also when the storage has written more than was lost; a client of the new versions
// is served as ever.
func TestCopiedBackup(t *testing.T) {
	ctx := deadline(t)
	url := "http://" + unusedAddress(t)
	dir, copied := t.TempDir(), t.TempDir()
	embed := func() *etcd.Store {
		store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: dir, ListenClientURL: url})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	config := server.Config{DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{url}}
	closed := func(store *etcd.Store) {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}

	store := embed()
	s := start(t, config)
	known := create(ctx, t, s.client(t), "before").ResourceVersion
	s.stop(t)
	closed(store)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}

	store = embed()
	s = start(t, config)
	for _, name := range []string{"lost-1", "lost-2", "lost-3"} {
		create(ctx, t, s.client(t), name)
	}
	lost := create(ctx, t, s.client(t), "lost").ResourceVersion
	s.stop(t)
	closed(store)
	if err := replaceFiles(dir, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}

	store = embed()
	defer closed(store)
	s = start(t, config)
	c := s.client(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		for _, version := range []string{known, lost} {
			_, err := nextEvent(configMaps(c).Watch(ctx, metav1.ListOptions{ResourceVersion: version}))
			if !apierrors.IsResourceExpired(err) {
				t.Errorf("a watch from %s before %s: %v, want 410", version, name, err)
			}
		}
		list, err := configMaps(c).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		create(ctx, t, c, name)
		event, err := nextEvent(configMaps(c).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))
		if err != nil || event != name {
			t.Errorf("a watch from the list before %s: %q, %v", name, event, err)
		}
	}
	s.stop(t)
}

func replaceFiles(dir string, by fs.FS) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.CopyFS(dir, by)
}

// nextEvent returns the name in the first event of a watch, and closes it.
func nextEvent(w *client.Watch[*corev1.ConfigMap], err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer w.Close()
	event, err := w.Next()
	if err != nil {
		return "", err
	}
	return event.Object.Name, nil
}

// TestOtherEtcdIsRefused: a server whose data directory remembers another etcd says so
// in one line and ends, and the servers of the etcd that it was given go on.
func TestOtherEtcdIsRefused(t *testing.T) {
	ctx := deadline(t)
	one, other := "http://"+unusedAddress(t), "http://"+unusedAddress(t)
	startEtcd(t, one)
	startEtcd(t, other)
	config := server.Config{
		DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{one},
		SecurePort: server.AnyPort, Logger: slog.New(slog.DiscardHandler),
	}
	start(t, config).stop(t)
	theirs := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{other}})
	known := create(ctx, t, theirs.client(t), "before").ResourceVersion

	config.EtcdServers = []string{other}
	refused, err := server.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	err = refused.Run(ctx)
	if err == nil || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), config.DataDir) || !strings.Contains(err.Error(), "--accept-other-storage") {
		t.Errorf("a server of another etcd: %v", err)
	}
	create(ctx, t, theirs.client(t), "after")
	theirs.stop(t)

	config.AcceptOtherStorage = true
	s := start(t, config)
	if _, err := nextEvent(configMaps(s.client(t)).Watch(ctx, metav1.ListOptions{ResourceVersion: known})); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from a version of the other servers: %v, want 410", err)
	}
	s.stop(t)
}
