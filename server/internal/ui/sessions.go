package ui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/auth"
)

const (
	// Header is what requests with a session's cookie must have: its value is the session's
	// key, which the page keeps where only its own origin can read it. Browsers send cookies
	// to all ports of a host, so another program on the machine may see the cookie, or set
	// one of its own session; it gets nowhere without the key. A page of another origin
	// would have to ask for leave to send the header, and gets none.
	Header = "Levelwire-Ui"

	// cookiePrefix is followed by the port, so that the pages of several servers on a machine
	// do not end each other's sessions.
	cookiePrefix = "__Host-levelwire-ui-"
	// tokenPrefix is what the tokens of sessions begin with, so that no other authenticator
	// is asked about them. UI.key follows, which no client has: a client that sends the
	// content of a cookie as a token is refused.
	tokenPrefix = "levelwire-ui."

	linkLifetime = time.Hour
	// sessionLifetime is how long a session lasts that the server's operator began, and
	// lentLifetime one that another user began: it does not end with that user's token.
	sessionLifetime = 12 * time.Hour
	lentLifetime    = time.Hour
	// maxSecrets bounds the links, and the sessions, that are open; one more ends the oldest.
	maxSecrets = 100
)

// secrets are links that have not been used, or open sessions. Only hashes are kept.
type secrets struct {
	now func() time.Time

	mu   sync.Mutex
	open map[[sha256.Size]byte]grant
}

// grant is whom a secret stands for.
type grant struct {
	user    auth.User
	expires time.Time
	session time.Duration // of a link: how long its session lasts
}

func newSecrets(now func() time.Time) *secrets {
	return &secrets{now: now, open: map[[sha256.Size]byte]grant{}}
}

// issue returns a new secret for a user. If there are too many, the oldest of the user that has
// the most of them ends: one user cannot end the secrets of others.
func (s *secrets) issue(user auth.User, lifetime, session time.Duration) string {
	secret := rand.Text()
	s.add(secret, user, lifetime, session)
	return secret
}

// add is issue of a given secret.
func (s *secrets) add(secret string, user auth.User, lifetime, session time.Duration) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSecrets {
		s.evict(now)
	}
	s.open[sha256.Sum256([]byte(secret))] = grant{user, now.Add(lifetime), session}
}

// evict ends the secrets whose time is over, and one more. The lock is held.
func (s *secrets) evict(now time.Time) {
	of := map[string]int{}
	most := ""
	for hash, g := range s.open {
		if now.After(g.expires) {
			delete(s.open, hash)
		} else if of[g.user.Name]++; of[g.user.Name] > of[most] {
			most = g.user.Name
		}
	}
	var oldest [sha256.Size]byte
	var expires time.Time
	for hash, g := range s.open {
		if g.user.Name == most && (expires.IsZero() || g.expires.Before(expires)) {
			oldest, expires = hash, g.expires
		}
	}
	delete(s.open, oldest)
}

// find returns whom a secret stands for; take ends it.
func (s *secrets) find(secret string, take bool) (grant, bool) {
	hash := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.open[hash]
	if ok && s.now().After(g.expires) {
		delete(s.open, hash)
		return grant{}, false
	}
	if take {
		delete(s.open, hash)
	}
	return g, ok
}

// Link returns the secret of a new one-time link for a user: /ui/#link=SECRET.
func (u *UI) Link(user auth.User) string { return u.links.issue(user, linkLifetime, sessionLifetime) }

// AuthenticateToken implements auth.TokenAuthenticator for the tokens that Identify makes.
func (u *UI) AuthenticateToken(_ context.Context, token string, _ []string) (auth.Identity, error) {
	if len(token) < len(tokenPrefix) || token[:len(tokenPrefix)] != tokenPrefix {
		return auth.Identity{}, auth.ErrUnknownToken
	}
	secret, ok := strings.CutPrefix(token[len(tokenPrefix):], u.key)
	if !ok {
		return auth.Identity{}, errNoSession
	}
	session, ok := u.sessions.find(secret, false)
	if !ok {
		return auth.Identity{}, errNoSession
	}
	return auth.Identity{User: session.user}, nil
}

// Identify makes a request that has the cookie of a session one with a bearer token. A request
// with other credentials, without the Header, or from another machine stays as it is.
func (u *UI) Identify(r *http.Request) {
	if r.Header.Get("Cookie") == "" || r.Header.Get("Authorization") != "" || !trusted(r) {
		return
	}
	if secret := sessionOf(r); secret != "" {
		r.Header.Set("Authorization", "Bearer "+tokenPrefix+u.key+secret)
	}
}

// cookieName returns the name of the cookie of sessions with the server that a request names.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if number, e := strconv.ParseUint(port, 10, 16); err == nil && e == nil {
		return cookiePrefix + strconv.FormatUint(number, 10)
	}
	return cookiePrefix + "443" // as browsers leave it out
}

// sessionOf returns the secret of the session of a request, of the cookie and the key; "" if it has
// no cookie.
func sessionOf(r *http.Request) string {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return cookie.Value + "." + r.Header.Get(Header)
}

// RemoveCookie removes the cookies of sessions from the headers of a request that is passed on to
// another server, which could sign in with it. Other cookies stay.
func RemoveCookie(header http.Header) {
	lines := header["Cookie"]
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, cookiePrefix) }) {
		return
	}
	header.Del("Cookie")
	for _, line := range lines {
		var kept []string
		for part := range strings.SplitSeq(line, ";") {
			if name, _, _ := strings.Cut(part, "="); !strings.HasPrefix(strings.TrimSpace(name), cookiePrefix) {
				kept = append(kept, part)
			}
		}
		if rest := strings.TrimSpace(strings.Join(kept, ";")); rest != "" {
			header.Add("Cookie", rest)
		}
	}
}

// trusted reports whether a request may use or begin a session.
func trusted(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	return r.Header.Get(Header) != "" && local(r.RemoteAddr)
}

// local reports whether an address with a port is of this machine.
func local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}
