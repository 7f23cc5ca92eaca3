package h2

import "container/heap"

// holders are the connections that hold bytes of the budget of clients that are not
// authenticated, as a heap: that which holds most is the first. There may be tens of
// thousands, and each request of any of them moves one, so all of it is logarithmic.
// Server.mu guards it.
type holders []*conn

// Len implements heap.Interface.
func (h holders) Len() int { return len(h) }

// Less implements heap.Interface.
func (h holders) Less(i, j int) bool { return h[i].held > h[j].held }

// Swap implements heap.Interface.
func (h holders) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *holders) Push(c any) {
	c.(*conn).place = len(*h)
	*h = append(*h, c.(*conn))
}

// Pop implements heap.Interface.
func (h *holders) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}

// hold changes by n what a connection holds. s.mu is held.
func (s *Server) hold(c *conn, n int64) {
	before := c.held
	c.held += n
	s.heldBytes += n
	switch {
	case before == 0 && c.held > 0:
		heap.Push(&s.holders, c)
	case before > 0 && c.held == 0:
		heap.Remove(&s.holders, c.place)
	case before != c.held:
		heap.Fix(&s.holders, c.place)
	}
}

// largest returns the connection that holds most; nil if none holds anything. s.mu is
// held.
func (s *Server) largest() *conn {
	if len(s.holders) == 0 {
		return nil
	}
	return s.holders[0]
}
