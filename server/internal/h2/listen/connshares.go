package listen

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

const (
	// reservedPart is which part of all connections users leave to others: half of it to
	// clients that have yet to say who they are, half to the system's own users.
	reservedPart = 8
	// openPart is which part of the rest is only for users that hold few: fewPart of it each.
	// So one user can have three quarters, and 26 would have to want all that they may before
	// the next one finds none.
	openPart = 4
	fewPart  = 100
	// maxExamined is how many connections are looked at in one search for an idle one.
	maxExamined = 64
)

// HolderKind says what a Holder is.
type HolderKind int

// The kinds of holders.
const (
	User      HolderKind = iota
	Proxy                // one that names users: the connections are its own
	Namespace            // all its service accounts: whoever may make one may make a hundred
)

// Holder is who holds a connection, by its first request that is authenticated.
type Holder struct {
	Kind HolderKind
	Name string
}

// String returns the holder's name for messages.
func (h Holder) String() string {
	switch h.Kind {
	case Proxy:
		return fmt.Sprintf("the proxy %q", h.Name)
	case Namespace:
		return fmt.Sprintf("the service accounts of the namespace %q", h.Name)
	}
	return fmt.Sprintf("the user %q", h.Name)
}

// holdings are the connections of a Holder.
type holdings struct {
	by    Holder
	conns list.List // of *Conn, in the order in which they were looked at
}

// Hold has a user hold the connection that no one holds: it is not closed in favor of new
// ones any more. system says that the user is one of the system's own: an administrator, a
// node or a component of the control plane, for which some connections are kept.
//
// If there is none for the user, it gets the place of an idle one: of its own, or of one that
// holds more. An error, which is for the user, says that there is none either, and that the
// connection should be closed after an answer; until then it is one that no user holds.
func (c *Conn) Hold(by Holder, system bool) error {
	switch {
	case c == nil:
		return nil
	case c.state.Load() == refused:
		return c.refusal // or each request on it would look for an idle connection
	}
	l := c.limit
	l.mu.Lock()
	end, err := l.hold(c, by, system)
	log, total := err != nil && l.throttledLog.due(), l.throttled
	l.mu.Unlock()
	if end != nil {
		end()
	}
	if log {
		l.logger.Warn("connections are refused to users", "error", err, "refused", total, "last", c.RemoteAddr().String())
	}
	return err
}

// hold is Hold. end asks the client of a connection that was given up to use another one.
// l.mu is held.
func (l *ConnectionLimit) hold(c *Conn, by Holder, system bool) (end func(), err error) {
	switch state := c.state.Load(); {
	case c.closed, state == held: // another of its requests was first
		return nil, nil
	case state == refused:
		return nil, c.refusal
	}
	if !l.admits(by, l.count(by), system) {
		victim := l.victim(by, system)
		if victim == nil {
			return nil, l.refuse(c, by, system)
		}
		end = victim.yield()
	}
	c.delist()
	l.enlist(c, by)
	c.system = system
	c.state.Store(held)
	return end, nil
}

// refuse notes that a user may not hold the connection, and returns why. What is still under
// way there is an error, which its client may take its time to read. l.mu is held.
func (l *ConnectionLimit) refuse(c *Conn, by Holder, system bool) error {
	l.throttled++
	c.refusal = errors.New(l.reason(by, system))
	c.state.Store(refused)
	c.yielded = false
	return c.refusal
}

// reason says to a user why it may not hold one more. l.mu is held.
func (l *ConnectionLimit) reason(by Holder, system bool) string {
	const advice = "close some, or send requests over HTTP/2, where they share a connection"
	n := l.count(by)
	switch {
	case l.overLimit(by, n, system):
		return fmt.Sprintf("too many connections of %s: %d are in use, as many as one user may have (--max-connections-per-user): %s", by, n, advice)
	case n > 0:
		return fmt.Sprintf("too many connections of %s: %d of the %d that may be open (--max-connections) are in use, and what is free is kept for others: %s",
			by, n, l.most, advice)
	}
	return fmt.Sprintf("all of the %d connections that may be open (--max-connections) are in use: try again later", l.most)
}

// count returns how many connections a user holds. l.mu is held.
func (l *ConnectionLimit) count(by Holder) int {
	if h := l.holders[by]; h != nil {
		return h.conns.Len()
	}
	return 0
}

// overLimit reports whether a user that holds n has as many as one user may. l.mu is held.
func (l *ConnectionLimit) overLimit(by Holder, n int, system bool) bool {
	return l.perUser > 0 && n >= l.perUser && by.Kind != Proxy && !system
}

// capacity returns how many connections users can hold together.
func (l *ConnectionLimit) capacity(system bool) int {
	kept := min(max(l.most/reservedPart, 2), l.most/2)
	if system {
		kept /= 2
	}
	return l.most - kept
}

// admits reports whether a user that holds n may hold one more. l.mu is held.
func (l *ConnectionLimit) admits(by Holder, n int, system bool) bool {
	if l.overLimit(by, n, system) {
		return false
	}
	if l.most <= 0 {
		return true
	}
	capacity := l.capacity(system)
	free := capacity - len(l.held) - 1
	return free >= 0 && (n+1 <= max(1, capacity/fewPart) || free >= capacity/openPart)
}

// enlist has a user hold the connection. l.mu is held.
func (l *ConnectionLimit) enlist(c *Conn, by Holder) {
	h := l.holders[by]
	if h == nil {
		h = &holdings{by: by}
		l.holders[by] = h
	}
	c.holder, c.place, c.yielded = h, len(l.held), false
	l.held = append(l.held, c)
	c.enlist(&h.conns)
}

// release takes the connection off its list, and from the user that holds it. l.mu is held.
func (l *ConnectionLimit) release(c *Conn) {
	c.delist()
	h := c.holder
	if h == nil {
		return
	}
	c.holder, c.system = nil, false
	if h.conns.Len() == 0 {
		delete(l.holders, h.by)
	}
	last := len(l.held) - 1
	l.held[c.place] = l.held[last]
	l.held[c.place].place = c.place
	l.held[last] = nil
	l.held = l.held[:last]
}

// victim returns an idle connection for a user that can have no other, or nil. It has no
// request any more, nor will it have one for its user without another Hold. l.mu is held.
func (l *ConnectionLimit) victim(by Holder, system bool) *Conn {
	h, n := l.holders[by], l.count(by)
	if h != nil {
		if c := h.idlest(system); c != nil && c.claim() {
			return c
		}
	}
	if l.overLimit(by, n, system) {
		return nil
	}
	if c := l.idleOfMost(h, n, system); c != nil && c.claim() {
		return c
	}
	return nil
}

// idlest returns the connection that has been idle for longest, of the next ones that are
// looked at, or nil.
func (h *holdings) idlest(system bool) (found *Conn) {
	since := int64(math.MaxInt64)
	for range min(maxExamined, h.conns.Len()) {
		e := h.conns.Front()
		h.conns.MoveToBack(e)
		c := e.Value.(*Conn)
		if idle := c.idleSince.Load(); idle > 0 && idle < since && c.availableTo(system) {
			found, since = c, idle
		}
	}
	return found
}

// idleOfMost returns an idle connection of another user than h, which holds n: that of the
// user with most, of those that are looked at. Such a user has still as many as h afterwards,
// unless h has none: then it may be any. l.mu is held.
func (l *ConnectionLimit) idleOfMost(h *holdings, n int, system bool) (found *Conn) {
	least, since := 0, int64(math.MaxInt64)
	if n > 0 {
		least = n + 2
	}
	for i := range min(maxExamined, len(l.held)) {
		if len(l.held) > maxExamined {
			i = rand.IntN(len(l.held))
		}
		c := l.held[i]
		idle, has := c.idleSince.Load(), c.holder.conns.Len()
		if idle <= 0 || c.holder == h || !c.availableTo(system) || has < least || has == least && idle >= since {
			continue
		}
		found, least, since = c, has, idle
	}
	return found
}

// availableTo reports whether the connection may be given up for a user: what is kept for
// the system's users is for them only.
func (c *Conn) availableTo(system bool) bool { return system || !c.system }

// The values of idleSince that are no time.
const (
	busy    = 0
	claimed = -1 // given up, and no request has come since
)

// claim has the connection be held by no one, unless there is a request on it. limit.mu is
// held.
func (c *Conn) claim() bool {
	c.state.Store(unheld) // first, so that a request that comes after the swap asks for Hold
	if since := c.idleSince.Load(); since > 0 && c.idleSince.CompareAndSwap(since, claimed) {
		return true
	}
	c.state.Store(held)
	return false
}

// yield takes the connection, which claim has claimed, from its user. end closes it, or asks
// the client to use another one and serves what comes before it has heard that. limit.mu is
// held.
func (c *Conn) yield() (end func()) {
	l := c.limit
	l.release(c)
	l.yielded++
	c.yielded = true
	c.enlist(&l.unheld)
	if c.drain != nil {
		return c.drain
	}
	return func() { _ = c.Close() } // as when it had been idle for too long
}

// OnYield has f called when the connection is taken from its user because it is idle, to ask
// the client to use another one and to close it then. f is called without locks.
func (c *Conn) OnYield(f func()) {
	if c != nil {
		c.limit.mu.Lock()
		defer c.limit.mu.Unlock()
		c.drain = f
	}
}

// Held reports whether a user holds the connection.
func (c *Conn) Held() bool { return c == nil || c.state.Load() == held }

// Busy notes that there is a request on the connection.
func (c *Conn) Busy() {
	if c != nil {
		c.idleSince.Store(busy)
	}
}

// Idle notes since when there is none.
func (c *Conn) Idle(since time.Time) {
	if c != nil {
		c.idleSince.Store(since.UnixNano())
	}
}

// NoteState is a ConnState of http.Server, for the connections that it serves itself.
func (l *ConnectionLimit) NoteState(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive, http.StateHijacked:
		counted(conn).Busy()
	case http.StateIdle:
		counted(conn).Idle(time.Now())
	}
}

// InUse returns how many connections users hold.
func (l *ConnectionLimit) InUse() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.held))
}

// Capacity returns how many connections users can hold together, the system's own among them.
func (l *ConnectionLimit) Capacity() int64 {
	if l.most <= 0 {
		return math.MaxInt64
	}
	return int64(l.capacity(true))
}

// Throttled returns how many connections were refused to users.
func (l *ConnectionLimit) Throttled() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.throttled
}

// YieldedTotal returns how many idle connections were given up for users that could have no
// other.
func (l *ConnectionLimit) YieldedTotal() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.yielded
}
