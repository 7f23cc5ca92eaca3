package h2

// streamQueue holds the streams that wait for room in the output or in the
// connection's window, first come, first served. Whoever is woken takes what he
// needs and wakes the next if anything is left; so does one who has given up
// meanwhile. So while there is room and somebody waits, somebody is on his way,
// and nobody may overtake those who wait but short messages.
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

// wakeNext lets the first of those who wait go on if he can. c.mu is held.
func (c *conn) wakeNext() {
	if st := c.out.queue.first; st != nil && c.sendWindow > 0 && c.out.len() < longLimit {
		c.out.queue.remove(st)
		st.turn = true
		st.canSend.wake()
	}
}
