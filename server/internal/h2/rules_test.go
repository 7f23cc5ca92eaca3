package h2

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
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

// TestWhatBreaksTheRules sends what RFC 9113 forbids.
func TestWhatBreaksTheRules(t *testing.T) {
	f := start(t, readAll, func(o *Options) { o.StreamWindow, o.ConnWindow = 70000, 100000 })
	conn := func(code http2.ErrCode) outcome { return outcome{code: code} }
	stream := func(code http2.ErrCode) outcome { return outcome{code: code, stream: 1} }
	raw := func(kind http2.FrameType, flags http2.Flags, id uint32, payload string) func(*peer) {
		return func(p *peer) { must(t, p.framer.WriteRawFrame(kind, flags, id, []byte(payload))) }
	}
	request := func(end bool, fields ...string) func(*peer) {
		return func(p *peer) { p.open(end, fields...) }
	}
	body := func(after string, fields ...string) func(*peer) {
		return func(p *peer) {
			p.open(false, fields...)
			must(t, p.framer.WriteData(1, true, []byte(after)))
		}
	}
	for _, tt := range []struct {
		name, section string
		do            func(*peer)
		want          outcome
	}{
		{"frame too large", "4.2", raw(http2.FrameData, 0, 1, strings.Repeat("x", 257<<10)), conn(http2.ErrCodeFrameSize)},
		{"bad header block", "4.3", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, "\xff\xff\xff\xff\xff\xff\xff\xff"), conn(http2.ErrCodeCompression)},
		{"incomplete header block", "4.3", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, "\x40\x0aabc"), conn(http2.ErrCodeCompression)},
		{"DATA on an idle stream", "5.1", raw(http2.FrameData, 0, 1, "x"), conn(http2.ErrCodeProtocol)},
		{"RST_STREAM on an idle stream", "5.1", raw(http2.FrameRSTStream, 0, 1, "\x00\x00\x00\x00"), conn(http2.ErrCodeProtocol)},
		{"WINDOW_UPDATE on an idle stream", "5.1", raw(http2.FrameWindowUpdate, 0, 1, "\x00\x00\x00\x01"), conn(http2.ErrCodeProtocol)},
		{"DATA after the end", "5.1", func(p *peer) {
			p.open(true, ":method", "GET", ":scheme", "https", ":path", "/wait")
			must(t, p.framer.WriteData(1, true, []byte("x")))
		}, stream(http2.ErrCodeStreamClosed)},
		{"even stream", "5.1.1", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 2, "\x82"), conn(http2.ErrCodeProtocol)},
		{"HEADERS on no stream", "6.2", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, "\x82"), conn(http2.ErrCodeProtocol)},
		{"DATA on no stream", "6.1", raw(http2.FrameData, 0, 0, "x"), conn(http2.ErrCodeProtocol)},
		{"DATA padding too long", "6.1", func(p *peer) {
			p.open(false, post()...)
			must(t, p.framer.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, []byte("\x05abcd")))
		}, conn(http2.ErrCodeProtocol)},
		{"DATA padding missing", "6.1", func(p *peer) {
			p.open(false, post()...)
			must(t, p.framer.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, nil))
		}, conn(http2.ErrCodeFrameSize)},
		{"HEADERS padding too long", "6.2", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersPadded, 1, "\x05\x82"), conn(http2.ErrCodeProtocol)},
		{"HEADERS too short for its priority", "6.2", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersPriority, 1, "\x82"), conn(http2.ErrCodeFrameSize)},
		{"PRIORITY on no stream", "6.3", raw(http2.FramePriority, 0, 0, "\x00\x00\x00\x00\x00"), conn(http2.ErrCodeProtocol)},
		{"PRIORITY of the wrong size", "6.3", raw(http2.FramePriority, 0, 1, "\x00\x00\x00"), stream(http2.ErrCodeFrameSize)},
		{"RST_STREAM on no stream", "6.4", raw(http2.FrameRSTStream, 0, 0, "\x00\x00\x00\x00"), conn(http2.ErrCodeProtocol)},
		{"RST_STREAM of the wrong size", "6.4", raw(http2.FrameRSTStream, 0, 1, "\x00"), conn(http2.ErrCodeFrameSize)},
		{"SETTINGS on a stream", "6.5", raw(http2.FrameSettings, 0, 1, ""), conn(http2.ErrCodeProtocol)},
		{"SETTINGS acknowledged with a payload", "6.5", raw(http2.FrameSettings, http2.FlagSettingsAck, 0, "\x00\x01\x00\x00\x00\x00"), conn(http2.ErrCodeFrameSize)},
		{"SETTINGS of the wrong size", "6.5", raw(http2.FrameSettings, 0, 0, "abc"), conn(http2.ErrCodeFrameSize)},
		{"SETTINGS without end", "6.5", raw(http2.FrameSettings, 0, 0, strings.Repeat("\x00\x03\x00\x00\x00\x00", maxSettings+1)), conn(http2.ErrCodeEnhanceYourCalm)},
		{"ENABLE_PUSH 2", "6.5.2", raw(http2.FrameSettings, 0, 0, "\x00\x02\x00\x00\x00\x02"), conn(http2.ErrCodeProtocol)},
		{"INITIAL_WINDOW_SIZE 2^31", "6.5.2", raw(http2.FrameSettings, 0, 0, "\x00\x04\x80\x00\x00\x00"), conn(http2.ErrCodeFlowControl)},
		{"MAX_FRAME_SIZE too small", "6.5.2", raw(http2.FrameSettings, 0, 0, "\x00\x05\x00\x00\x3f\xff"), conn(http2.ErrCodeProtocol)},
		{"MAX_FRAME_SIZE too large", "6.5.2", raw(http2.FrameSettings, 0, 0, "\x00\x05\x01\x00\x00\x00"), conn(http2.ErrCodeProtocol)},
		{"PUSH_PROMISE", "6.6", raw(http2.FramePushPromise, 0, 1, "\x00\x00\x00\x02"), conn(http2.ErrCodeProtocol)},
		{"PING on a stream", "6.7", raw(http2.FramePing, 0, 1, "12345678"), conn(http2.ErrCodeProtocol)},
		{"PING of the wrong size", "6.7", raw(http2.FramePing, 0, 0, "1234567"), conn(http2.ErrCodeFrameSize)},
		{"GOAWAY on a stream", "6.8", raw(http2.FrameGoAway, 0, 1, "\x00\x00\x00\x00\x00\x00\x00\x00"), conn(http2.ErrCodeProtocol)},
		{"WINDOW_UPDATE of 0", "6.9", raw(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x00\x00"), conn(http2.ErrCodeProtocol)},
		{"WINDOW_UPDATE of 0 on a stream", "6.9", func(p *peer) {
			p.open(false, post()...)
			must(t, p.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 4)))
		}, stream(http2.ErrCodeProtocol)},
		{"WINDOW_UPDATE of the wrong size", "6.9", raw(http2.FrameWindowUpdate, 0, 0, "\x00"), conn(http2.ErrCodeFrameSize)},
		{"the connection's window too large", "6.9.1", func(p *peer) { must(t, p.framer.WriteWindowUpdate(0, maxWindow)) }, conn(http2.ErrCodeFlowControl)},
		{"a stream's window too large", "6.9.1", func(p *peer) {
			p.open(false, post()...)
			must(t, p.framer.WriteWindowUpdate(1, maxWindow))
		}, stream(http2.ErrCodeFlowControl)},
		{"a stream's window too large by SETTINGS", "6.9.2", func(p *peer) {
			p.open(false, post()...)
			must(t, p.framer.WriteWindowUpdate(1, maxWindow-defaultWindow))
			must(t, p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: defaultWindow + 1}))
		}, conn(http2.ErrCodeFlowControl)},
		{"CONTINUATION alone", "6.10", raw(http2.FrameContinuation, http2.FlagContinuationEndHeaders, 1, "\x82"), conn(http2.ErrCodeProtocol)},
		{"header block interrupted", "6.10", func(p *peer) {
			must(t, p.framer.WriteRawFrame(http2.FrameHeaders, 0, 1, p.encode(get()...)))
			must(t, p.framer.WritePing(false, [8]byte{}))
		}, conn(http2.ErrCodeProtocol)},
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

		{"upper-case name", "8.2.1", request(true, get("Accept", "x")...), stream(http2.ErrCodeProtocol)},
		{"name with a space", "8.2.1", request(true, get("a b", "x")...), stream(http2.ErrCodeProtocol)},
		{"value with a line feed", "8.2.1", request(true, get("a", "x\ny")...), stream(http2.ErrCodeProtocol)},
		{"connection", "8.2.2", request(true, get("connection", "close")...), stream(http2.ErrCodeProtocol)},
		{"transfer-encoding", "8.2.2", request(true, get("transfer-encoding", "chunked")...), stream(http2.ErrCodeProtocol)},
		{"upgrade", "8.2.2", request(true, get("upgrade", "websocket")...), stream(http2.ErrCodeProtocol)},
		{"te", "8.2.2", request(true, get("te", "gzip")...), stream(http2.ErrCodeProtocol)},
		{"te trailers", "8.2.2", request(true, get("te", "trailers")...), outcome{stream: 1, status: "200"}},
		{"no method", "8.3.1", request(true, ":scheme", "https", ":path", "/"), stream(http2.ErrCodeProtocol)},
		{"no scheme", "8.3.1", request(true, ":method", "GET", ":path", "/"), stream(http2.ErrCodeProtocol)},
		{"no path", "8.3.1", request(true, ":method", "GET", ":scheme", "https"), stream(http2.ErrCodeProtocol)},
		{"empty path", "8.3.1", request(true, ":method", "GET", ":scheme", "https", ":path", ""), stream(http2.ErrCodeProtocol)},
		{"two paths", "8.3.1", request(true, get(":path", "/")...), stream(http2.ErrCodeProtocol)},
		{"user in the authority", "8.3.1", request(true, ":method", "GET", ":scheme", "https", ":path", "/", ":authority", "me@x"), stream(http2.ErrCodeProtocol)},
		{"two hosts", "8.3.1", request(true, ":method", "GET", ":scheme", "https", ":path", "/", "host", "x", "host", "y"), stream(http2.ErrCodeProtocol)},
		{"bad host", "8.3.1", request(true, get("host", "x/y")...), stream(http2.ErrCodeProtocol)},
		{"host instead of authority", "8.3.1", request(true, ":method", "GET", ":scheme", "https", ":path", "/", "host", "x"), outcome{stream: 1, status: "200"}},
		{"CONNECT with a path", "8.5", request(true, ":method", "CONNECT", ":authority", "x:1", ":path", "/"), stream(http2.ErrCodeProtocol)},
		{"pseudo header field of answers", "8.3", request(true, get(":status", "200")...), stream(http2.ErrCodeProtocol)},
		{"pseudo header field after others", "8.3", request(true, "a", "b", ":method", "GET", ":scheme", "https", ":path", "/"), stream(http2.ErrCodeProtocol)},
		{"more content than content-length", "8.1.1", body("abcd", post("content-length", "3")...), stream(http2.ErrCodeProtocol)},
		{"less content than content-length", "8.1.1", body("ab", post("content-length", "3")...), stream(http2.ErrCodeProtocol)},
		{"no content despite content-length", "8.1.1", request(true, post("content-length", "3")...), stream(http2.ErrCodeProtocol)},
		{"bad content-length", "8.1.1", body("ab", post("content-length", "+2")...), stream(http2.ErrCodeProtocol)},
		{"two content-lengths", "8.1.1", body("ab", post("content-length", "2", "content-length", "3")...), stream(http2.ErrCodeProtocol)},
		{"trailers", "8.1", func(p *peer) {
			p.open(false, post()...)
			p.next = 1
			p.open(true, "checksum", "1")
		}, outcome{stream: 1, status: "200"}},
		{"trailers that do not end the stream", "8.1", func(p *peer) {
			p.open(false, post()...)
			p.next = 1
			p.open(false, "checksum", "1")
		}, stream(http2.ErrCodeProtocol)},
		{"pseudo header field in trailers", "8.1", func(p *peer) {
			p.open(false, post()...)
			p.next = 1
			p.open(true, ":path", "/")
		}, stream(http2.ErrCodeProtocol)},
		{"HEADERS on an old stream", "5.1.1", func(p *peer) {
			p.next = 3
			p.open(false, post()...)
			p.next = 1
			p.open(true, get()...)
		}, conn(http2.ErrCodeProtocol)},
		{"trailers on an old stream", "5.1", func(p *peer) {
			p.next = 3
			p.open(false, post()...)
			p.next = 1
			p.open(true, "checksum", "1")
		}, stream(http2.ErrCodeStreamClosed)},
		{"unknown frames are ignored", "4.1", func(p *peer) {
			must(t, p.framer.WriteRawFrame(0xbe, 0xff, 7, []byte("what?")))
			p.open(true, get()...)
		}, outcome{stream: 1, status: "200"}},
		{"unknown settings are ignored", "6.5.2", func(p *peer) {
			must(t, p.framer.WriteSettings(http2.Setting{ID: 0xbeef, Val: 1}))
			p.open(true, get()...)
		}, outcome{stream: 1, status: "200"}},
		{"padding is ignored", "6.1", func(p *peer) {
			must(t, p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.encode(post("content-length", "3")...),
				EndHeaders: true, PadLength: 200, Priority: http2.PriorityParam{Weight: 3}}))
			must(t, p.framer.WriteDataPadded(1, true, []byte("abc"), make([]byte, 255)))
		}, outcome{stream: 1, status: "200"}},
		{"a header block in pieces", "4.3", func(p *peer) {
			block := p.encode(get("a", strings.Repeat("x", 20000))...)
			must(t, p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:10], EndStream: true}))
			must(t, p.framer.WriteContinuation(1, false, block[10:16000]))
			must(t, p.framer.WriteContinuation(1, true, block[16000:]))
		}, outcome{stream: 1, status: "200"}},
		{"padding before the rest of a header block", "6.2", func(p *peer) {
			block := p.encode(get()...)
			must(t, p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:2], EndStream: true, PadLength: 9}))
			must(t, p.framer.WriteContinuation(1, true, block[2:]))
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

func TestBadPrefaces(t *testing.T) {
	f := start(t, readAll)
	for name, hello := range map[string]string{
		"HTTP/1":          "GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: something long enough\r\n\r\n",
		"PING first":      preface + "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678",
		"an answer first": preface + "\x00\x00\x00\x04\x01\x00\x00\x00\x00",
	} {
		p := f.dial()
		_, err := io.WriteString(p.conn, hello)
		must(t, err)
		if got := p.outcome(); got.code != http2.ErrCodeProtocol || got.stream != 0 {
			t.Errorf("%s: %+v", name, got)
		}
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
		"WINDOW_UPDATE too large": func(p *peer, id uint32) error { return p.framer.WriteWindowUpdate(id, maxWindow) },
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
