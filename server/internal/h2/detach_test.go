package h2

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/internal/testwait"
)

// detachable is what a handler uses that returns before its answer is complete.
type detachable interface {
	together
	Detach(watcher interface{ Gone() }) bool
	End(complete bool)
}

// goneOnce counts calls of Gone.
type goneOnce chan struct{}

func (g goneOnce) Gone() { g <- struct{}{} }

// handlersRunning is how many goroutines run handlers, or what is around them.
func handlersRunning() int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "h2.(*stream).serve(")
}

// TestDetach has handlers return, and other goroutines complete their answers, break them
// off, or be told that the client has gone.
func TestDetach(t *testing.T) {
	const streams = 50
	writers, gone := make(chan detachable, streams), make(goneOnce, streams)
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		answer := w.(detachable)
		if answer.Detach(gone) {
			t.Error("detached before the header was flushed")
		}
		w.Header().Set("X-Kept", "yes")
		w.(http.Flusher).Flush()
		if !answer.Detach(gone) {
			t.Error("not detached")
		}
		writers <- answer
	})
	p := f.dial().greet()
	byStream := map[uint32]detachable{}
	for range streams {
		id := p.next
		p.open(true, get()...)
		byStream[id] = <-writers
	}
	testwait.Stable(t, "the handlers that have called Detach return", func() (any, bool) { n := handlersRunning(); return n, n == 0 })
	if !byStream[1].TryWrite([]byte("late")) {
		t.Error("nothing can be written after the handler has returned")
	}
	byStream[1].End(true)
	byStream[3].End(false)
	must(t, p.framer.WriteRSTStream(5, http2.ErrCodeCancel))
	<-gone
	byStream[5].End(true)
	ended := map[uint32]string{}
	data := ""
	for len(ended) < 2 {
		read, err := p.framer.ReadFrame()
		must(t, err)
		switch read := read.(type) {
		case *http2.DataFrame:
			data += string(read.Data())
			if read.StreamEnded() {
				ended[read.StreamID] = "complete"
			}
		case *http2.RSTStreamFrame:
			ended[read.StreamID] = read.ErrCode.String()
		}
	}
	if data != "late" || ended[1] != "complete" || ended[3] != "INTERNAL_ERROR" {
		t.Errorf("got %q, ends %v", data, ended)
	}
	p.conn.Close()
	for range streams - 3 {
		<-gone // all of them, since an answer that ends before is not told
	}
	for id, answer := range byStream {
		if id > 5 {
			answer.End(true)
		}
	}
	f.conns.Wait() // the connection waits for the answers that are not complete
	if len(gone) != 0 {
		t.Error("an answer that had ended was told that the client has gone")
	}
}

// TestDetachAndPanic has a handler panic after it has detached: its client sees a reset, the
// watcher is told, and the answer ends once.
func TestDetachAndPanic(t *testing.T) {
	gone, writers := make(goneOnce, 1), make(chan detachable, 1)
	f := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		w.(detachable).Detach(gone)
		writers <- w.(detachable)
		panic("after the end")
	})
	p := f.dial().greet()
	p.open(true, get()...)
	<-gone
	(<-writers).End(true)
	for {
		read, err := p.framer.ReadFrame()
		must(t, err)
		if reset, ok := read.(*http2.RSTStreamFrame); ok {
			if reset.ErrCode != http2.ErrCodeInternal {
				t.Errorf("reset with %v", reset.ErrCode)
			}
			break
		}
	}
	p.conn.Close()
}
