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
	Kind    HolderKind
	Name    string
	Account string // the service account, of a Namespace
}

// whole returns all whose connections are counted together.
func (h Holder) whole() Holder { return Holder{Kind: h.Kind, Name: h.Name} }

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

// refusal is why a user may not hold a connection.
type refusal struct {
	by     Holder
	system bool
	err    error
}

// holdings are the connections of a Holder, those of a namespace's accounts together.
type holdings struct {
	by       Holder
	conns    list.List           // of *Conn, in the order in which they were looked at
	accounts map[string]*account // those that hold some; nil but for a Namespace
}

// account is a service account that holds connections.
type account struct {
	name string
	n    int // how many
}

// Hold has a user hold the connection that no one holds: it is not closed in favor of new
// ones any more. system says that the user is one of the system's own: an administrator, a
// node or a component of the control plane, for which some connections are kept.
//
// If there is none for the user, it gets the place of an idle one: of its own, or of one that
// holds more. An error, which is for the user, says that there is none either, and that the
// connection should be closed after an answer; until then it is one that no user holds. A
// balancer may send requests of others on it: they are not refused for the first user's sake,
// but get no idle connection's place.
func (c *Conn) Hold(by Holder, system bool) error {
	if c == nil {
		return nil
	}
	if r := c.refusal.Load(); r != nil && r.by == by && r.system == system {
		return r.err // or each request on it would look for an idle connection
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
	if c.closed || c.state.Load() == held { // another of its requests was first
		return nil, nil
	}
	if !l.admits(by, system) {
		var victim *Conn
		if c.refusal.Load() == nil {
			victim = l.victim(by, system)
		}
		if victim == nil {
			return nil, l.refuse(c, by, system)
		}
		end = victim.yield()
	}
	c.delist()
	l.enlist(c, by)
	c.system = system
	c.refusal.Store(nil)
	c.state.Store(held)
	return end, nil
}

// refuse notes that a user may not hold the connection, and returns why. What is still under
// way there is an error, which its client may take its time to read. l.mu is held.
func (l *ConnectionLimit) refuse(c *Conn, by Holder, system bool) error {
	err := errors.New(l.reason(by, system))
	if c.refusal.CompareAndSwap(nil, &refusal{by, system, err}) {
		l.throttled++
	}
	c.yielded = false
	return err
}

// reason says to a user why it may not hold one more. l.mu is held.
func (l *ConnectionLimit) reason(by Holder, system bool) string {
	const advice = "close some, or send requests over HTTP/2, where they share a connection"
	n := l.count(by)
	switch left := l.left(by, system); {
	case left > 0:
		return fmt.Sprintf("too many connections of the service account \"%s/%s\": %d of the %d that its namespace may have now are in use, and what is free is kept for others of it: %s",
			by.Name, by.Account, l.holders[by.whole()].countOf(by.Account), n+left, advice)
	case l.limited(by, system) && n >= l.perUser:
		return fmt.Sprintf("too many connections of %s: %d are in use, as many as one user may have (--max-connections-per-user): %s", by, n, advice)
	case n > 0:
		return fmt.Sprintf("too many connections of %s: %d of the %d that may be open (--max-connections) are in use, and what is free is kept for others: %s",
			by, n, l.most, advice)
	}
	return fmt.Sprintf("all of the %d connections that may be open (--max-connections) are in use: try again later", l.most)
}

// count returns how many connections a user holds. l.mu is held.
func (l *ConnectionLimit) count(by Holder) int {
	if h := l.holders[by.whole()]; h != nil {
		return h.conns.Len()
	}
	return 0
}

// countOf returns how many of them an account holds.
func (h *holdings) countOf(name string) int {
	if h != nil && h.accounts[name] != nil {
		return h.accounts[name].n
	}
	return 0
}

// limited reports whether perUser holds for a user.
func (l *ConnectionLimit) limited(by Holder, system bool) bool {
	return l.perUser > 0 && by.Kind != Proxy && !system
}

// capacity returns how many connections users can hold together.
func (l *ConnectionLimit) capacity(system bool) int {
	kept := min(max(l.most/reservedPart, 2), l.most/2)
	if system {
		kept /= 2
	}
	return l.most - kept
}

// few returns how many one of those who share the capacity may hold of what is kept for all
// that hold few.
func few(capacity int) int { return max(1, capacity/fewPart) }

// left returns how many more connections a user may hold now: what it wants until only a part
// is free, and few of that. l.mu is held.
func (l *ConnectionLimit) left(by Holder, system bool) int {
	n := l.count(by)
	left := math.MaxInt - n
	if l.most > 0 {
		capacity := l.capacity(system)
		free := capacity - len(l.held)
		left = min(free, max(few(capacity)-n, free-capacity/openPart))
	}
	if l.limited(by, system) {
		left = min(left, l.perUser-n)
	}
	return left
}

// admits reports whether a user may hold one more. An account may hold of what its namespace
// may as a user may of all: one that holds what it can leaves some to the others. l.mu is held.
func (l *ConnectionLimit) admits(by Holder, system bool) bool {
	left := l.left(by, system)
	if left <= 0 || by.Account == "" {
		return left > 0
	}
	capacity := l.count(by) + left
	return l.holders[by.whole()].countOf(by.Account) < few(capacity) || left > capacity/openPart
}

// enlist has a user hold the connection. l.mu is held.
func (l *ConnectionLimit) enlist(c *Conn, by Holder) {
	h := l.holders[by.whole()]
	if h == nil {
		h = &holdings{by: by.whole()}
		l.holders[h.by] = h
	}
	c.holder, c.account, c.place, c.yielded = h, h.add(by.Account), len(l.held), false
	l.held = append(l.held, c)
	c.enlist(&h.conns)
}

// add counts a connection of an account, if the holder has any.
func (h *holdings) add(name string) *account {
	if name == "" {
		return nil
	}
	a := h.accounts[name]
	if a == nil {
		if h.accounts == nil {
			h.accounts = make(map[string]*account)
		}
		a = &account{name: name}
		h.accounts[name] = a
	}
	a.n++
	return a
}

// remove is the opposite of add. An account that holds none takes no memory.
func (h *holdings) remove(a *account) {
	if a == nil {
		return
	}
	if a.n--; a.n == 0 {
		delete(h.accounts, a.name)
	}
}

// release takes the connection off its list, and from the user that holds it. l.mu is held.
func (l *ConnectionLimit) release(c *Conn) {
	c.delist()
	h := c.holder
	if h == nil {
		return
	}
	h.remove(c.account)
	c.holder, c.account, c.system = nil, nil, false
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
	h := l.holders[by.whole()]
	if h != nil {
		if c := h.idlest(by.Account, system); c != nil && c.claim() {
			return c
		}
	}
	n := l.count(by)
	if l.limited(by, system) && n >= l.perUser || l.left(by, system) > 0 { // only the account may hold no more
		return nil
	}
	if c := l.idleOfMost(h, n, system); c != nil && c.claim() {
		return c
	}
	return nil
}

// idlest returns the connection that has been idle for longest, of the next ones that are
// looked at, or nil. For an account it is its own, or one of an account that has as many
// afterwards; for one that has none, any.
func (h *holdings) idlest(account string, system bool) (found *Conn) {
	n, since := h.countOf(account), int64(math.MaxInt64)
	for range min(maxExamined, h.conns.Len()) {
		e := h.conns.Front()
		h.conns.MoveToBack(e)
		c := e.Value.(*Conn)
		if a := c.account; a != nil && a.name != account && n > 0 && a.n < n+2 {
			continue
		}
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
