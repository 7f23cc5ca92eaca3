package relay

import "sync"

// coalesced asks the upstream a question, once for all requests that wait at that moment.
// The answer to a question counts only for requests that came before the question was sent:
// so it is as new as if each of them had asked. The zero value is ready to use.
type coalesced[T any] struct {
	mu     sync.Mutex
	next   *question[T] // that has not been sent; nil if there is none
	asking bool         // a goroutine asks
}

// question is shared by the requests that came before it was sent.
type question[T any] struct {
	done   chan struct{} // closed when there is an answer
	answer T
	err    error
}

// ask returns a question that has not been sent yet, and has it sent by ask, in a goroutine
// that is started by start. All calls must pass the same functions.
func (c *coalesced[T]) ask(start func(func()), ask func() (T, error)) *question[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &question[T]{done: make(chan struct{})}
	}
	q := c.next
	if !c.asking {
		c.asking = true
		start(func() { c.run(ask) })
	}
	return q
}

// run sends questions, one after the other, until there is none.
func (c *coalesced[T]) run(ask func() (T, error)) {
	for {
		c.mu.Lock()
		q := c.next
		c.next, c.asking = nil, q != nil
		c.mu.Unlock()
		if q == nil {
			return
		}
		q.answer, q.err = ask()
		close(q.done)
	}
}
