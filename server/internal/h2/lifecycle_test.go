package h2

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// ends reads until the connection is closed, answers pings if it is to, and
// returns after which time and what the last GOAWAY said.
func (p *peer) ends(answer bool) (after time.Duration, last *http2.GoAwayFrame) {
	p.t.Helper()
	began := time.Now()
	for {
		frame, err := p.framer.ReadFrame()
		if err != nil {
			return time.Since(began), last
		}
		switch f := frame.(type) {
		case *http2.GoAwayFrame:
			goAway := *f
			last = &goAway
		case *http2.PingFrame:
			if answer && !f.IsAck() {
				_ = p.framer.WritePing(true, f.Data) // the test may have closed its side
			}
		}
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, readAll, func(o *Options) { o.IdleTimeout = time.Minute })
		p := f.dial().greet()
		p.open(true, get()...)
		p.outcome()
		after, last := p.ends(true)
		if after < time.Minute || after > 2*time.Minute || last == nil || last.ErrCode != http2.ErrCodeNo || last.LastStreamID != 1 {
			t.Errorf("closed after %v with %+v", after, last)
		}
	})
}

func TestSilentConnectionsArePinged(t *testing.T) {
	waiting := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, answers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := startInMemory(t, waiting, func(o *Options) { o.PingAfter, o.PingTimeout = 10*time.Second, 5*time.Second })
			p := f.dial().greet()
			p.open(true, get()...)
			if answers { // for as long as it likes
				time.AfterFunc(time.Hour, func() { p.conn.(interface{ CloseWrite() error }).CloseWrite() })
			}
			after, _ := p.ends(answers)
			if !answers && after != 15*time.Second || answers && after != time.Hour {
				t.Errorf("with answers %v: closed after %v", answers, after)
			}
		})
	}
}

func TestHandshakeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, readAll, func(o *Options) { o.HandshakeTimeout = 7 * time.Second })
		p := f.dial()
		_, err := io.WriteString(p.conn, frame.Preface[:10])
		must(t, err)
		if after, _ := p.ends(true); after != 7*time.Second {
			t.Errorf("closed after %v", after)
		}
	})
}

// TestUnreadConnectionsAreClosed is about peers that leave the socket unread:
// the goroutine that writes to it for all of them must come back.
func TestUnreadConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error, 2)
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			var err error
			for err == nil {
				_, err = w.Write(make([]byte, 64<<10))
			}
			result <- err
		}, func(o *Options) { o.WriteTimeout = 4 * time.Second })
		p := f.dial().greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: frame.MaxWindow})
		must(t, p.framer.WriteWindowUpdate(0, frame.MaxWindow-frame.DefaultWindow))
		began := time.Now()
		p.open(true, get()...)
		p.open(true, get()...)
		for range 2 {
			if err := <-result; err == nil || time.Since(began) < 4*time.Second || time.Since(began) > 6*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
	})
}

func TestShutdownWaitsForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-finish
			io.WriteString(w, "done")
		})
		busy, idle := f.dial().greet(), f.dial().greet()
		id := busy.open(true, get()...)
		if h := busy.read().(*http2.MetaHeadersFrame); h.StreamID != id {
			t.Fatalf("got %v", h)
		}
		down := make(chan error)
		go func() { down <- f.http.Shutdown(context.Background()) }()
		if _, last := idle.ends(true); last == nil || last.LastStreamID != 0 {
			t.Errorf("an idle connection received %+v", last)
		}
		// A stream that was on its way when the first GOAWAY came is served.
		if first := busy.read().(*http2.GoAwayFrame); first.LastStreamID != frame.MaxStreamID {
			t.Errorf("the first GOAWAY: %+v", first)
		}
		busy.open(true, get()...)
		busy.read() // its HEADERS or the PING
		select {
		case err := <-down:
			t.Errorf("Shutdown did not wait: %v", err)
		default:
		}
		close(finish)
		_, last := busy.ends(true)
		if last == nil || last.ErrCode != http2.ErrCodeNo || last.LastStreamID != 3 {
			t.Errorf("a busy connection received %+v", last)
		}
		must(t, <-down)
	})
}

// TestShutdownReturnsAtOnce is about Server's own Shutdown, which does not look
// now and then whether it is done.
// TestShutdownDuringThePreface: a client that is slow with its preface, and keeps the connection,
// is waited for no longer than others.
func TestShutdownDuringThePreface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, readAll)
		p := f.dial()
		must(t, p.conn.(*tls.Conn).Handshake())
		synctest.Wait()
		began, ended := time.Now(), make(chan error, 1)
		go func() { ended <- f.server.Shutdown(t.Context()) }()
		time.Sleep(drainWait + lingerTime/2)
		_, err := io.WriteString(p.conn, frame.Preface)
		must(t, err)
		must(t, p.framer.WriteSettings())
		if err := <-ended; err != nil || time.Since(began) != drainWait+lingerTime {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestShutdownReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-finish
		})
		must(t, f.server.Shutdown(t.Context())) // no connection is open
		late := f.dial().greet()                // a connection after it may not stay
		if _, last := late.ends(true); last == nil || last.ErrCode != http2.ErrCodeNo {
			t.Errorf("a late connection received %+v", last)
		}
		late.conn.Close()
		f = startInMemory(t, f.http.Handler.ServeHTTP)
		busy, idle := f.dial().greet(), f.dial().greet()
		busy.open(true, get()...)
		busy.read() // the header: it is under way
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		down := make(chan error)
		for _, ctx := range []context.Context{ended, t.Context()} { // more than one may ask for it
			go func() { down <- f.server.Shutdown(ctx) }()
		}
		idle.ends(true)
		idle.conn.Close()
		if err := <-down; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown did not wait for a request: %v", err)
		}
		began := time.Now()
		close(finish)
		busy.ends(true)
		busy.conn.Close()
		must(t, <-down)
		if after := time.Since(began); after != 0 {
			t.Errorf("Shutdown returned %v after the last request", after)
		}
	})
}

func TestLateStreamsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) { <-finish })
		p := f.dial().greet()
		p.open(true, get()...)
		synctest.Wait()
		down := make(chan error)
		go func() { down <- f.http.Shutdown(context.Background()) }()
		time.Sleep(2 * drainWait) // the answer to the ping is not waited for longer
		late := p.open(false, post()...)
		must(t, p.framer.WriteData(late, true, []byte("x")))
		must(t, p.framer.WriteWindowUpdate(late, 1))
		must(t, p.framer.WriteRSTStream(late, http2.ErrCodeCancel))
		close(finish)
		if _, last := p.ends(true); last == nil || last.LastStreamID != 1 || last.ErrCode != http2.ErrCodeNo {
			t.Errorf("got %+v", last)
		}
		must(t, <-down)
	})
}

func TestConnectionCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") })
		p := f.dial().greet()
		p.open(true, get()...)
		if got := p.outcome(); got.status != "200" {
			t.Errorf("got %+v", got)
		}
		if _, last := p.ends(true); last == nil || last.ErrCode != http2.ErrCodeNo {
			t.Errorf("got %+v", last)
		}
	})
}

func TestPingsThatAreNotReadEndTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, readAll)
		p := f.dial().greet()
		var err error
		for range 1 << 20 { // until the server has had enough of them
			if err = p.framer.WritePing(false, [8]byte{}); err != nil {
				break
			}
		}
		if err == nil {
			t.Error("the server goes on collecting answers")
		}
	})
}

// TestEverythingIsGoneAfterClose is what goleak looks at.
func TestEverythingIsGoneAfterClose(t *testing.T) {
	entered := make(chan struct{})
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		_, err := io.Copy(io.Discard, r.Body)
		if err == nil || r.Context().Err() == nil || errors.Is(err, io.EOF) {
			t.Errorf("the body ended with %v", err)
		}
	})
	f.dial().greet().open(false, post()...)
	<-entered
	must(t, f.http.Close())
	f.conns.Wait()
}

// TestShutWindowsEndStreams has clients that answer pings, but let nothing be sent:
// what waits for them must come back. Those that let little be sent are served.
func TestShutWindowsEndStreams(t *testing.T) {
	for _, tt := range []struct {
		name           string
		window         uint32 // of the stream
		answer         int    // bytes
		onStream, conn uint32 // what the client grants when it is pinged
		reset          bool
	}{
		{name: "the rest of a short answer", answer: 1, reset: true},
		{name: "a long answer", window: 10, answer: 10000, conn: 1, reset: true},
		{name: "the connection's window", window: 1 << 20, answer: 100000, onStream: 1, reset: true},
		{name: "a little for the stream", window: 10, answer: 10000, onStream: 1},
		{name: "a little for the connection", window: 1 << 20, answer: 100000, conn: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				result := make(chan error, 1)
				f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
					_, err := w.Write(make([]byte, tt.answer))
					result <- err
				}, func(o *Options) { o.PingAfter, o.WriteTimeout = 10*time.Second, 30*time.Second })
				p := f.dial().greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: tt.window})
				began := time.Now()
				id := p.open(true, get()...)
				for time.Since(began) < time.Minute {
					switch f := p.read().(type) {
					case *http2.RSTStreamFrame:
						if after := time.Since(began); !tt.reset || after < 30*time.Second || after > 40*time.Second {
							t.Errorf("reset after %v", after)
						}
						if err := <-result; tt.answer > stageSize && !errors.Is(err, os.ErrDeadlineExceeded) {
							t.Errorf("the handler got %v", err)
						}
						return
					case *http2.PingFrame:
						must(t, p.framer.WritePing(true, f.Data))
						if tt.onStream > 0 {
							must(t, p.framer.WriteWindowUpdate(id, tt.onStream))
						}
						if tt.conn > 0 {
							must(t, p.framer.WriteWindowUpdate(0, tt.conn))
						}
					}
				}
				if tt.reset {
					t.Error("the stream waits for ever")
				}
				p.conn.Close()
			})
		})
	}
}
