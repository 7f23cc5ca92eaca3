package h2

// Detach lets the handler return before its answer is complete: an answer for which
// nothing comes needs no goroutine, and no stack. The header fields must have been flushed;
// they are dropped, and so is what Header returns. If Detach returns true, the handler must
// return without another use of the writer or the request's body. From then on any one
// goroutine at a time may use the writer, until it calls End. If Detach returns false,
// because the client is gone or because nothing was flushed, nothing has changed.
//
// watcher is told when the stream ends before End is called, once, because the client has
// reset it or the connection is lost; End must be called nevertheless. Gone is called with
// locks held: it must not block, nor use the writer.
func (w *response) Detach(watcher interface{ Gone() }) bool {
	st := w.st
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.err != nil || !w.sent || w.stage != nil {
		return false
	}
	st.detached, st.watcher = true, watcher
	w.header = nil
	return true
}

// End ends the answer of a handler that has called Detach; complete says whether all of it
// was written, otherwise the stream is reset. It may block while the client does not read.
func (w *response) End(complete bool) { w.st.end(complete) }
