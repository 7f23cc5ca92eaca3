package informer_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/levelwire/levelwire/client/informer/informertest"
	"github.com/levelwire/levelwire/client/rest"
	"github.com/levelwire/levelwire/levelwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContractOnOurServer(t *testing.T) {
	for _, contentType := range []rest.ContentType{rest.JSON, rest.Protobuf} {
		t.Run(string(contentType), func(t *testing.T) {
			server := levelwiretest.Start(t)
			informertest.Run(t, func(*testing.T) informertest.Server {
				return informertest.Server{Config: server.Config(), Options: rest.Options{ContentType: contentType}}
			}, nil)
		})
	}
}
