package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"
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
