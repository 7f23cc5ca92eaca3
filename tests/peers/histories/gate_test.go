package histories

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// gate is where the subjects dial. Shut, it refuses connections as a machine
// without a listener does, or lets them wait. A proxy cannot do the former:
// it accepts before it knows, and client-go's reflectors list again after any
// error of a new connection but that one.
type gate struct {
	mu      sync.Mutex
	refuses bool
	waiting chan struct{} // closed when the gate opens; nil while it is open
}

func (g *gate) shut(refuses bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuses, g.waiting = refuses, make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting != nil {
		close(g.waiting)
		g.waiting = nil
	}
}

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	refuses, waiting := g.refuses, g.waiting
	g.mu.Unlock()
	if waiting != nil {
		if refuses {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		select {
		case <-waiting:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}
