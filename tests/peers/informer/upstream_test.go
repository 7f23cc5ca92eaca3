package informer

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer/informertest"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

func TestContractOnAnUpstreamServer(t *testing.T) {
	etcd, err := upstream.StartEtcd(t.Context(), upstream.EtcdOptions{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	server, err := upstream.Start(context.Background(), upstream.Options{Etcd: etcd.Endpoint(), CertDir: t.TempDir(), Protobuf: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	for _, contentType := range []client.ContentType{client.JSON, client.Protobuf} {
		t.Run(string(contentType), func(t *testing.T) {
			informertest.Run(t, func(*testing.T) informertest.Server {
				return informertest.Server{Config: server.Config(), Options: client.Options{ContentType: contentType}}
			}, nil)
		})
	}
	t.Run("differences", func(t *testing.T) {
		c, err := client.New(server.Config(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdleConnections()
		_, err = client.For[*corev1.ConfigMap](c).Difference(t.Context(), nil, metav1.ListOptions{})
		if !errors.Is(err, client.ErrNoDifference) {
			t.Errorf("got %v", err)
		}
	})
}
