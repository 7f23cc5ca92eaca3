package tour

import (
	"context"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/tests/client/tour"
	"github.com/levelwire/levelwire/tests/peers/upstream"
)

func TestUpstreamServer(t *testing.T) {
	for _, contentType := range []client.ContentType{client.JSON, client.Protobuf} {
		_, name, _ := strings.Cut(string(contentType), "/")
		t.Run(name, func(t *testing.T) {
			etcd, err := upstream.StartEtcd(t.Context(), upstream.EtcdOptions{DataDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer etcd.Close()
			s, err := upstream.Start(context.Background(), upstream.Options{Etcd: etcd.Endpoint(), CertDir: t.TempDir(), Protobuf: contentType == client.Protobuf})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Stop(); err != nil {
					t.Error(err)
				}
			}()
			tour.Run(t, s.Config(), contentType, "default")
		})
	}
}
