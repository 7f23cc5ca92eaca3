package aggregation

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// pingAfter and pingTimeout end connections over which nothing comes any more: a
	// watch would wait for ever.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// maxConnections bounds the connections to one endpoint, of each kind. Over HTTP/2 one
	// has about a hundred requests.
	maxConnections = 200
	maxHeaderBytes = 256 << 10
)

// Kind is what a request needs of its connection. Each kind has connections of its own,
// so that none waits for those of another.
type Kind int

// The kinds of requests.
const (
	Short   Kind = iota // ends by itself
	Long                // a watch: ends with its client
	Upgrade             // becomes another protocol; over HTTP/1.1
	kinds
)

// Server is the server of an APIService with a Service. It is safe for concurrent use.
type Server struct {
	of *Aggregator
	gv schema.GroupVersion
	// object is the APIService. Its connection never changes: a changed one has another
	// Server.
	object     atomic.Pointer[apiregistrationv1.APIService]
	transports [kinds]*http.Transport
	broken     error // why there are no transports
	stop       func()

	// last is the outcome of the last check; nil before the first.
	last atomic.Pointer[outcome]
	// described is what the server serves; nil before it has said so.
	described atomic.Pointer[description]
	// openAPILeftOut is whether its OpenAPI v2 is too large to be published beside that
	// of the others. The Aggregator's mu guards it.
	openAPILeftOut bool
	// written is when the condition was written. Only run uses it.
	written time.Time
}

func newServer(a *Aggregator, obj *apiregistrationv1.APIService) *Server {
	s := &Server{of: a, gv: schema.GroupVersion{Group: obj.Spec.Group, Version: obj.Spec.Version}}
	s.object.Store(obj)
	config, err := tlsConfig(&obj.Spec, a.opts.Certificate)
	if err != nil {
		s.broken = err
		return s
	}
	for kind := range s.transports {
		s.transports[kind] = newTransport(config.Clone(), Kind(kind))
	}
	return s
}

// sameConnection reports whether the server is connected to as obj says.
func (s *Server) sameConnection(obj *apiregistrationv1.APIService) bool {
	old, spec := &s.object.Load().Spec, &obj.Spec
	if old.Group != spec.Group || old.Version != spec.Version {
		return false
	}
	if old.Service.Namespace != spec.Service.Namespace || old.Service.Name != spec.Service.Name || *old.Service.Port != *spec.Service.Port {
		return false
	}
	return old.InsecureSkipTLSVerify == spec.InsecureSkipTLSVerify && bytes.Equal(old.CABundle, spec.CABundle) &&
		s.object.Load().UID == obj.UID
}

// close closes the connections that no request uses.
func (s *Server) close() {
	for _, t := range s.transports {
		if t != nil {
			t.CloseIdleConnections()
		}
	}
}

func tlsConfig(spec *apiregistrationv1.APIServiceSpec, certificate func() *tls.Certificate) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: spec.Service.Name + "." + spec.Service.Namespace + ".svc",
		InsecureSkipVerify: spec.InsecureSkipTLSVerify, //nolint:gosec // The APIService asks for it.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if certificate != nil {
				if c := certificate(); c != nil {
					return c, nil
				}
			}
			return &tls.Certificate{}, nil
		},
	}
	if len(spec.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(spec.CABundle) {
			return nil, errors.New("spec.caBundle has no PEM certificate: put in the authority that has signed the serving certificate")
		}
	}
	return config, nil
}

func newTransport(config *tls.Config, kind Kind) *http.Transport {
	t := &http.Transport{
		DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig: config, TLSHandshakeTimeout: handshakeTimeout,
		IdleConnTimeout: idleTimeout, MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections,
		MaxResponseHeaderBytes: maxHeaderBytes, DisableCompression: true, // answers go through as they are
		ForceAttemptHTTP2: kind != Upgrade,
	}
	if kind == Upgrade {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		config.NextProtos = []string{"http/1.1"}
	} else {
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	}
	return t
}

// Unavailable returns the error for clients while the server does not answer, or nil.
// After a start of this server, what the condition says counts until the first check.
func (s *Server) Unavailable() error {
	condition, last := conditionOf(s.object.Load()), s.last.Load()
	if last != nil {
		condition = &last.condition
	}
	if condition != nil && condition.Status == apiregistrationv1.ConditionTrue {
		return nil
	}
	message := "it has not been asked yet whether it answers"
	if condition != nil && condition.Message != "" {
		message = condition.Message
	}
	return apierrors.NewServiceUnavailable("the server of APIService " + s.name() + " is unavailable: " + message)
}

// SetUser names the user of a request in the headers of an authenticating proxy.
func (s *Server) SetUser(r *http.Request, user auth.User) {
	transport.SetAuthProxyHeaders(r, user.Name, user.UID, user.Groups, user.Extra)
}

func (s *Server) name() string { return s.object.Load().Name }

// RoundTripper returns what sends requests of a kind to one of the endpoints, chosen for
// each. The host in the URL is not looked at. A request that no byte was sent of goes to
// another endpoint, if it has GetBody or no body.
func (s *Server) RoundTripper(kind Kind) http.RoundTripper { return roundTripper{s, kind} }

type roundTripper struct {
	server *Server
	kind   Kind
}

// maxEndpoints is how many endpoints are tried.
const maxEndpoints = 3

// RoundTrip implements http.RoundTripper. An error that it returns before it has found an
// endpoint is *unresolved.
func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	addresses, err := rt.server.addresses(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	for i, address := range addresses {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = "https", address
		response, err := rt.server.transports[rt.kind].RoundTrip(out)
		if err == nil {
			return response, nil
		}
		if i+1 == len(addresses) || i+1 == maxEndpoints || !isDialError(err) || r.Context().Err() != nil {
			return nil, err
		}
		if r.Body != nil && r.Body != http.NoBody {
			if r.GetBody == nil {
				return nil, err
			}
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
	return nil, errors.New("no endpoint") // addresses has one at least
}

// isDialError reports whether no connection was made.
func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// addresses returns where the server listens.
func (s *Server) addresses(ctx context.Context) ([]string, error) {
	if s.broken != nil {
		return nil, &unresolved{failedCheck, s.broken.Error()}
	}
	return s.of.services.resolve(ctx, s.object.Load().Spec.Service)
}
