package tour_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/tests/client/tour"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOurServer(t *testing.T) {
	for _, contentType := range []client.ContentType{client.JSON, client.Protobuf} {
		_, name, _ := strings.Cut(string(contentType), "/")
		t.Run(name, func(t *testing.T) {
			tour.Run(t, levelwiretest.StartInMemory(t).Config(), contentType, "default")
		})
	}
}
