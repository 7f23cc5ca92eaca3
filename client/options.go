package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/scheme"
)

// ContentType names an encoding of request and answer bodies.
type ContentType string

const (
	// JSON is understood by every server, for every kind.
	JSON ContentType = codec.JSON
	// Protobuf is smaller and cheaper to decode. It is used for built-in types
	// and metadata; the client uses JSON for other kinds. If the server refuses
	// protobuf for a resource (415 for a body, 406 for an answer), the client uses
	// JSON for that resource and direction for 10 minutes, and then tries again;
	// see Stats.ProtobufRefused.
	Protobuf ContentType = codec.Protobuf
)

// Options configures a Client beside what clientcmd's rest.Config says. The
// zero value of every member is its documented default.
type Options struct {
	// ContentType is JSON, Protobuf, or empty: what rest.Config.ContentType
	// says if it is one of the two, else JSON.
	ContentType ContentType

	// Scheme says which kind and resource a Go type is. Default: [scheme.Default],
	// in which all types of Kubernetes are, and all that were registered in it.
	Scheme *scheme.Scheme

	// ReadIdleTimeout is how long a connection may be silent before it is
	// probed: with an HTTP/2 ping, or with TCP keep-alives on HTTP/1.1.
	// Default 10 s; negative: never probed.
	ReadIdleTimeout time.Duration
	// PingTimeout is how long the answer to a probe may take before the
	// connection and all its requests fail. Default 5 s.
	PingTimeout time.Duration

	// ForceHTTP1 keeps the client from using HTTP/2: one TCP connection for
	// each watch, and no head-of-line blocking between them. So do, as in client-go, a
	// rest.Config whose NextProtos are set and lack "h2", and the environment variable
	// DISABLE_HTTP2, unless it is empty.
	ForceHTTP1 bool
	// UnencryptedHTTP2 speaks HTTP/2 without TLS, by prior knowledge, to
	// http:// servers. Without it they are spoken to in HTTP/1.1.
	UnencryptedHTTP2 bool

	// UserAgent replaces that of rest.Config. Default: the one of client-go, which begins
	// with the command's name and a slash.
	UserAgent string
	// FieldManager is the field manager of all writes, unless Resource.FieldManager or the
	// options of a call name another one. Default: none is sent. The server then takes the
	// UserAgent up to its first slash, the command's name, as it does for client-go and
	// kubectl; Apply is an error, because a program that is renamed would leave fields
	// behind that nothing removes.
	FieldManager string

	// Retry says which requests the client repeats before it returns an error.
	Retry RetryOptions

	// RateLimiter is asked before each attempt of a request other than a watch and those of
	// leader election (package leader). Give the same one to several Clients to limit them together:
	// rate.NewLimiter(50, 100) lets 50 requests a second pass, and 100 at once.
	// Default: that of rest.Config, which is its RateLimiter or, if QPS is above 0, one of
	// the Client's own with its QPS and Burst (10 if that is 0). Without these there is no
	// limit; the server's own limits are honoured, see Retry.
	RateLimiter RateLimiter

	// WrapTransport is called once with the complete transport and returns
	// what to use in its place.
	WrapTransport func(http.RoundTripper) http.RoundTripper

	// ConnectionsOf has the Client use the connections of another one: many users of one
	// process then need few connections, each with the streams of many of them. The
	// rest.Config must have the same host, and credentials that are sent with each request,
	// such as a bearer token or impersonation; a client certificate belongs to a connection,
	// and so neither of the two may have one. What else is said of connections is the other
	// Client's: TLS, proxy, Dial, ReadIdleTimeout, PingTimeout, ForceHTTP1,
	// UnencryptedHTTP2. Default: connections of its own.
	ConnectionsOf *Client

	// Dial opens connections. Default: rest.Config.Dial, or a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// MaxFrameBytes bounds the encoded size of one object, one list item or
	// one watch event. Default 64 MiB; negative: no bound.
	MaxFrameBytes int64

	// Logger receives what an operator may have to know: rotated credentials, a
	// resource for which protobuf is refused, a Retry-After above Retry.MaxWait. nil:
	// slog.Default().
	Logger *slog.Logger

	// Observer receives reports of each attempt and each finished request; nil: there
	// are no reports. The client calls it from many goroutines, and it must return
	// quickly.
	Observer Observer
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
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.MaxFrameBytes == 0 {
		o.MaxFrameBytes = defaultMaxFrameBytes
	}
	return o
}

// disableHTTP2 sets ForceHTTP1 if the configuration or the environment does not allow
// HTTP/2.
func (o *Options) disableHTTP2(cfg *rest.Config) error {
	reason := ""
	switch {
	case o.ForceHTTP1:
		return nil
	case os.Getenv("DISABLE_HTTP2") != "":
		reason = "the environment variable DISABLE_HTTP2"
	case len(cfg.NextProtos) > 0 && !slices.Contains(cfg.NextProtos, "h2"):
		reason = fmt.Sprintf("NextProtos %q of the rest.Config", cfg.NextProtos)
	default:
		return nil
	}
	if o.UnencryptedHTTP2 {
		return fmt.Errorf("UnencryptedHTTP2 is not possible with %s, which allows only HTTP/1.1", reason)
	}
	o.ForceHTTP1 = true
	return nil
}

// validate says what is wrong with the options, if anything.
func (o Options) validate() error {
	switch o.ContentType {
	case "", JSON, Protobuf:
	default:
		return fmt.Errorf("content type %q is not supported: use %q or %q", o.ContentType, JSON, Protobuf)
	}
	if err := o.validateConnections(); err != nil {
		return err
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
	if o.Retry.MaxWait > 0 && o.Retry.Max < 0 {
		return fmt.Errorf("longest wait for a retry %v is of no use where Retry.Max %d allows none", o.Retry.MaxWait, o.Retry.Max)
	}
	return nil
}

// validateConnections refuses what says nothing about the connections that are used.
func (o Options) validateConnections() error {
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"Dial", o.Dial != nil}, {"ReadIdleTimeout", o.ReadIdleTimeout != 0}, {"PingTimeout", o.PingTimeout != 0},
		{"ForceHTTP1", o.ForceHTTP1}, {"UnencryptedHTTP2", o.UnencryptedHTTP2},
	} {
		if option.set && o.ConnectionsOf != nil {
			return fmt.Errorf("%s is of no use with Options.ConnectionsOf: set it for the client that has the connections", "Options."+option.name)
		}
	}
	if o.ReadIdleTimeout < 0 && o.PingTimeout > 0 {
		return fmt.Errorf("ping timeout %v is of no use with the negative ReadIdleTimeout, which switches probes off", o.PingTimeout)
	}
	for _, option := range []struct {
		name  string
		value time.Duration
	}{{"ReadIdleTimeout", o.ReadIdleTimeout}, {"PingTimeout", o.PingTimeout}, {"Retry.MaxWait", o.Retry.MaxWait}} {
		if option.value > 0 && option.value < time.Millisecond {
			return fmt.Errorf("%s %v is below a millisecond: is it a number without a unit?", "Options."+option.name, option.value)
		}
	}
	return nil
}
