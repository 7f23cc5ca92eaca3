package encryption_test

import (
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/encryption"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// k8s.io/apiserver's audit and klog packages start it when they are linked.
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/server/v3/storage/backend.(*backend).run"))
}

// secretKey is the key in the store of a secret.
const secretKey = "/registry/secrets/default/one"

// resourceOf knows the keys /registry/RESOURCE/..., and one prefix for parts of all.
func resourceOf(key string) schema.GroupResource {
	if strings.HasPrefix(key, "/parts/") {
		return encryption.AllResources
	}
	rest, ok := strings.CutPrefix(key, "/registry/")
	if !ok {
		return schema.GroupResource{}
	}
	resource, _, _ := strings.Cut(rest, "/")
	return schema.GroupResource{Resource: resource}
}

// everything is a resourceOf for which all keys are of secrets.
func everything(string) schema.GroupResource { return schema.GroupResource{Resource: "secrets"} }

// secretOf makes a 32 byte key, in base64.
func secretOf(letter string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

// keyed is a provider with keys, each a name and the letter of its secret: "one=a".
func keyed(provider string, keys ...string) string {
	var b strings.Builder
	b.WriteString("      - " + provider + ":\n          keys:\n")
	for _, k := range keys {
		name, letter, _ := strings.Cut(k, "=")
		b.WriteString("            - name: " + name + "\n              secret: " + secretOf(letter) + "\n")
	}
	return b.String()
}

const identity = "      - identity: {}\n"

// document is a configuration that encrypts secrets with some providers.
func document(providers ...string) string { return documentFor("secrets", providers...) }

func documentFor(resource string, providers ...string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n  - resources: ['" + resource + "']\n    providers:\n" + strings.Join(providers, "")
}

func writeFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readConfig(t testing.TB, content string) *encryption.Config {
	t.Helper()
	config, err := encryption.ReadConfig(writeFile(t, content), false)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// wrap encrypts a store as a configuration says.
func wrap(t testing.TB, inner storage.Store, content string, opts encryption.Options) *encryption.Store {
	t.Helper()
	if opts.Resource == nil {
		opts.Resource = resourceOf
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	store, err := encryption.New(inner, readConfig(t, content), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func create(t testing.TB, store storage.Store, key, value string) storage.Revision {
	t.Helper()
	revision, err := store.Create(t.Context(), key, []byte(value), 0)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func get(t testing.TB, store storage.Store, key string) storage.KeyValue {
	t.Helper()
	item, err := store.Get(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return item
}
