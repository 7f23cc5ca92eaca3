package encryption_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/kms/pkg/service"

	"github.com/levelwire/levelwire/storage/encryption"
	"github.com/levelwire/levelwire/storage/storagetest"
)

// TestWrongConfig: an error is one line with the file and the field, and without the
// keys.
func TestWrongConfig(t *testing.T) {
	for content, want := range map[string]string{
		"":                            "the file is empty",
		"a: [":                        "yaml",
		"a: b\n":                      "kind must be EncryptionConfiguration",
		"apiVersion: v1\nkind: Pod\n": "kind must be EncryptionConfiguration",
		document("      - aesgcm:\n          keys:\n            - name: one\n              secret: aGVsbG8gc2VjcmV0\n"): "resources[0].providers[0].aesgcm.keys[0].secret",
		strings.Replace(document(keyed("aesgcm", "one=a")), "keys:", "key:", 1):                                         "key",
		document("      - kms:\n          name: vault\n          endpoint: unix:///kms.sock\n"):                         "resources[0].providers[0].kms.apiVersion",
		document("      - kms:\n          apiVersion: v2\n          name: vault\n          endpoint: http://kms\n"):     "resources[0].providers[0].kms.endpoint",
		documentFor("*.*", identity) + "  - resources: [secrets]\n    providers:\n" + identity:                          "resources[1].resources[0]",
		documentFor("secrets"): "resources[0].providers",
	} {
		path := writeFile(t, content)
		_, err := encryption.ReadConfig(path, false)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+": ") || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "aGVsbG8gc2VjcmV0") {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
	if _, err := encryption.ReadConfig("missing.yaml", false); err == nil || !strings.Contains(err.Error(), "missing.yaml") {
		t.Error(err)
	}
}

// TestReload: the changed content of the file is used without a restart; a wrong one is
// not, and the error names the file.
func TestReload(t *testing.T) {
	inner := storagetest.OpenMemory(t)
	first := document(keyed("aesgcm", "one=a"), identity)
	store := wrap(t, inner, first, encryption.Options{})
	create(t, store, secretKey, "confidential")
	if changed, err := store.Reload(t.Context(), []byte("nonsense")); changed || err == nil || !strings.Contains(err.Error(), "encryption.yaml: ") {
		t.Errorf("wrong content: changed %v, %v", changed, err)
	}
	if changed, err := store.Reload(t.Context(), []byte(first)); changed || err != nil || get(t, store, secretKey).Stale {
		t.Errorf("the same content: changed %v, %v", changed, err)
	}
	if changed, err := store.Reload(t.Context(), []byte(document(keyed("aesgcm", "two=b", "one=a"), identity))); !changed || err != nil {
		t.Errorf("other keys: changed %v, %v", changed, err)
	}
	if item := get(t, store, secretKey); !item.Stale || string(item.Value) != "confidential" {
		t.Errorf("after the change: %q, stale %v", item.Value, item.Stale)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if changed, err := store.Reload(t.Context(), []byte(first)); changed || err == nil {
		t.Errorf("after Close: changed %v, %v", changed, err)
	}
}

// TestCloseDuringReload: Close does not wait for a plugin that does not answer.
func TestCloseDuringReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := silentPlugin{asked: make(chan struct{}, 1)}
		store := wrap(t, storagetest.OpenMemory(t), document(keyed("aesgcm", "one=a")), encryption.Options{}.WithPlugin(plugin))
		failed := make(chan error)
		go func() {
			_, err := store.Reload(t.Context(), []byte(document(kmsProvider, keyed("aesgcm", "one=a"))))
			failed <- err
		}()
		<-plugin.asked
		before := time.Now()
		if err := store.Close(); err != nil || time.Since(before) > 0 {
			t.Errorf("Close took %v: %v", time.Since(before), err)
		}
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Reload: %v", err)
		}
	})
}

// silentPlugin is a KMS plugin that does not answer before the caller gives up.
type silentPlugin struct {
	service.Service
	asked chan struct{}
}

func (s silentPlugin) Status(ctx context.Context) (*service.StatusResponse, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}
