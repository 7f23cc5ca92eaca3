package h2

// streamQueue holds the streams that wait for room in the output or in the
// connection's window, first come, first served. A stream that is woken is
// admitted: it takes the room that it needs and wakes the next one if any is left,
// also if it has been given up meanwhile. So while there is room and the queue is
// not empty, one stream is admitted. Only short messages may overtake the queue.
type streamQueue struct{ first, last *stream }

func (q *streamQueue) pushFirst(st *stream) {
	st.queued, st.prev, st.next = true, nil, q.first
	if q.first == nil {
		q.last = st
	} else {
		q.first.prev = st
	}
	q.first = st
}

func (q *streamQueue) push(st *stream) {
	st.queued, st.prev, st.next = true, q.last, nil
	if q.last == nil {
		q.first = st
	} else {
		q.last.next = st
	}
	q.last = st
}

func (q *streamQueue) remove(st *stream) {
	if !st.queued {
		return
	}
	if st.prev == nil {
		q.first = st.next
	} else {
		st.prev.next = st.next
	}
	if st.next == nil {
		q.last = st.prev
	} else {
		st.next.prev = st.prev
	}
	st.queued, st.prev, st.next = false, nil, nil
}

// wakeNext admits the first stream of the queue if there is room. c.mu is held.
func (c *conn) wakeNext() {
	if st := c.out.queue.first; st != nil && c.sendWindow > 0 && c.out.len() < longOutputLimit {
		c.out.queue.remove(st)
		st.admitted = true
		st.canSend.wake()
	}
}
