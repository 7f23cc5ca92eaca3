package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage/etcd/backup"
)

// runServer runs a server on a data directory until the result is called.
func runServer(ctx context.Context, t *testing.T, dir string) (c *client.Client, stop func()) {
	t.Helper()
	return runServerWith(ctx, t, server.Config{DataDir: dir})
}

func runServerWith(ctx context.Context, t *testing.T, config server.Config) (c *client.Client, stop func()) {
	t.Helper()
	config.SecurePort, config.Logger = server.AnyPort, slog.New(slog.DiscardHandler)
	s, err := server.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		cancel()
		t.Fatalf("the server ended: %v", err)
	}
	if c, err = client.FromKubeconfig(s.Kubeconfig(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		c.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return c, stop
}

func configMapsOf(c *client.Client) client.Resource[*corev1.ConfigMap] {
	return client.For[*corev1.ConfigMap](c).Namespace(metav1.NamespaceDefault)
}

func createNamed(ctx context.Context, t *testing.T, c *client.Client, name string) string {
	t.Helper()
	object, err := configMapsOf(c).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object.ResourceVersion
}

func maintenanceContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// succeed runs a command that must succeed and say want.
func succeed(ctx context.Context, t *testing.T, want string, args ...string) {
	t.Helper()
	got := invoke(ctx, args...)
	if got.code != exitOK || !strings.Contains(got.stdout, want) {
		t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %q", strings.Join(args, " "), got.code, got.stdout, got.stderr, want)
	}
}

// fail runs a command that must fail with a code and one line that says want.
func fail(ctx context.Context, t *testing.T, code int, want string, args ...string) {
	t.Helper()
	got := invoke(ctx, args...)
	last := got.stderr[strings.LastIndex(strings.TrimSuffix(got.stderr, "\n"), "\n")+1:]
	if got.code != code || !strings.HasPrefix(last, "levelwire: ") || !strings.Contains(last, want) {
		t.Errorf("%s: exit code %d, stdout %q, stderr %q; want code %d and %q", strings.Join(args, " "), got.code, got.stdout, got.stderr, code, want)
	}
}

// TestMaintenance runs each command against a server and against its data directory
// after it has ended.
func TestMaintenance(t *testing.T) {
	ctx := maintenanceContext(t)
	dir := filepath.Join(t.TempDir(), "data")
	online, offline := filepath.Join(t.TempDir(), "online.db"), filepath.Join(t.TempDir(), "offline.db")
	c, stop := runServer(ctx, t, dir)
	createNamed(ctx, t, c, "kept")
	data := "--data-dir=" + dir

	succeed(ctx, t, "no damage found", "check", data)
	succeed(ctx, t, "saved "+online, "snapshot", "save", online, data)
	succeed(ctx, t, "saved "+online, "snapshot", "save", online, "--kubeconfig="+filepath.Join(dir, "admin.kubeconfig"))
	succeed(ctx, t, "defragmented: ", "defrag", data)
	createNamed(ctx, t, c, "written-after-defrag")
	stop()
	succeed(ctx, t, "no damage found", "check", data)
	succeed(ctx, t, "saved "+offline, "snapshot", "save", offline, data)
	succeed(ctx, t, "defragmented: ", "defrag", data)
	for _, file := range []string{online, offline, filepath.Join(dir, "etcd", "member", "snap", "db")} {
		succeed(ctx, t, "no damage found", "check", file)
		restored := filepath.Join(t.TempDir(), "restored")
		succeed(ctx, t, "restored "+file, "snapshot", "restore", file, "--data-dir="+restored)
		succeed(ctx, t, "no damage found", "check", "--data-dir="+restored)
		c, stop := runServer(ctx, t, restored)
		if _, err := configMapsOf(c).Get(ctx, "kept", metav1.GetOptions{}); err != nil {
			t.Errorf("restored from %s: %v", filepath.Base(file), err)
		}
		stop()
		fail(ctx, t, exitFailed, "already holds objects", "snapshot", "restore", file, "--data-dir="+restored)
	}
}

// TestMaintenanceOfEncryptedData: the commands need no keys, what they write is as
// encrypted as what they read, and a restored store is read with the same keys.
func TestMaintenanceOfEncryptedData(t *testing.T) {
	const marker = "CONFIDENTIAL-55aa"
	ctx, dir := maintenanceContext(t), filepath.Join(t.TempDir(), "data")
	keys := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(keys, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: ['*.*']\n  providers:\n"+
		"  - secretbox: {keys: [{name: one, secret: "+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))+"}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, stop := runServerWith(ctx, t, server.Config{DataDir: dir, EncryptionProviderConfig: keys})
	if _, err := configMapsOf(c).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"a": marker}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	data, online, offline := "--data-dir="+dir, filepath.Join(t.TempDir(), "online.db"), filepath.Join(t.TempDir(), "offline.db")
	succeed(ctx, t, "no damage found", "check", data)
	succeed(ctx, t, "saved "+online, "snapshot", "save", online, data)
	succeed(ctx, t, "defragmented: ", "defrag", data)
	stop()
	succeed(ctx, t, "no damage found", "check", data)
	succeed(ctx, t, "defragmented: ", "defrag", data)
	succeed(ctx, t, "saved "+offline, "snapshot", "save", offline, data)
	for _, file := range []string{online, offline} {
		if content, err := os.ReadFile(file); err != nil || bytes.Contains(content, []byte(marker)) || !bytes.Contains(content, []byte("k8s:enc:secretbox:v1:one:")) {
			t.Errorf("%s is not encrypted: %v", filepath.Base(file), err)
		}
		restored := filepath.Join(t.TempDir(), "restored")
		succeed(ctx, t, "restored "+file, "snapshot", "restore", file, "--data-dir="+restored)
		succeed(ctx, t, "no damage found", "check", "--data-dir="+restored)
		fail(ctx, t, exitFailed, "--encryption-provider-config", "serve", "--data-dir="+restored, "--secure-port=0")
		c, stop := runServerWith(ctx, t, server.Config{DataDir: restored, EncryptionProviderConfig: keys})
		if kept, err := configMapsOf(c).Get(ctx, "kept", metav1.GetOptions{}); err != nil || kept.Data["a"] != marker {
			t.Errorf("restored from %s: %v, %v", filepath.Base(file), kept, err)
		}
		stop()
	}
}

// TestMaintenanceErrors: each is one line that names the flag or the file.
func TestMaintenanceErrors(t *testing.T) {
	ctx := maintenanceContext(t)
	absent := filepath.Join(t.TempDir(), "absent")
	broken := filepath.Join(t.TempDir(), "broken.db")
	if err := os.WriteFile(broken, []byte(strings.Repeat("x", 512*9+32)), 0o600); err != nil {
		t.Fatal(err)
	}
	fail(ctx, t, exitFailed, "--data-dir "+absent, "defrag", "--data-dir="+absent)
	fail(ctx, t, exitFailed, "--data-dir "+absent, "check", "--data-dir="+absent)
	fail(ctx, t, exitFailed, "--data-dir "+absent, "snapshot", "save", broken, "--data-dir="+absent)
	fail(ctx, t, exitFailed, "--kubeconfig", "defrag", "--kubeconfig="+absent)
	fail(ctx, t, exitFailed, broken, "snapshot", "restore", broken, "--data-dir="+absent)
	fail(ctx, t, exitFailed, absent, "snapshot", "restore", absent, "--data-dir="+filepath.Join(t.TempDir(), "new"))
	fail(ctx, t, exitFailed, "checksum", "check", broken)
	fail(ctx, t, exitUsage, "--data-dir is missing", "snapshot", "restore", broken)
	fail(ctx, t, exitUsage, "FILE", "snapshot", "save")
	if _, err := os.Stat(filepath.Join(absent, "etcd", "member")); err == nil {
		t.Error("a restore that failed has left a member")
	}
}

// TestSnapshotsAreForMasters: a user with a token of another group gets 403.
func TestSnapshotsAreForMasters(t *testing.T) {
	ctx := maintenanceContext(t)
	dir := t.TempDir()
	runServer(ctx, t, dir)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = "jane"
	other, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.CloseIdleConnections()
	answer, err := other.Raw(ctx, client.RawRequest{Path: "/levelwire/v1/storage/snapshot"})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a snapshot for jane: %s", answer.Status)
	}
}

// TestRestoredVersions: a client whose version the backup does not have gets 410 from
// the restored storage, at once and also when that has written more than was lost.
func TestRestoredVersions(t *testing.T) {
	ctx := maintenanceContext(t)
	dir, saved := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup.db")
	c, stop := runServer(ctx, t, dir)
	known := createNamed(ctx, t, c, "before")
	succeed(ctx, t, "saved", "snapshot", "save", saved, "--data-dir="+dir)
	lost := createNamed(ctx, t, c, "lost")
	stop()
	if err := os.RemoveAll(filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	succeed(ctx, t, "restored", "snapshot", "restore", saved, "--data-dir="+dir)
	c, _ = runServer(ctx, t, dir)
	for i := range 5 {
		for _, version := range []string{known, lost} {
			if err := watchFrom(ctx, c, version); !apierrors.IsResourceExpired(err) {
				t.Errorf("a watch from %s, after %d writes: %v, want 410", version, i, err)
			}
		}
		var first, second int64
		fmt.Sscan(createNamed(ctx, t, c, fmt.Sprint("after-", i)), &first)
		if fmt.Sscan(lost, &second); first < second+backup.RevisionBump/2 {
			t.Errorf("version %d follows %d", first, second)
		}
	}
}

// watchFrom returns the error with which a watch ends.
func watchFrom(ctx context.Context, c *client.Client, version string) error {
	seconds := int64(2)
	w, err := configMapsOf(c).Watch(ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds})
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		if _, err := w.Next(); err != nil {
			return err
		}
	}
}
