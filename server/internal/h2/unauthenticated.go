package h2

import (
	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// Unauthenticated are the limits of connections until a handler has called
// Authenticated on one of their answers: until then nothing is known of the client but
// that it can connect.
type Unauthenticated struct {
	// MaxConcurrentStreams is how many requests such a connection may have under way;
	// 100 by default, which is what clients expect before they know the limit.
	MaxConcurrentStreams int
	// MaxBytes is about how much memory the requests of all such connections may take;
	// 64 MB by default. Beyond it a connection that has requests under way gets no
	// more, and for the first request of another one, that which takes most is closed:
	// a client that can say who it is needs little, and not for long.
	MaxBytes int64
}

func (u *Unauthenticated) setDefaults() {
	setDefault(&u.MaxConcurrentStreams, 100)
	setDefault(&u.MaxBytes, 64<<20)
}

const (
	// streamCost is about what a request takes beside its fields: a goroutine with its
	// stack, the stream, the http.Request.
	streamCost = 8 << 10
	// fieldFactor is how much more header fields take, at worst, than RFC 9113 counts
	// for them: small ones are entries of a map with slices of their own.
	fieldFactor = 4
	// certificateFactor is how much more the certificates of a client take than their
	// encoding.
	certificateFactor = 3
)

// Authenticated lifts the limits of Options.Unauthenticated from the connection: the
// client has said who it is.
func (w *response) Authenticated() {
	if c := w.st.conn; !c.authenticated.Load() {
		c.authenticate()
	}
}

func (c *conn) authenticate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.mu.Lock()
	first := c.authenticated.CompareAndSwap(false, true)
	c.server.hold(c, -c.held)
	c.server.mu.Unlock()
	if !first || c.err != nil {
		return
	}
	o := &c.server.options
	c.maxStreams = o.MaxConcurrentStreams
	b := c.out.open()
	*b = frame.AppendSettings(*b,
		http2.Setting{ID: http2.SettingHeaderTableSize, Val: headerTable},
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.maxStreams)},
	)
	if more := int64(o.ConnWindow) - c.connWindow; more > 0 {
		*b = frame.AppendWindowUpdate(*b, 0, more)
		c.recvWindow += more
		c.connWindow += more
	}
	c.writeSoon()
}

// charge counts n more bytes that a connection takes while its client is not
// authenticated. It returns false if they are too many. If evict is set, and the
// connection has no requests yet, it makes room; c.mu must not be held then.
func (c *conn) charge(n int64, evict bool) bool {
	if n <= 0 || c.authenticated.Load() {
		return true
	}
	s := c.server
	most := s.options.Unauthenticated.MaxBytes
	var victims []*conn
	s.mu.Lock()
	for evict && c.held <= c.base && s.heldBytes+n > most {
		largest := s.largest()
		if largest == nil || largest == c {
			break
		}
		s.hold(largest, -largest.held)
		largest.evicted = true
		victims = append(victims, largest)
	}
	ok := !c.evicted && s.heldBytes+n <= most
	if ok && !c.authenticated.Load() { // it may just have been: then nothing counts any more
		s.hold(c, n)
	}
	s.mu.Unlock()
	for _, victim := range victims {
		s.options.Logger.Debug("HTTP/2 connection closed: without having said who it is, its client made the server hold most", "remote", victim.remote)
		victim.mu.Lock()
		victim.fail(errEvicted)
		victim.mu.Unlock()
	}
	return ok
}

// certificateCost is about what the certificates take that the client has sent.
func (c *conn) certificateCost() (cost int64) {
	for _, certificate := range c.state.PeerCertificates {
		cost += certificateFactor * int64(len(certificate.Raw))
	}
	return cost
}

// discharge takes back what charge has counted. c.mu may be held.
func (c *conn) discharge(n int64) {
	if n <= 0 || c.authenticated.Load() {
		return
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	n = min(n, c.held) // nothing is held any more if the client is authenticated, or the connection was closed
	c.server.hold(c, -n)
}

// HeldBytes returns about how much memory the requests of connections take whose
// clients are not authenticated.
func (s *Server) HeldBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heldBytes
}

// settingsAcked follows the client's acknowledgement of SETTINGS: with the first, the
// client has emptied its compression table, if it was asked to. Only the reading
// goroutine calls it.
func (c *conn) settingsAcked() {
	if c.server.options.Unauthenticated == nil || c.shrunk {
		return
	}
	c.shrunk = true
	c.decoder.SetMaxDynamicTableSize(0)
	if !c.authenticated.Load() {
		c.decoder.SetAllowedMaxDynamicTableSize(0)
	}
}

// allowTable lets the client of an authenticated connection use a compression table
// again. Only the reading goroutine calls it, before it decodes fields.
func (c *conn) allowTable() {
	if c.shrunk && !c.regrown && c.authenticated.Load() {
		c.regrown = true
		c.decoder.SetAllowedMaxDynamicTableSize(headerTable)
	}
}
