package authentication

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
)

// RequestHeader accepts the user that a proxy in front of the server names in headers
// ("authenticating proxy" in Kubernetes' documentation). The proxy proves by a client
// certificate that it is one.
type RequestHeader struct {
	// CAs certify proxies. Required.
	CAs *Authorities
	// AllowedNames are the common names of certificates that are proxies'. None: all that
	// CAs have certified.
	AllowedNames []string
	// UsernameHeaders and UIDHeaders name the headers of the name and the uid of the
	// user: the first that is there counts.
	UsernameHeaders, UIDHeaders []string
	// GroupHeaders name the headers of groups: all values of all of them count.
	GroupHeaders []string
	// ExtraHeaderPrefixes begin the names of headers with further information. The rest
	// of the name is the key, in lower case and percent-encoded.
	ExtraHeaderPrefixes []string
}

// user returns the user that the headers of a proxy's request name; ok is false if the
// request is not a proxy's, or names none.
func (h *RequestHeader) user(r *http.Request, now time.Time) (user auth.User, ok bool) {
	if _, ok := h.proxy(r, now); !ok {
		return auth.User{}, false
	}
	user.Name = firstValue(r.Header, h.UsernameHeaders)
	user.UID = firstValue(r.Header, h.UIDHeaders)
	for _, name := range h.GroupHeaders {
		for _, group := range r.Header.Values(name) {
			if group != "" {
				user.Groups = append(user.Groups, group)
			}
		}
	}
	user.Extra = h.extra(r.Header)
	if user.Name == auth.Anonymous || user.In(auth.Unauthenticated) {
		return user, true // the proxy says that it does not know its client
	}
	return user.AsAuthenticated(), true
}

// proxy returns the common name of the proxy that names a user in the headers of a request.
func (h *RequestHeader) proxy(r *http.Request, now time.Time) (name string, ok bool) {
	if h == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || firstValue(r.Header, h.UsernameHeaders) == "" {
		return "", false
	}
	return h.proxyOf(r.TLS, now)
}

// isProxy reports whether the client of a connection has the certificate of a proxy.
func (h *RequestHeader) isProxy(connection *tls.ConnectionState, now time.Time) bool {
	_, ok := h.proxyOf(connection, now)
	return ok
}

// proxyOf returns the common name in the certificate of a connection's client, if that is a
// proxy's.
func (h *RequestHeader) proxyOf(connection *tls.ConnectionState, now time.Time) (name string, ok bool) {
	proxy, err := h.CAs.current.Load().user(connection, now)
	if err != nil || len(h.AllowedNames) > 0 && !slices.Contains(h.AllowedNames, proxy.Name) {
		return "", false
	}
	return proxy.Name, true
}

func firstValue(header http.Header, names []string) string {
	for _, name := range names {
		if value := header.Get(name); value != "" {
			return value
		}
	}
	return ""
}

func (h *RequestHeader) extra(header http.Header) map[string][]string {
	var extra map[string][]string
	for _, prefix := range h.ExtraHeaderPrefixes {
		for name, values := range header {
			if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
				continue
			}
			key := strings.ToLower(name[len(prefix):])
			if decoded, err := url.PathUnescape(key); err == nil {
				key = decoded
			}
			if extra == nil {
				extra = map[string][]string{}
			}
			extra[key] = append(extra[key], values...)
		}
	}
	return extra
}

// ProxyOf returns the name of the proxy that has named the user of an authenticated request;
// ok is false if none has.
func (a *Authenticator) ProxyOf(r *http.Request) (name string, ok bool) {
	return a.config.RequestHeader.proxy(r, time.Now())
}

// acceptable returns the authorities of all certificates that the server has a use for:
// those of users and of proxies.
func (a *Authenticator) acceptable() (users, proxies *verifier) {
	if a.config.ClientCAs != nil {
		users = a.config.ClientCAs.current.Load()
	}
	if a.config.RequestHeader != nil {
		proxies = a.config.RequestHeader.CAs.current.Load()
	}
	return users, proxies
}

// ClientCAs returns the authorities whose certificates clients may use now, for the names
// that the server sends in a TLS handshake; nil if it accepts no certificate. The result
// is the same value until they are replaced, and must not be modified.
func (a *Authenticator) ClientCAs() *x509.CertPool {
	users, proxies := a.acceptable()
	switch {
	case users == nil && proxies == nil:
		return nil
	case proxies == nil:
		return users.roots
	case users == nil:
		return proxies.roots
	}
	if made := a.pool.Load(); made != nil && made.users == users && made.proxies == proxies {
		return made.both
	}
	made := &acceptablePool{users: users, proxies: proxies, both: x509.NewCertPool()}
	for _, v := range []*verifier{users, proxies} {
		for _, c := range v.certificates {
			made.both.AddCert(c)
		}
	}
	a.pool.Store(made)
	return made.both
}

// acceptablePool is the pool of two sets of authorities.
type acceptablePool struct {
	users, proxies *verifier
	both           *x509.CertPool
}
