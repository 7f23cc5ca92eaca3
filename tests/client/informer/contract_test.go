package informer_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer/informertest"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContractOnOurServer(t *testing.T) {
	for _, contentType := range []client.ContentType{client.JSON, client.Protobuf} {
		t.Run(string(contentType), func(t *testing.T) {
			server := levelwiretest.Start(t)
			informertest.Run(t, func(*testing.T) informertest.Server {
				return informertest.Server{Config: server.Config(), Options: client.Options{ContentType: contentType}}
			}, nil)
		})
	}
}
