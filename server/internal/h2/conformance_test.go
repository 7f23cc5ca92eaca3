package h2

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A rule is a case of RFC 9113 (HTTP/2) or RFC 7541 (HPACK). Its name is what the
// RFC says, shortened; the tables follow the order of h2spec's list of cases.
type rule struct {
	section string
	says    string
	do      func(*peer)
	want    outcome
	// netHTTP is what net/http's server does, where that differs or has differed.
	netHTTP *outcome
}

// served is a request that was answered, although or because a client did what
// the rule is about.
var served = outcome{stream: 1, status: "200"}

// ended is served, where a rule has read the header of the answer.
var ended = outcome{stream: 1}

// badRequest is a malformed request that was answered, instead of reset, which RFC 9113
// section 8.1.1 allows.
var badRequest = outcome{stream: 1, status: "400"}

// hungUp is a connection that ended without a GOAWAY, which RFC 9113 section 5.4.1
// allows. silent is one on which nothing happens.
var hungUp, silent = outcome{hungUp: true}, outcome{silent: true}

func connectionError(code http2.ErrCode) outcome { return outcome{code: code} }

func streamReset(code http2.ErrCode) outcome { return outcome{code: code, stream: 1} }

// On a server under these rules:
const (
	rulesStreams   = 20    // may be open on a connection
	rulesFrameSize = 16384 // is the largest frame
	rulesAnswer    = "0123456789"
)

// answerRules is the handler of a server under test: it needs the whole body, and
// at /wait it also waits for the stream's end.
func answerRules(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/wait" {
		<-r.Context().Done()
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	io.WriteString(w, rulesAnswer)
}

// TestConformance holds our server to the rules.
func TestConformance(t *testing.T) {
	f := start(t, answerRules, func(o *Options) { o.MaxConcurrentStreams, o.MaxReadFrameSize = rulesStreams, rulesFrameSize })
	testRules(t, f, func(rule) *outcome { return nil })
}

// TestConformanceOfNetHTTP holds net/http's server to the rules, so that they are
// the RFC's and not only ours, and so that an operator who prefers it knows in
// what it differs.
func TestConformanceOfNetHTTP(t *testing.T) {
	f := startNetHTTP(t, answerRules, func(s *http.Server) {
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: rulesStreams, MaxReadFrameSize: rulesFrameSize}
	})
	testRules(t, f, func(r rule) *outcome { return r.netHTTP })
}

// testRules expects of a server what a rule demands, or what the server is known to
// do instead.
func testRules(t *testing.T, f *fixture, instead func(rule) *outcome) {
	for _, table := range [][]rule{connectionRules, streamRules, frameRules, flowRules, messageRules, hpackRules} {
		for _, r := range table {
			t.Run(r.section+" "+r.says, func(t *testing.T) {
				p := f.dial()
				p.t = t
				known := instead(r)
				if !strings.HasPrefix(r.section, "3.4") {
					p.greet()
				}
				r.do(p)
				if known != nil && *known == silent {
					must(t, p.conn.SetReadDeadline(time.Now().Add(200*time.Millisecond))) //passes: the server says nothing
				}
				if got := p.reaction(); got != r.want && (known == nil || got != *known) {
					t.Errorf("got %+v, want %+v", got, r.want)
				}
			})
		}
	}
}

// reaction is outcome for servers that may hang up without a GOAWAY.
func (p *peer) reaction() outcome {
	p.t.Helper()
	if p.goAway != nil {
		return *p.goAway
	}
	status := make(map[uint32]string)
	for {
		frame, err := p.framer.ReadFrame()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return silent
		case err != nil:
			return hungUp
		}
		switch f := frame.(type) {
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo {
				return connectionError(f.ErrCode)
			}
		case *http2.RSTStreamFrame:
			return outcome{code: f.ErrCode, stream: f.StreamID}
		case *http2.MetaHeadersFrame:
			status[f.StreamID] = f.PseudoValue("status")
			if f.StreamEnded() {
				return outcome{stream: f.StreamID, status: status[f.StreamID]}
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				return outcome{stream: f.StreamID, status: status[f.StreamID]}
			}
		}
	}
}

// What a rule's client does:

// steps does one after the other.
func steps(all ...func(*peer)) func(*peer) {
	return func(p *peer) {
		for _, do := range all {
			do(p)
		}
	}
}

// bytesOf writes bytes as they are.
func bytesOf(text string) func(*peer) {
	return func(p *peer) {
		_, err := io.WriteString(p.conn, text)
		must(p.t, err)
	}
}

// raw writes a frame. A server that has hung up meanwhile has reacted.
func raw(kind http2.FrameType, flags http2.Flags, id uint32, payload string) func(*peer) {
	return func(p *peer) { _ = p.framer.WriteRawFrame(kind, flags, id, []byte(payload)) }
}

// headers writes a HEADERS frame, complete and the last one of stream 1, with
// that header block.
func headers(encoded string) func(*peer) {
	return raw(http2.FrameHeaders, endHeaders|endStream, 1, encoded)
}

// headersOn is headers on another stream.
func headersOn(id uint32, encoded string) func(*peer) {
	return raw(http2.FrameHeaders, endHeaders|endStream, id, encoded)
}

// request opens the next stream.
func request(end bool, fields ...string) func(*peer) {
	return func(p *peer) { p.open(end, fields...) }
}

// again sends HEADERS on stream 1 once more.
func again(end bool, fields ...string) func(*peer) {
	return func(p *peer) {
		next := p.next
		p.next = 1
		p.open(end, fields...)
		p.next = next
	}
}

// answered waits until stream 1 has been answered.
func answered(p *peer) {
	p.t.Helper()
	if got := p.reaction(); got != served {
		p.t.Fatalf("the first request: %+v", got)
	}
}

const (
	endHeaders = http2.FlagHeadersEndHeaders
	endStream  = http2.FlagHeadersEndStream
	padded     = http2.FlagHeadersPadded
	priority   = http2.FlagHeadersPriority

	// getBlock is the header block of a GET, which adds the authority to the
	// compression's table. waitBlock is one of /wait.
	getBlock  = "\x82\x84\x87\x41\x01x"
	waitBlock = "\x82\x04\x05/wait\x87\x41\x01x"

	windowOfOne = "\x00\x04\x00\x00\x00\x01" // SETTINGS_INITIAL_WINDOW_SIZE
)

// get1, post1 and wait1 open stream 1. The second leaves it open for a body, the
// third is not answered.
var (
	get1  = request(true, get()...)
	post1 = request(false, post()...)
	wait1 = headers(waitBlock)
	end1  = raw(http2.FrameData, http2.FlagDataEndStream, 1, "")
)

// windowUpdate lets the server send more.
func windowUpdate(id uint32, increment uint32) func(*peer) {
	return func(p *peer) { must(p.t, p.framer.WriteWindowUpdate(id, increment)) }
}

// settings sends one setting.
func settings(id http2.SettingID, value uint32) func(*peer) {
	return func(p *peer) { must(p.t, p.framer.WriteSettings(http2.Setting{ID: id, Val: value})) }
}

// await reads frames until one is the expected one, or a GOAWAY, which is kept
// for reaction.
func (p *peer) await(expected func(http2.Frame) bool) {
	p.t.Helper()
	for {
		frame := p.read()
		if f, ok := frame.(*http2.GoAwayFrame); ok {
			reaction := connectionError(f.ErrCode)
			p.goAway = &reaction
			return
		}
		if expected(frame) {
			return
		}
	}
}

// acknowledged waits for the acknowledgement of SETTINGS.
func acknowledged(p *peer) {
	p.t.Helper()
	p.await(func(frame http2.Frame) bool {
		f, ok := frame.(*http2.SettingsFrame)
		return ok && f.IsAck()
	})
}

// ponged waits for the answer to a PING.
func ponged(data string) func(*peer) {
	return func(p *peer) {
		p.t.Helper()
		p.await(func(frame http2.Frame) bool {
			f, ok := frame.(*http2.PingFrame)
			if ok && (!f.IsAck() || string(f.Data[:]) != data) {
				p.t.Errorf("the answer to the PING is %v with %q", f, f.Data)
			}
			return ok
		})
	}
}

// received waits for a DATA frame of that length.
func received(n int) func(*peer) {
	return func(p *peer) {
		p.t.Helper()
		if p.goAway != nil {
			return
		}
		p.await(func(frame http2.Frame) bool {
			f, ok := frame.(*http2.DataFrame)
			if ok && len(f.Data()) != n {
				p.t.Errorf("received %d bytes, want %d", len(f.Data()), n)
			}
			return ok
		})
	}
}

// huffman returns a string literal in Huffman code.
func huffman(text string) string {
	encoded := hpack.AppendHuffmanString(nil, text)
	return string(append([]byte{0x80 | byte(len(encoded))}, encoded...))
}

// got is for rule.netHTTP.
func got(o outcome) *outcome { return &o }
