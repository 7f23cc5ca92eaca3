package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/levelwire/levelwire/client/internal/codec"
)

// ContentType names an encoding of request and answer bodies.
type ContentType string

const (
	// JSON is understood by every server, for every kind.
	JSON ContentType = codec.JSON
	// Protobuf is smaller and cheaper to decode. It is used for built-in types
	// and metadata; the client uses JSON for other kinds, and for everything
	// once a server has refused protobuf.
	Protobuf ContentType = codec.Protobuf
)

// Options configures a Client beside what clientcmd's rest.Config says. The
// zero value of every member is its documented default.
type Options struct {
	// ContentType is JSON, Protobuf, or empty: what rest.Config.ContentType
	// says if it is one of the two, else JSON.
	ContentType ContentType

	// ReadIdleTimeout is how long a connection may be silent before it is
	// probed: with an HTTP/2 ping, or with TCP keep-alives on HTTP/1.1.
	// Default 10 s; negative: never probed.
	ReadIdleTimeout time.Duration
	// PingTimeout is how long the answer to a probe may take before the
	// connection and all its requests fail. Default 5 s.
	PingTimeout time.Duration

	// ForceHTTP1 keeps the client from using HTTP/2: one TCP connection for
	// each watch, and no head-of-line blocking between them.
	ForceHTTP1 bool
	// UnencryptedHTTP2 speaks HTTP/2 without TLS, by prior knowledge, to
	// http:// servers. Without it they are spoken to in HTTP/1.1.
	UnencryptedHTTP2 bool

	// UserAgent replaces that of rest.Config. Default: the command's name.
	UserAgent string

	// Retry says which requests the client repeats before it returns an error.
	Retry RetryOptions

	// WrapTransport is called once with the complete transport and returns
	// what to use in its place.
	WrapTransport func(http.RoundTripper) http.RoundTripper

	// Dial opens connections. Default: rest.Config.Dial, or a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// MaxFrameBytes bounds the encoded size of one object, one list item or
	// one watch event. Default 64 MiB; negative: no bound.
	MaxFrameBytes int64

	// Observer receives a report of each finished request; nil: there are no
	// reports. The client calls it from many goroutines, and it must return
	// quickly.
	Observer Observer
}

// RetryOptions says which refusals a Client repeats by itself. A watch is
// never repeated: its caller has a back-off of its own.
type RetryOptions struct {
	// Max is how often one request is repeated. Default 10; negative: never.
	Max int
	// MaxWait bounds one wait, whatever Retry-After says. Default 30 s.
	MaxWait time.Duration
}

const (
	defaultReadIdleTimeout = 10 * time.Second
	defaultPingTimeout     = 5 * time.Second
	defaultRetries         = 10
	defaultRetryWait       = 30 * time.Second
	defaultMaxFrameBytes   = 64 << 20
)

// withDefaults returns a copy whose zero members are set.
func (o Options) withDefaults() Options {
	if o.ReadIdleTimeout == 0 {
		o.ReadIdleTimeout = defaultReadIdleTimeout
	}
	if o.PingTimeout == 0 {
		o.PingTimeout = defaultPingTimeout
	}
	if o.Retry.Max == 0 {
		o.Retry.Max = defaultRetries
	}
	if o.Retry.MaxWait == 0 {
		o.Retry.MaxWait = defaultRetryWait
	}
	if o.MaxFrameBytes == 0 {
		o.MaxFrameBytes = defaultMaxFrameBytes
	}
	return o
}

// validate says what is wrong with the options, if anything.
func (o Options) validate() error {
	switch o.ContentType {
	case "", JSON, Protobuf:
	default:
		return fmt.Errorf("content type %q is not supported: use %q or %q", o.ContentType, JSON, Protobuf)
	}
	if o.PingTimeout < 0 {
		return fmt.Errorf("ping timeout %v is negative: use a negative ReadIdleTimeout to switch probes off", o.PingTimeout)
	}
	if o.ForceHTTP1 && o.UnencryptedHTTP2 {
		return fmt.Errorf("ForceHTTP1 and UnencryptedHTTP2 exclude each other")
	}
	if o.Retry.MaxWait < 0 {
		return fmt.Errorf("longest wait for a retry %v is negative", o.Retry.MaxWait)
	}
	return nil
}
