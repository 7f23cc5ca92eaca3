package podstream

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// client-go's packages leave two goroutines for a moment after a connection is
// closed: 5 s for the heart beat of a WebSocket, 1 s for the end of SPDY.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"),
		goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}

func restConfig(address string) *rest.Config { return &rest.Config{Host: "http://" + address} }
