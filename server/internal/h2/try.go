package h2

import "net/http"

// takeFrom is from how many bytes on what TryWrite has collected begins to be
// written, so that there is room for the rest.
const takeFrom = outputLimit / 2

// Connection returns what is the same for all answers on one connection, for
// those who write many of them with TryWrite. Its Push sends what they have
// written; it blocks while the peer does not read from the connection, and of an
// error the next write of each answer learns. Push may be called at any time.
func (w *response) Connection() interface{ Push() } { return w.st.conn }

// TryWrite is WriteBuffers if all of it can be sent without waiting, neither for
// the windows nor for other streams. Otherwise it is false, and nothing has
// been written. It does not wait for sending: Push does, or whoever writes next. Header
// fields must have been flushed before. Unlike other methods it need not be
// called by the handler's goroutine, as long as that lets only one goroutine at
// a time use the answer.
func (w *response) TryWrite(list ...[]byte) bool {
	if !w.sent || w.stage != nil || w.length >= 0 || w.method == http.MethodHead || !bodyAllowed(w.code) {
		return false
	}
	p := join(list...)
	n := p.left
	c := w.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.st.err != nil || w.st.room(n) < n {
		return false
	}
	w.st.appendData(&p, n, false)
	w.wrote += int64(n)
	if c.out.len() >= takeFrom {
		c.writeSoon()
	}
	return true
}

// Push sends what has been appended. If somebody else is writing, it waits until
// he has taken it, and so made room: to let each of many streams wait for
// itself, as they have to when TryWrite fails, costs much more.
func (c *conn) Push() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waitBelow(1)
}
