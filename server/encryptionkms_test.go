package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	"github.com/levelwire/levelwire/client"
)

// serveKMS serves a KMS plugin on a socket, as k8s.io/kms does, until the test ends, and
// returns the socket's path. That is short: the kernel takes at most 107 bytes.
func serveKMS(t *testing.T) (endpoint string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	endpoint = filepath.Join(dir, "kms.sock")
	listener, err := net.Listen("unix", endpoint) //nolint:noctx // Binding a socket does not block.
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(s, service.NewGRPCService(endpoint, time.Second, invertingKMS{}))
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return endpoint
}

// invertingKMS is a KMS plugin whose cipher inverts bits.
type invertingKMS struct{}

const invertingKeyID = "inverts"

// Status implements service.Service.
func (invertingKMS) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: invertingKeyID}, nil
}

// Encrypt implements service.Service.
func (invertingKMS) Encrypt(_ context.Context, _ string, plain []byte) (*service.EncryptResponse, error) {
	return &service.EncryptResponse{KeyID: invertingKeyID, Ciphertext: inverted(plain)}, nil
}

// Decrypt implements service.Service.
func (invertingKMS) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	return inverted(r.Ciphertext), nil
}

func inverted(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = ^b[i]
	}
	return out
}

// expectKMSMetrics looks for what was asked of a KMS plugin, and which key it has used, if provider
// is one.
func expectKMSMetrics(ctx context.Context, t *testing.T, c *client.Client, provider string) {
	t.Helper()
	if !strings.Contains(provider, "kms") {
		return
	}
	exposed := exposedMetrics(ctx, t, c)
	for _, name := range []string{
		"dek_source_cache_size", "key_id_hash_last_timestamp_seconds", "key_id_hash_status_last_timestamp_seconds", "key_id_hash_total",
		"kms_operations_latency_seconds",
	} {
		if family := exposed["apiserver_envelope_encryption_"+name]; len(family.GetMetric()) == 0 {
			t.Errorf("no metric %s of the KMS plugin", name)
		}
	}
}
