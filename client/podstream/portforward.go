package podstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // client-go takes the types of this one
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"

	"github.com/levelwire/levelwire/client"
)

// ErrLostConnection ends a PortForwarder whose connection to the pod has ended: the
// pod is gone, or nothing in it listens on the port.
var ErrLostConnection = portforward.ErrLostConnectionToPod

// PortForwardOptions say which ports of a pod are reachable where.
type PortForwardOptions struct {
	// Ports are "8080" (the same port on both sides), "8888:80" (local and the pod's)
	// or ":80" (any free local port).
	Ports []string
	// Addresses are the local IP addresses to listen on, or "localhost". Default:
	// localhost, in IPv4 and IPv6.
	Addresses []string
	// Logger receives the errors of single connections; nil: slog.Default().
	Logger *slog.Logger
}

// ForwardedPort is a local port and the pod's port that it leads to.
type ForwardedPort struct{ Local, Remote uint16 }

// PortForwarder listens on local ports and forwards connections to a pod, until it
// is closed, its context ends, or the connection to the pod is lost. It does not
// connect again. It is safe for concurrent use.
type PortForwarder struct {
	ports  []ForwardedPort
	cancel context.CancelFunc
	done   chan struct{}
	err    error // written before done is closed, read after
}

// PortForward connects to a pod and returns when the local ports accept connections.
// If one of them cannot be listened on, none is.
func PortForward(ctx context.Context, c *client.Client, namespace, pod string, opts PortForwardOptions) (*PortForwarder, error) {
	u := &upgrade{ctx: ctx}
	fail := func(err error) error { return u.failed("port-forward to", namespace, pod, err) }
	address, err := streamURL(c, namespace, pod, "portforward", nil)
	if err != nil {
		return nil, fail(err)
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if len(opts.Addresses) == 0 {
		opts.Addresses = []string{"localhost"}
	}
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(opts.Logger.Handler()))
	dialer, err := newDialer(klog.FromContext(ctx), u.config(c), address)
	if err != nil {
		return nil, fail(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan struct{})
	var unheard bytes.Buffer // of ports; written before ready is closed
	forwarder, err := portforward.NewOnAddressesWithContext(ctx, dialer, opts.Addresses, opts.Ports, ready, io.Discard, &unheard)
	if err != nil {
		cancel()
		return nil, fail(err)
	}
	f := &PortForwarder{cancel: cancel, done: make(chan struct{})}
	go f.run(forwarder)
	select {
	case <-ready:
	case <-f.done:
		return nil, fail(f.err)
	}
	ports, err := forwarder.GetPorts()
	if unheard.Len() > 0 {
		err = errors.New(strings.TrimSpace(unheard.String()))
	}
	if err != nil {
		f.Close()
		return nil, fail(err)
	}
	for _, p := range ports {
		f.ports = append(f.ports, ForwardedPort(p))
	}
	return f, nil
}

// newDialer tries SPDY within WebSocket and then alone, as kubectl does.
func newDialer(logger klog.Logger, cfg *rest.Config, address *url.URL) (httpstream.Dialer, error) {
	socket, err := portforward.NewSPDYOverWebsocketDialerWithLogger(logger, address, cfg)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		return nil, err
	}
	direct := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	return portforward.NewFallbackDialer(socket, direct, needsSPDY), nil
}

// run forwards until the context or the connection ends.
func (f *PortForwarder) run(forwarder *portforward.PortForwarder) {
	defer close(f.done)
	defer f.cancel()
	f.err = forwarder.ForwardPorts()
}

// Ports returns the ports in the order of the options, with the local ones that were
// chosen.
func (f *PortForwarder) Ports() []ForwardedPort { return append([]ForwardedPort(nil), f.ports...) }

// Done is closed when nothing is forwarded any more.
func (f *PortForwarder) Done() <-chan struct{} { return f.done }

// Err returns why forwarding has ended: ErrLostConnection, or nil if it was closed or
// has not ended.
func (f *PortForwarder) Err() error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}

// Close ends forwarding and waits until the local ports are closed.
func (f *PortForwarder) Close() {
	f.cancel()
	<-f.done
}
