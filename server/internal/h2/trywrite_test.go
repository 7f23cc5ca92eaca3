package h2

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

// together is how another goroutine serves a handler's writer.
type together interface {
	Connection() interface{ Push() }
	TryWrite(parts ...[]byte) bool
}

// TestServedTogether has one goroutine write on many streams of a connection.
func TestServedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 100
		writers := make(chan together, streams)
		early := make(chan bool, streams)
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			tw := w.(together)
			early <- tw.TryWrite([]byte("too early"))
			w.(http.Flusher).Flush()
			writers <- tw
			<-r.Context().Done()
		})
		p := f.dial().greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10000})
		must(t, p.framer.WriteWindowUpdate(0, 1<<20))
		var all []together
		for range streams {
			p.open(true, get()...)
			if <-early {
				t.Error("something was written before the header")
			}
			all = append(all, <-writers)
		}
		go func() {
			for _, w := range all {
				if w.Connection() != all[0].Connection() {
					t.Error("not the same connection")
				}
				// The events of all are more than what may wait to be written. If nothing was
				// written meanwhile, Push makes room, which is how the fan-out goes on.
				event := bytes.Repeat([]byte("event"), 600)
				if !w.TryWrite([]byte("an "), nil, event) {
					w.Connection().Push()
					if !w.TryWrite([]byte("an "), nil, event) {
						t.Error("there was no room for an event, although all others are being written")
					}
				}
			}
			if all[3].TryWrite(make([]byte, 7000)) {
				t.Error("more was written than the stream's window allows")
			}
			all[0].Connection().Push()
		}()
		for id, n := range p.takes() {
			if id != 0 && n != 3003 {
				t.Errorf("stream %d got %d bytes", id, n)
			}
		}
		must(t, p.framer.WriteRSTStream(1, http2.ErrCodeCancel))
		synctest.Wait()
		for _, w := range all[1:2] {
			if !w.TryWrite([]byte("x")) {
				t.Error("another stream's end ended this one")
			}
		}
		p.conn.Close()
		synctest.Wait()
		all[2].Connection().Push()
		if all[2].TryWrite([]byte("x")) {
			t.Error("written to a connection that is closed")
		}
	})
}

// TestPushWaitsForRoom fills the output of a connection whose peer does not
// read: Push waits until it does, or until the connection is gone.
func TestPushWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writers := make(chan together, 1)
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			writers <- w.(together)
			<-r.Context().Done()
		})
		p := f.dial().greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		must(t, p.framer.WriteWindowUpdate(0, 1<<20))
		p.open(true, get()...)
		w := <-writers
		fill := func() <-chan bool {
			for w.TryWrite(make([]byte, 32<<10)) {
				synctest.Wait() // a write has begun
			}
			pushed := make(chan bool, 1)
			go func() {
				w.Connection().Push()
				pushed <- w.TryWrite(make([]byte, 32<<10))
			}()
			synctest.Wait()
			if len(pushed) != 0 {
				t.Error("Push returned although there was no room")
			}
			return pushed
		}
		pushed := fill()
		p.takes()
		if room := <-pushed; !room {
			t.Error("there was no room after Push")
		}
		pushed = fill()
		p.conn.Close()
		if room := <-pushed; room {
			t.Error("there was room on a connection that is closed")
		}
	})
}
