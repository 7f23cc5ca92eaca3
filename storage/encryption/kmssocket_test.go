package encryption_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/encryption"
	"github.com/levelwire/levelwire/storage/storagetest"
)

// socketPlugin is where a KMS plugin listens. Its path is short: the kernel takes at most
// 107 bytes.
func socketPlugin(t *testing.T) (endpoint string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "kms.sock")
}

// servePlugin serves a plugin as k8s.io/kms does, over gRPC, until stop is called.
func servePlugin(t *testing.T, endpoint string, plugin service.Service) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", endpoint) //nolint:noctx // Binding a socket does not block.
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(s, service.NewGRPCService(endpoint, time.Second, plugin))
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	return func() {
		t.Helper()
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestPluginOnASocket: the protocol is spoken with a real plugin's server. A store that
// starts without the plugin cannot read, and reads when it is there.
func TestPluginOnASocket(t *testing.T) {
	endpoint, inner, plugin := socketPlugin(t), storagetest.OpenMemory(t), newFakePlugin()
	config := document(strings.Replace(kmsProvider, "unix:///run/kms.sock", "unix://"+endpoint, 1), identity)
	stop := servePlugin(t, endpoint, plugin)
	store := wrap(t, inner, config, encryption.Options{})
	create(t, store, secretKey, "confidential")
	if stored := string(get(t, inner, secretKey).Value); !strings.HasPrefix(stored, "k8s:enc:kms:v2:vault:") || strings.Contains(stored, "confidential") {
		t.Errorf("stored as %q", stored)
	}
	second := wrap(t, inner, config, encryption.Options{})
	if item := get(t, second, secretKey); string(item.Value) != "confidential" || item.Stale {
		t.Errorf("read as %q, stale %v", item.Value, item.Stale)
	}
	stop()
	if item := get(t, second, secretKey); string(item.Value) != "confidential" {
		t.Errorf("read without the plugin as %q", item.Value)
	}
	third := wrap(t, inner, config, encryption.Options{})
	if _, err := third.Get(t.Context(), secretKey, 0); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("a read by a store that the plugin has never answered: %v", err)
	}
	if err := third.Check(); err == nil || !strings.Contains(err.Error(), "vault") {
		t.Errorf("a plugin that is not there is healthy: %v", err)
	}
	plugin.set("2", nil)
	defer servePlugin(t, endpoint, plugin)()
	fourth := wrap(t, inner, config, encryption.Options{})
	if item := get(t, fourth, secretKey); string(item.Value) != "confidential" || !item.Stale {
		t.Errorf("after the plugin's new key, read as %q, stale %v", item.Value, item.Stale)
	}
}

// TestPluginOfAnotherKey: what a plugin refuses to decrypt is unreadable, not unavailable.
func TestPluginOfAnotherKey(t *testing.T) {
	endpoint, inner := socketPlugin(t), storagetest.OpenMemory(t)
	config := document(strings.Replace(kmsProvider, "unix:///run/kms.sock", "unix://"+endpoint, 1))
	stop := servePlugin(t, endpoint, newFakePlugin())
	create(t, wrap(t, inner, config, encryption.Options{}), secretKey, "confidential")
	stop()
	defer servePlugin(t, endpoint, refusingPlugin{newFakePlugin()})()
	expectUnreadable(t, get(t, wrap(t, inner, config, encryption.Options{}), secretKey).Value, "k8s:enc:kms:v2:vault:", false)
}

// refusingPlugin decrypts nothing.
type refusingPlugin struct{ service.Service }

func (refusingPlugin) Decrypt(context.Context, string, *service.DecryptRequest) ([]byte, error) {
	return nil, status.Error(codes.InvalidArgument, "another key")
}
