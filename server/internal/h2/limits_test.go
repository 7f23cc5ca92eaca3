package h2

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/server/internal/h2/frame"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
)

// readAll is a handler that needs the whole body.
func readAll(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/wait" {
		<-r.Context().Done()
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	io.WriteString(w, "ok")
}

// TestLimits sends more than the server keeps or waits for; the rules of the RFCs
// themselves are conformance_rules_test.go's.
func TestLimits(t *testing.T) {
	f := start(t, readAll, func(o *Options) { o.StreamWindow, o.ConnWindow = 70000, 100000 })
	conn := func(code http2.ErrCode) outcome { return outcome{code: code} }
	stream := func(code http2.ErrCode) outcome { return outcome{code: code, stream: 1} }
	for _, tt := range []struct {
		name, section string
		do            func(*peer)
		want          outcome
	}{
		{"frame too large", "4.2", raw(http2.FrameData, 0, 1, strings.Repeat("x", 257<<10)), conn(http2.ErrCodeFrameSize)},
		{"SETTINGS without end", "6.5", raw(http2.FrameSettings, 0, 0, strings.Repeat("\x00\x03\x00\x00\x00\x00", maxSettings+1)), conn(http2.ErrCodeEnhanceYourCalm)},
		{"header block continued for ever", "10.5.1", func(p *peer) {
			must(t, p.framer.WriteRawFrame(http2.FrameHeaders, 0, 1, p.encode(get()...)))
			for range maxFragments + 2 {
				must(t, p.framer.WriteContinuation(1, false, nil))
			}
		}, conn(http2.ErrCodeEnhanceYourCalm)},
		{"header block too large to decode", "10.5.1", func(p *peer) {
			must(t, p.framer.WriteRawFrame(http2.FrameHeaders, 0, 1, p.encode(get()...)))
			for range 10 {
				must(t, p.framer.WriteContinuation(1, false, []byte(strings.Repeat("\x82", 16<<10))))
			}
		}, conn(http2.ErrCodeEnhanceYourCalm)},
		{"header fields too large to keep", "10.5.1", func(p *peer) {
			var many []string
			for range 8 {
				many = append(many, "a", strings.Repeat("x", 10000))
			}
			p.open(true, get(many...)...)
		}, outcome{stream: 1, status: "431"}},
		{"more data than the stream's window", "6.9.1", func(p *peer) {
			p.open(false, post()...)
			must(t, p.framer.WriteData(1, false, make([]byte, 80000)))
		}, stream(http2.ErrCodeFlowControl)},
		{"more data than the connection's window", "6.9.1", func(p *peer) {
			p.open(false, post()...)
			must(t, p.framer.WriteData(1, false, make([]byte, 120000)))
		}, conn(http2.ErrCodeFlowControl)},
		{"trailers on an old stream", "5.1", func(p *peer) {
			p.next = 3
			p.open(false, post()...)
			p.next = 1
			p.open(true, "checksum", "1")
		}, stream(http2.ErrCodeStreamClosed)},
		{"a header block in pieces", "4.3", func(p *peer) {
			block := p.encode(get("a", strings.Repeat("x", 20000))...)
			must(t, p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:10], EndStream: true}))
			must(t, p.framer.WriteContinuation(1, false, block[10:16000]))
			must(t, p.framer.WriteContinuation(1, true, block[16000:]))
		}, outcome{stream: 1, status: "200"}},
	} {
		t.Run(tt.section+" "+tt.name, func(t *testing.T) {
			p := f.dial().greet()
			tt.do(p)
			if got := p.outcome(); got != tt.want {
				t.Errorf("RFC 9113 section %s: got %+v, want %+v", tt.section, got, tt.want)
			}
		})
	}
}

// TestFloods sends what costs a peer nothing until the server has had enough.
func TestFloods(t *testing.T) {
	f := start(t, readAll, func(o *Options) { o.MaxConcurrentStreams = 10 })
	for name, send := range map[string]func(*peer) error{
		"empty DATA": func(p *peer) error { return p.framer.WriteData(1, false, nil) },
		"PRIORITY":   func(p *peer) error { return p.framer.WritePriority(7, http2.PriorityParam{StreamDep: 3}) },
		"SETTINGS":   func(p *peer) error { return p.framer.WriteSettings() },
		"unknown":    func(p *peer) error { return p.framer.WriteRawFrame(0x77, 0, 0, nil) },
		"rapid reset (CVE-2023-44487)": func(p *peer) error {
			p.next += 2
			err := p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: p.next, BlockFragment: p.encode(get()...), EndHeaders: true})
			if err != nil {
				return err
			}
			return p.framer.WriteRSTStream(p.next, http2.ErrCodeCancel)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := f.dial().greet()
			p.open(false, post()...)
			go func() {
				for range 5000 { // until the server does not listen any more
					if send(p) != nil {
						return
					}
				}
			}()
			for {
				got := p.outcome()
				if got.stream == 0 {
					if got.code != http2.ErrCodeEnhanceYourCalm {
						t.Errorf("got %+v", got)
					}
					return
				}
			}
		})
	}
}

// TestResetsAsked has a client break rules so that the server resets its streams,
// each before it opens the next: that is a rapid reset, too (CVE-2025-8671).
func TestResetsAsked(t *testing.T) {
	f := start(t, readAll, func(o *Options) { o.MaxConcurrentStreams, o.StreamWindow = 10, 10 })
	for name, send := range map[string]func(*peer, uint32) error{
		"WINDOW_UPDATE of 0": func(p *peer, id uint32) error {
			return p.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, id, make([]byte, 4))
		},
		"WINDOW_UPDATE too large": func(p *peer, id uint32) error { return p.framer.WriteWindowUpdate(id, frame.MaxWindow) },
		"more than the window":    func(p *peer, id uint32) error { return p.framer.WriteData(id, false, make([]byte, 11)) },
		"more than announced":     func(p *peer, id uint32) error { return p.framer.WriteData(id, false, make([]byte, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := f.dial().greet()
			for resets := 0; ; resets++ {
				must(t, send(p, p.open(false, post("content-length", "1")...)))
				if got := p.outcome(); got == (outcome{code: http2.ErrCodeEnhanceYourCalm}) {
					return
				} else if got.stream == 0 || resets == 5000 {
					t.Fatalf("after %d resets: %+v", resets, got)
				}
			}
		})
	}
}

// TestRefusedRequestsKeepNoConnection that a user has given up, however long the client takes
// to read the answer: no handler sees such a request, so none says whose the connection is.
func TestRefusedRequestsKeepNoConnection(t *testing.T) {
	limit := listen.NewConnectionLimit(4, 0, slog.New(slog.DiscardHandler)) // of which users can hold two
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	by, first := listen.Holder{Name: "most"}, make(chan *listen.Conn, 1)
	f := startOn(t, limitedListener{limit.Listener(tcp), limit}, func(_ http.ResponseWriter, r *http.Request) {
		c := listen.FromContext(r.Context())
		if err := c.Hold(by, false); err != nil {
			t.Error(err)
		}
		first <- c
	})
	p := f.dial().greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	p.open(true, get()...)
	given := <-first
	if got := p.outcome(); got.status != "200" {
		t.Fatalf("%+v", got)
	}
	given.OnYield(func() {}) // the client is not asked to go
	given.Idle(time.Now())

	pipe := faultnet.NewPipe()
	listener := limit.Listener(pipe)
	open := func() *listen.Conn {
		go pipe.Dial(t.Context(), "tcp", "x")
		conn, err := listener.Accept()
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn.(*listen.Conn)
	}
	for range 2 {
		must(t, open().Hold(by, false))
	}
	if given.Held() {
		t.Fatal("the connection was not given up")
	}
	p.open(true, get(slices.Repeat([]string{"a", strings.Repeat("x", 10_000)}, 8)...)...)
	for {
		if answer, ok := p.read().(*http2.MetaHeadersFrame); ok {
			if code := answer.PseudoValue("status"); code != "431" {
				t.Fatal(code)
			}
			break
		}
	}
	for range 10 {
		open()
	}
	if _, err := given.Write([]byte("x")); err == nil {
		t.Error("the connection is kept")
	}
}
