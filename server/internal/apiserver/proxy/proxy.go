package proxy

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/apiserver/authentication"
	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/apiserver/inflight"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/server/internal/ui"
)

// OpenAPIv3Path begins the paths of the documents of OpenAPI version 3. Redirections to it
// are passed on: they stay on this server.
const OpenAPIv3Path = "/openapi/v3/"

// Server is a server that requests are passed on to: an aggregated server, or the
// upstream of a relay.
type Server interface {
	// Unavailable returns the error for clients while the server does not answer, or nil.
	Unavailable() error
	// RoundTripper returns what sends requests of a kind. It sets their scheme and host.
	RoundTripper(kind aggregation.Kind) http.RoundTripper
	// SetUser adds the headers by which the server knows which user a request is of. The
	// credentials of the client have been removed.
	SetUser(r *http.Request, user auth.User)
}

// Config is what a Proxy knows of its server.
type Config struct {
	// Via names this server in requests that it passes on.
	Via string
	// RequestHeader has the headers in which a proxy in front of this server names users;
	// nil: there are none.
	RequestHeader *authentication.RequestHeader
	// Traced passes the trace of a request on.
	Traced bool
	Logger *slog.Logger
}

// Proxy passes requests on. It is safe for concurrent use.
type Proxy struct{ config Config }

// New returns a Proxy.
func New(config Config) *Proxy { return &Proxy{config} }

// FitsHeaders reports whether the headers of a request carry a user as it is. HTTP/1.1 drops
// the spaces around a value: without them, a group may be a mightier one; and a request whose
// user's name is empty is that of this server itself.
func FitsHeaders(user auth.User) bool {
	fits := func(value string) bool {
		return httpguts.ValidHeaderFieldValue(value) && textproto.TrimString(value) == value
	}
	if user.Name == "" || !fits(user.Name) || !fits(user.UID) {
		return false
	}
	for _, group := range user.Groups {
		if !fits(group) {
			return false
		}
	}
	for _, values := range user.Extra {
		for _, value := range values {
			if !fits(value) {
				return false
			}
		}
	}
	return true
}

// IsUpgrade reports whether a request asks for another protocol on its connection.
func IsUpgrade(r *http.Request) bool {
	return r.ProtoMajor == 1 && httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") && r.Header.Get("Upgrade") != ""
}

// Request is a request that is passed on.
type Request struct {
	Server Server
	User   auth.User
	// Kind is how the request ends.
	Kind aggregation.Kind
	// Slot is given back while the server is silent; nil: the request has none.
	Slot *inflight.Slot
	// Ended reports whether this server has ended the request; nil: it ends by itself.
	Ended func() bool
}

// forwarding is a request on its way.
type forwarding struct {
	request Request
	proxy   *Proxy
	failed  error // why the answer broke off
}

var copyBuffers = sync.Pool{New: func() any { return new([copyBufferSize]byte) }}

const copyBufferSize = 32 << 10

type buffers struct{}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return copyBuffers.Get().(*[copyBufferSize]byte)[:] }

// Put implements httputil.BufferPool.
func (buffers) Put(b []byte) { copyBuffers.Put((*[copyBufferSize]byte)(b)) }

// Pass sends the request and copies the answer. An answer that breaks off breaks the
// client's, unless this server has ended the request.
func (p *Proxy) Pass(w http.ResponseWriter, r *http.Request, request Request) {
	f := &forwarding{request: request, proxy: p}
	reverse := &httputil.ReverseProxy{
		Rewrite: func(out *httputil.ProxyRequest) {
			f.rewrite(out, w.Header().Get("Audit-Id"))
			if p.config.Traced {
				tracing.Propagate(r.Context(), out.Out.Header)
			}
		},
		Transport:      seatless{request.Server.RoundTripper(request.Kind), request.Slot},
		BufferPool:     buffers{},
		ErrorLog:       slog.NewLogLogger(p.config.Logger.Handler(), slog.LevelDebug),
		ModifyResponse: func(response *http.Response) error { return f.receive(w, response) },
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			encoding.WriteError(w, r, unreachable(r.Context(), err))
		},
	}
	if request.Ended != nil {
		reverse.FlushInterval = -1
	}
	reverse.ServeHTTP(finalAnswer{w}, r)
	if f.failed != nil && (request.Ended == nil || !request.Ended()) {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
}

// seatless gives the seats of a request back while its server is silent.
type seatless struct {
	transport http.RoundTripper
	slot      *inflight.Slot
}

// RoundTrip implements http.RoundTripper.
func (t seatless) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.slot == nil {
		return t.transport.RoundTrip(r)
	}
	t.slot.BeginWrite()
	response, err := t.transport.RoundTrip(r)
	if e := t.slot.EndWrite(); e != nil && err == nil {
		_ = response.Body.Close() // it is not read
		err = e
	}
	return response, err
}

// rewrite makes the request to the other server: it has the user in headers, and
// nothing by which the client has shown that it is that user.
func (f *forwarding) rewrite(p *httputil.ProxyRequest, auditID string) {
	header := p.Out.Header
	for name := range header {
		if f.proxy.isCredential(name) {
			delete(header, name)
		}
	}
	ui.RemoveCookie(header)
	header.Del(ui.Header)
	header.Del("Expect") // the body is there
	if protocols := header.Values("Sec-Websocket-Protocol"); len(protocols) > 0 {
		authentication.RemoveWebSocketToken(header)
	}
	f.request.Server.SetUser(p.Out, f.request.User)
	p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	p.SetXForwarded()
	header.Set("Audit-Id", auditID)
	header.Add("Via", "1.1 "+f.proxy.config.Via)
	p.Out.URL.RawPath = "" // what was authorized is the decoded path
	p.Out.URL.RawQuery = p.In.URL.Query().Encode()
	p.Out.Host = ""
}

// isCredential reports whether a header says who the client is, or who it wants to be.
func (p *Proxy) isCredential(name string) bool {
	lower := strings.ToLower(name)
	switch {
	case lower == "authorization", strings.HasPrefix(lower, "impersonate-"), strings.HasPrefix(lower, "x-remote-"):
		return true
	}
	h := p.config.RequestHeader
	if h == nil {
		return false
	}
	is := func(other string) bool { return strings.EqualFold(name, other) }
	return slices.ContainsFunc(h.UsernameHeaders, is) || slices.ContainsFunc(h.UIDHeaders, is) || slices.ContainsFunc(h.GroupHeaders, is) ||
		slices.ContainsFunc(h.ExtraHeaderPrefixes, func(prefix string) bool { return strings.HasPrefix(lower, strings.ToLower(prefix)) })
}
