// Package pagetoken finds continue tokens that come around again, so that no list has
// pages for ever.
package pagetoken

// Cycle sees the continue tokens of one list. It holds two of them, however many there are. A
// token that stays is found at once, and another cycle when the list has gone through it, and
// what was before it, three times at most (Brent's algorithm). The zero value has seen none. It is for one
// goroutine at a time.
type Cycle struct {
	last, held    string
	seen, holdsTo int // tokens
}

// Closes notes a token that leads to another page. It reports whether the list is known to
// have led there before.
func (c *Cycle) Closes(token string) bool {
	if c.seen > 0 && (token == c.held || token == c.last) {
		return true
	}
	c.last = token
	if c.seen++; c.seen > c.holdsTo {
		c.held, c.holdsTo = token, 2*c.holdsTo+1
	}
	return false
}
