package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
	"github.com/levelwire/levelwire/storage/memory"
)

// marker is in every secret of these tests.
const marker = "CONFIDENTIAL-7c1f"

// encryptedBy writes a configuration that encrypts resources by keys of aesgcm, each a
// name and the letter of its secret, and reads what is not encrypted.
func encryptedBy(t *testing.T, path, resource string, keys ...string) {
	t.Helper()
	encryptedWith(t, path, resource, localProvider("aesgcm", keys...))
}

// localProvider is a provider whose keys are in the configuration.
func localProvider(kind string, keys ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  - %s:\n      keys:\n", kind)
	for _, k := range keys {
		name, letter, _ := strings.Cut(k, "=")
		fmt.Fprintf(&b, "      - {name: %s, secret: %s}\n", name, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32))))
	}
	return b.String()
}

// encryptedWith writes a configuration that encrypts resources by a provider.
func encryptedWith(t *testing.T, path, resource, provider string) {
	t.Helper()
	rewrite(t, path, fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: ['%s']\n  providers:\n%s  - identity: {}\n", resource, provider))
}

func secrets(c *client.Client) client.Resource[*corev1.Secret] {
	return client.For[*corev1.Secret](c).Namespace(metav1.NamespaceDefault)
}

func createSecret(ctx context.Context, t *testing.T, c *client.Client, name string) *corev1.Secret {
	t.Helper()
	secret, err := secrets(c).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"in": "label-" + marker}},
		StringData: map[string]string{"password": marker, "key-" + marker: "x"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// filesWith returns the files below a folder that contain one of some texts.
func filesWith(t *testing.T, dir string, texts ...string) (found []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				found = append(found, path)
				break
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestNothingReadableInTheDataDirectory: secrets are written, changed, deleted,
// compacted into tombstones, and read again after restarts, and no file has a word of
// them, neither of values nor of the names of their keys.
func TestNothingReadableInTheDataDirectory(t *testing.T) {
	for name, provider := range map[string]string{
		"aesgcm": localProvider("aesgcm", "one=a"), "aescbc": localProvider("aescbc", "one=a"), "secretbox": localProvider("secretbox", "one=a"),
		"kms": "  - kms: {apiVersion: v2, name: vault, endpoint: 'unix://" + serveKMS(t) + "', timeout: 10s}\n",
	} {
		t.Run(name, func(t *testing.T) { expectNothingReadable(t, provider) })
	}
	t.Run("identity", func(t *testing.T) {
		// The test's eyes: without encryption, the same search finds it.
		dir := t.TempDir()
		plain := start(t, server.Config{DataDir: dir})
		createSecret(deadline(t), t, plain.client(t), "readable")
		plain.stop(t)
		if len(filesWith(t, dir, marker)) == 0 {
			t.Error("the search finds nothing in a data directory without encryption")
		}
	})
	t.Run("memory", func(t *testing.T) {
		dir := t.TempDir()
		s := start(t, server.Config{DataDir: dir, Storage: server.Memory})
		createSecret(deadline(t), t, s.client(t), "lost")
		s.stop(t)
		if found := filesWith(t, dir, marker, "lost"); len(found) > 0 {
			t.Errorf("the storage in memory has written %q", found)
		}
	})
}

func expectNothingReadable(t *testing.T, provider string) {
	t.Helper()
	ctx, dir, path := deadline(t), t.TempDir(), filepath.Join(t.TempDir(), "encryption.yaml")
	encryptedWith(t, path, "secrets", provider)
	texts := []string{marker, base64.StdEncoding.EncodeToString([]byte(marker))}
	config := server.Config{
		DataDir: dir, EncryptionProviderConfig: path, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		CompactionInterval: 20 * time.Millisecond, CompactionRetention: time.Nanosecond, CompactionRevisions: -1,
	}
	var store *etcd.Store
	config.OpenStore = func(ctx context.Context) (_ storage.Store, err error) {
		store, err = etcd.Embed(ctx, etcd.EmbedConfig{Dir: filepath.Join(dir, "etcd"), Logger: config.Logger})
		return store, err
	}
	s := start(t, config)
	c := s.client(t)
	last := ""
	for i := range 20 {
		secret := createSecret(ctx, t, c, fmt.Sprint("secret-", i))
		secret.Data["more"] = []byte(marker)
		if _, err := secrets(c).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := secrets(c).Delete(ctx, secret.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			last = createSecret(ctx, t, c, fmt.Sprint("after-", i)).ResourceVersion
		}
	}
	compactedBeyond(ctx, t, store, number(t, last))
	batches, err := store.List(ctx, "/levelwire/tombstones/", storage.ListOptions{})
	if err != nil || len(batches.Items) == 0 || storage.EncryptedBy(batches.Items[0].Value) == "" {
		t.Errorf("tombstones that are not encrypted: %v, %v", batches.Items, err)
	}
	c.CloseIdleConnections()
	s.stop(t)
	if found := filesWith(t, dir, texts...); len(found) > 0 {
		t.Errorf("these files can be read: %q", found)
	}

	s = start(t, config)
	list, err := secrets(s.client(t)).List(ctx, metav1.ListOptions{LabelSelector: "in"})
	if err != nil || len(list.Items) != 20 || string(list.Items[0].Data["password"]) != marker {
		t.Errorf("after a restart: %d secrets, %v", len(list.Items), err)
	}
	createSecret(ctx, t, s.client(t), "another")
	expectKMSMetrics(ctx, t, s.client(t), provider)
	s.stop(t)
	if found := filesWith(t, dir, texts...); len(found) > 0 {
		t.Errorf("these files can be read after a restart: %q", found)
	}
}

// TestWrongEncryptionKey ends the start with one line that names the object, the prefix
// and the file; so does a start without the configuration.
func TestWrongEncryptionKey(t *testing.T) {
	for _, resource := range []string{"secrets", "*.*"} {
		ctx, dir, path := deadline(t), t.TempDir(), filepath.Join(t.TempDir(), "encryption.yaml")
		encryptedBy(t, path, resource, "one=a")
		s := start(t, server.Config{DataDir: dir, EncryptionProviderConfig: path})
		createSecret(ctx, t, s.client(t), "secret")
		s.stop(t)

		encryptedBy(t, path, resource, "one=b")
		expectRefusal(t, server.Config{DataDir: dir, EncryptionProviderConfig: path}, `"k8s:enc:aesgcm:v1:one:"`, `the key "one" of provider aesgcm in `+path)
		encryptedBy(t, path, resource, "two=a")
		expectRefusal(t, server.Config{DataDir: dir, EncryptionProviderConfig: path}, `"k8s:enc:aesgcm:v1:one:"`, `no provider aesgcm with the key "one"`)
		expectRefusal(t, server.Config{DataDir: dir}, `"k8s:enc:aesgcm:v1:one:"`, "--encryption-provider-config")
		encryptedBy(t, path, resource, "one=a")
		start(t, server.Config{DataDir: dir, EncryptionProviderConfig: path}).stop(t)
	}
}

func expectRefusal(t *testing.T, config server.Config, want ...string) {
	t.Helper()
	config.SecurePort = server.AnyPort
	config.Logger = slog.New(slog.DiscardHandler)
	s, err := server.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Run(deadline(t))
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("the start ends with %v", err)
	}
	for _, w := range append(want, "/registry/") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the start ends with %v, which does not say %s", err, w)
		}
	}
}

// TestWrongSecretboxKey is TestWrongEncryptionKey for the other provider that notices each
// wrong key; aescbc cannot always tell.
func TestWrongSecretboxKey(t *testing.T) {
	ctx, dir, path := deadline(t), t.TempDir(), filepath.Join(t.TempDir(), "encryption.yaml")
	encryptedWith(t, path, "secrets", localProvider("secretbox", "one=a"))
	s := start(t, server.Config{DataDir: dir, EncryptionProviderConfig: path})
	createSecret(ctx, t, s.client(t), "secret")
	s.stop(t)
	encryptedWith(t, path, "secrets", localProvider("secretbox", "one=b"))
	expectRefusal(t, server.Config{DataDir: dir, EncryptionProviderConfig: path}, `"k8s:enc:secretbox:v1:one:"`, `the key "one" of provider secretbox in `+path)
}

// TestWrongEncryptionConfiguration is refused before anything is started.
func TestWrongEncryptionConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	encryptedBy(t, path, "secrets", "one=")
	_, err := server.Listen(server.Config{DataDir: t.TempDir(), EncryptionProviderConfig: path})
	if err == nil || !strings.Contains(err.Error(), "--encryption-provider-config: "+path+": resources[0].providers[0].aesgcm.keys[0].secret") {
		t.Error(err)
	}
}

// TestEncryptionKeyRotation: after a change of the configuration, a replacement by the
// same object writes it with the new key, once; and the former key can be dropped.
func TestEncryptionKeyRotation(t *testing.T) {
	ctx, path := deadline(t), filepath.Join(t.TempDir(), "encryption.yaml")
	encryptedBy(t, path, "secrets", "one=a")
	inner, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	config := server.Config{DataDir: t.TempDir(), EncryptionProviderConfig: path, OpenStore: func(context.Context) (storage.Store, error) { return keptOpen{inner}, nil }}
	s := start(t, config)
	created := createSecret(ctx, t, s.client(t), "secret")
	same, err := secrets(s.client(t)).Update(ctx, created, metav1.UpdateOptions{})
	if err != nil || same.ResourceVersion != created.ResourceVersion {
		t.Errorf("an update that changes nothing: %v, version %s after %s", err, same.ResourceVersion, created.ResourceVersion)
	}
	s.stop(t)

	encryptedBy(t, path, "secrets", "two=b", "one=a")
	s = start(t, config)
	for range 2 {
		object, err := secrets(s.client(t)).Get(ctx, "secret", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := secrets(s.client(t)).Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		item, err := inner.Get(ctx, "/registry/secrets/default/secret", 0)
		if err != nil || storage.EncryptedBy(item.Value) != "k8s:enc:aesgcm:v1:two:" {
			t.Errorf("after the replacement, it is stored with %q, %v", storage.EncryptedBy(item.Value), err)
		}
		if same != nil && same.ResourceVersion != created.ResourceVersion && object.ResourceVersion != same.ResourceVersion {
			t.Error("the second replacement has written again")
		}
		same = object
	}
	s.stop(t)

	encryptedBy(t, path, "secrets", "two=b")
	s = start(t, config)
	if _, err := secrets(s.client(t)).Get(ctx, "secret", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	s.stop(t)
}

// TestEncryptionReload: a changed configuration is used without a restart, a wrong one is
// not, and Kubernetes' metrics count both.
func TestEncryptionReload(t *testing.T) {
	ctx, path := deadline(t), filepath.Join(t.TempDir(), "encryption.yaml")
	encryptedBy(t, path, "secrets", "one=a")
	inner, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Config{
		DataDir: t.TempDir(), EncryptionProviderConfig: path, EncryptionProviderConfigAutomaticReload: true,
		OpenStore: func(context.Context) (storage.Store, error) { return inner, nil },
	})
	counted := func(status string) func(string) bool {
		return func(metrics string) bool {
			return strings.Contains(metrics, "apiserver_encryption_config_controller_automatic_reloads_total{status=\""+status+"\"} 1\n")
		}
	}
	encryptedBy(t, path, "secrets", "two=b", "one=a")
	s.await(t, "/metrics", counted("success"))
	encryptedBy(t, path, "secrets", "three=")
	s.await(t, "/metrics", counted("failure"))
	createSecret(ctx, t, s.client(t), "secret")
	item, err := inner.Get(ctx, "/registry/secrets/default/secret", 0)
	if err != nil || storage.EncryptedBy(item.Value) != "k8s:enc:aesgcm:v1:two:" {
		t.Errorf("it is stored with %q, %v", storage.EncryptedBy(item.Value), err)
	}
	metrics := s.get(t, "/metrics")
	for _, want := range []string{
		`apiserver_encryption_config_controller_last_config_info{hash="sha256:`,
		`apiserver_storage_transformation_operations_total{resource="secrets",status="OK",transformation_type="to_storage",transformer_prefix="k8s:enc:aesgcm:v1:"} 1`,
		`apiserver_storage_transformation_operations_total{resource="secrets",status="OK",transformation_type="to_storage",transformer_prefix="two:"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
}

// keptOpen is a store that outlives its servers.
type keptOpen struct{ storage.Store }

func (keptOpen) Close() error { return nil }
