package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Options configures a Server.
type Options struct {
	// Name stands in logs and errors. Default: "webhook".
	Name string
	// Address is host:port to listen on. Default ":9443".
	Address string
	// Listener is served in place of Address. The Server closes it.
	Listener net.Listener
	// CertFile and KeyFile are PEM files, which are read again when they change;
	// the certificate must be for the name by which the API server calls the
	// webhook, NAME.NAMESPACE.svc for a Service. Required, or else GetCertificate.
	CertFile, KeyFile string
	// GetCertificate returns the certificate of each handshake, in place of
	// files: for programs that have it from elsewhere. It must return quickly.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCAFile, if set, has the server accept reviews only from clients with
	// a certificate of one of the authorities in this PEM file. An API server
	// has one if its admission configuration says so. The file is read again
	// when it changes.
	ClientCAFile string
	// Handlers are the webhooks by path, which is a pattern of http.ServeMux: "/a/"
	// serves all paths below it, too. Required. The two paths "/healthz" and
	// "/readyz" are the Server's; those below them are not.
	Handlers map[string]http.Handler
	// Timeout bounds one review. The API server says in the request how long it
	// waits; the shorter time counts. Default 30 s, the longest that an API
	// server waits.
	Timeout time.Duration
	// MaxInFlight is how many reviews run at once; more wait. It bounds memory,
	// together with the size of a body. Default 100.
	MaxInFlight int
	// ShutdownDelay is for how long the server serves on, while it is not ready,
	// when Run's context ends: until no client is sent to it any more. Default:
	// none.
	ShutdownDelay time.Duration
	// ShutdownTimeout bounds the wait for reviews that run when the server
	// stops. Default 30 s.
	ShutdownTimeout time.Duration
	// Logger receives failures. Default: slog.Default().
	Logger *slog.Logger
}

// Defaults of Options.
const (
	DefaultAddress         = ":9443"
	DefaultTimeout         = 30 * time.Second
	DefaultMaxInFlight     = 100
	DefaultShutdownTimeout = 30 * time.Second
)

func (o *Options) complete() error {
	switch files := o.CertFile != "" && o.KeyFile != ""; {
	case !files && o.GetCertificate == nil:
		return errors.New("webhook server: set CertFile and KeyFile, or GetCertificate: an API server calls webhooks by TLS only")
	case o.GetCertificate != nil && (o.CertFile != "" || o.KeyFile != ""):
		return errors.New("webhook server: set either CertFile and KeyFile or GetCertificate, not both")
	}
	if len(o.Handlers) == 0 {
		return errors.New("webhook server: there are no Handlers")
	}
	for path, h := range o.Handlers {
		switch {
		case !strings.HasPrefix(path, "/"):
			return fmt.Errorf("webhook server: the path %q of a handler must begin with \"/\"", path)
		case path == healthPath || path == readyPath:
			return fmt.Errorf("webhook server: the path %s is the server's", path)
		case h == nil:
			return fmt.Errorf("webhook server: the handler of %s is nil", path)
		}
		if h, ok := h.(*Handler); ok && h.invalid != nil {
			return fmt.Errorf("webhook server: %s: %w", path, h.invalid)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Timeout", o.Timeout}, {"ShutdownDelay", o.ShutdownDelay}, {"ShutdownTimeout", o.ShutdownTimeout}} {
		if d.value < 0 {
			return fmt.Errorf("webhook server: %s must not be negative: %v", d.name, d.value)
		}
		if d.value > 0 && d.value < time.Millisecond {
			return fmt.Errorf("webhook server: %s %v is below a millisecond: is it a number without a unit?", d.name, d.value)
		}
	}
	if o.MaxInFlight < 0 {
		return fmt.Errorf("webhook server: MaxInFlight must not be negative: %d", o.MaxInFlight)
	}
	o.setDefaults()
	return nil
}

func (o *Options) setDefaults() {
	if o.Name == "" {
		o.Name = "webhook"
	}
	if o.Address == "" {
		o.Address = DefaultAddress
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.ShutdownTimeout == 0 {
		o.ShutdownTimeout = DefaultShutdownTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = o.Logger.With("server", o.Name)
}
