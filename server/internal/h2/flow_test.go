package h2

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// endless writes until it cannot.
func endless(w http.ResponseWriter, _ *http.Request) {
	for {
		if _, err := w.Write(make([]byte, 10000)); err != nil {
			return
		}
	}
}

// takes reads DATA frames until nothing comes any more, and returns how many
// bytes came on each stream. It must be called in a bubble.
func (p *peer) takes() map[uint32]int {
	got := make(map[uint32]int)
	for {
		synctest.Wait() // the server has done all that it can
		must(p.t, p.framer.WritePing(false, [8]byte{1}))
		before := got[0]
		for {
			f := p.read()
			if ping, ok := f.(*http2.PingFrame); ok && ping.IsAck() {
				break
			}
			if d, ok := f.(*http2.DataFrame); ok {
				got[d.StreamID] += len(d.Data())
				got[0] += len(d.Data())
			}
		}
		if got[0] == before {
			return got
		}
	}
}

// TestWindowsAreHonoured counts what arrives against what was allowed.
func TestWindowsAreHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, endless)
		p := f.dial().greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 20000})
		want := func(step string, streams ...int) {
			t.Helper()
			got := p.takes()
			for i, n := range streams {
				if id := uint32(2*i + 1); got[id] != n {
					t.Errorf("%s: %d bytes on stream %d, want %d", step, got[id], id, n)
				}
			}
		}
		p.open(true, get()...)
		want("the stream's window", 20000)
		p.open(true, get()...)
		want("another stream's", 0, 20000)
		must(t, p.framer.WriteWindowUpdate(1, 7))
		want("a little more", 7, 0)
		must(t, p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 20005}))
		want("five more for all", 5, 5)
		must(t, p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
		want("windows below zero")
		must(t, p.framer.WriteWindowUpdate(1, 20005+3))
		want("and back", 3, 0)
		must(t, p.framer.WriteWindowUpdate(3, 1<<20))
		const left = frame.DefaultWindow - 2*20005 - 7 - 3
		want("the connection's window", 0, left)
		must(t, p.framer.WriteWindowUpdate(1, 100))
		want("nothing is left of it")
		must(t, p.framer.WriteWindowUpdate(0, 1000))
		if got := p.takes(); got[0] != 1000 || got[1] > 100 {
			t.Errorf("a little more of it: %v", got)
		}
	})
}

// TestFramesAreAsLargeAsAllowed, and not larger.
func TestFramesAreAsLargeAsAllowed(t *testing.T) {
	for _, size := range []uint32{16 << 10, 50000} {
		f := start(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 60000)) })
		p := f.dial().greet(http2.Setting{ID: http2.SettingMaxFrameSize, Val: size})
		p.open(true, get()...)
		largest := uint32(0)
		for {
			frame := p.read()
			if frame.Header().Type == http2.FrameData {
				largest = max(largest, frame.Header().Length)
			}
			if frame.Header().Flags.Has(http2.FlagDataEndStream) {
				break
			}
		}
		if largest != size {
			t.Errorf("allowed %d, used %d", size, largest)
		}
	}
}

// TestLongAnswersDoNotStarveShortOnes has many streams write as much as they
// can while one writes a little at a time, over a connection that is read
// slowly: what is queued before a short message is bounded.
func TestLongAnswersDoNotStarveShortOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long = 8
		next := make(chan struct{})
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/short" {
				endless(w, r)
				return
			}
			for range next {
				io.WriteString(w, "event")
				w.(http.Flusher).Flush()
			}
		})
		p := f.dial().greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: frame.MaxWindow})
		must(t, p.framer.WriteWindowUpdate(0, frame.MaxWindow-frame.DefaultWindow))
		for range long {
			p.open(true, get()...)
		}
		short := p.open(true, ":method", "GET", ":scheme", "https", ":path", "/short")
		synctest.Wait() // everything is full
		shares := make(map[uint32]int)
		for range 20 {
			next <- struct{}{}
			synctest.Wait() // the message is ready, and everything is full again
			before := 0
			for {
				frame := p.read()
				if d, ok := frame.(*http2.DataFrame); ok {
					if d.StreamID == short {
						break
					}
					before += len(d.Data())
					shares[d.StreamID] += len(d.Data())
				}
			}
			// The batch that is being written, the one that waits, and what the
			// network had taken.
			if limit := 2*outputLimit + 64<<10; before > limit {
				t.Errorf("%d bytes were sent before a message that was ready, more than %d", before, limit)
			}
		}
		close(next)
		for id := uint32(1); id < short; id += 2 {
			if shares[id] == 0 {
				t.Errorf("stream %d never had its turn: %v", id, shares)
			}
		}
		p.conn.Close()
	})
}

// TestHeadersWaitInBounds has a client ask and ask for what has no body, and read
// none of the answers.
func TestHeadersWaitInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests, streams = 8000, 1000
		var answers atomic.Int64
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			answers.Add(1)
			w.Header().Set("ETag", strings.Repeat("~", 1000)) // never the same, as far as compression knows
		}, func(o *Options) { o.MaxConcurrentStreams = streams })
		p := f.dial().greet()
		for i := range requests {
			p.open(true, ":method", "HEAD", ":scheme", "https", ":path", "/")
			if i%streams == streams-1 {
				synctest.Wait() // those are answered that can be
			}
		}
		// What is being written, what waits, and one answer of each stream.
		if n := answers.Load(); n > streams+4*outputLimit/1000 {
			t.Errorf("%d answers of more than 1000 bytes were made, and not one was read", n)
		}
		p.conn.Close()
	})
}

// TestBodiesWaitInBounds has clients send more than handlers read.
func TestBodiesWaitInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan int)
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			for n := range read {
				if _, err := io.ReadFull(r.Body, make([]byte, n)); err != nil {
					t.Error(err)
				}
			}
		}, func(o *Options) { o.StreamWindow, o.ConnWindow = 100000, 150000 })
		p := f.dial().greet()
		id := p.open(false, post()...)
		must(t, p.framer.WriteData(id, false, make([]byte, 100000)))
		read <- 49999
		synctest.Wait()
		granted := func() (stream, conn int) {
			must(t, p.framer.WritePing(false, [8]byte{}))
			for {
				switch f := p.read().(type) {
				case *http2.WindowUpdateFrame:
					if f.StreamID == 0 {
						conn += int(f.Increment)
					} else {
						stream += int(f.Increment)
					}
				case *http2.PingFrame:
					if f.IsAck() {
						return
					}
				}
			}
		}
		if s, c := granted(); s != 0 || c != 0 {
			t.Errorf("after little was read: %d and %d", s, c)
		}
		read <- 30001
		synctest.Wait()
		if s, c := granted(); s < 50000 || s > 80000 || c < 75000 || c > 80000 {
			t.Errorf("after 80000 bytes were read, %d and %d were granted", s, c)
		}
		close(read)
		if got := p.outcome(); got.status == "" && got.code != http2.ErrCodeNo {
			t.Errorf("got %+v", got)
		}
		// What the handler did not read is given back to the connection.
		if s, c := granted(); s != 0 || c != 0 {
			t.Errorf("at the end: %d and %d", s, c)
		}
		id = p.open(false, post()...)
		must(t, p.framer.WriteData(id, true, make([]byte, 100000)))
		if got := p.outcome(); got.status != "200" {
			t.Errorf("afterwards: %+v", got)
		}
	})
}

// counted counts how many are running.
func counted(running *atomic.Int64, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		w.Header().Set("X-Running", strconv.FormatInt(running.Load(), 10))
		h(w, r)
	}
}

// TestPaddingIsGivenBack has streams reset for what they sent too much, in frames
// that are mostly padding: the connection's window must not shrink by it.
func TestPaddingIsGivenBack(t *testing.T) {
	f := start(t, readAll, func(o *Options) { o.StreamWindow, o.ConnWindow = 10, 100000 })
	p := f.dial().greet()
	for range 1000 {
		id := p.open(false, post()...)
		must(t, p.framer.WriteDataPadded(id, false, make([]byte, 11), make([]byte, 255)))
		if got := p.outcome(); got != (outcome{code: http2.ErrCodeFlowControl, stream: id}) {
			t.Fatalf("got %+v", got)
		}
	}
}
