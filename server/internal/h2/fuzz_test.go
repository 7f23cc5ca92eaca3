package h2

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/internal/faultnet"
	"github.com/levelwire/levelwire/server/internal/h2/frame"
)

// FuzzConnection lets a client send anything after the preface: the server must
// neither panic nor hang, and leave nothing behind. The bytes do not go through
// TLS, which would keep them from being anything but random.
func FuzzConnection(f *testing.F) {
	frames := func(write func(*http2.Framer, *peer)) {
		var b bytes.Buffer
		framer := http2.NewFramer(&b, nil)
		framer.AllowIllegalWrites = true
		must(f, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}))
		write(framer, newPeer(f, nil))
		f.Add(b.Bytes())
	}
	frames(func(w *http2.Framer, p *peer) {
		must(f, w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: p.encode(get("accept", "a/b")...)}))
		must(f, w.WriteWindowUpdate(0, 1<<20))
		must(f, w.WritePing(false, [8]byte{1, 2, 3}))
	})
	frames(func(w *http2.Framer, p *peer) {
		must(f, w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.encode(post("content-length", "10")...), PadLength: 0}))
		must(f, w.WriteContinuation(1, true, p.encode("cookie", "a=b", "x", "y")))
		must(f, w.WriteDataPadded(1, false, []byte("hello"), make([]byte, 20)))
		must(f, w.WriteData(1, true, []byte("world")))
		must(f, w.WriteSettingsAck())
		must(f, w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}))
		must(f, w.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, EndHeaders: true, BlockFragment: p.encode(post()...)}))
		must(f, w.WriteRSTStream(3, http2.ErrCodeCancel))
		must(f, w.WritePriority(5, http2.PriorityParam{StreamDep: 3}))
		must(f, w.WriteGoAway(0, http2.ErrCodeNo, []byte("bye")))
	})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Write(make([]byte, 1000+n))
	})
	f.Fuzz(func(t *testing.T, frames []byte) { exchange(t, handler, frames) })
}

// FuzzFields sends any header fields, from the first of a request to its trailers. Of what
// reaches a handler, all must be valid in HTTP, and nothing may say how the request
// was framed.
func FuzzFields(f *testing.F) {
	for _, fields := range [][]string{
		get("accept", "a/b", "cookie", "a=b", "cookie", "c=d"), get("te", "trailers", "expect", "100-continue"), get("host", "x", "range", "bytes=0-1"),
		get("connection", "close"), get("content-length", "7"), get("Upper", "x"), get("x", "a\r\nb: c"), get("x\x00", "y"), get(":path", "/again"),
		{":method", "CONNECT", ":authority", "x:1"}, {":method", "OPTIONS", ":scheme", "https", ":path", "*"}, {":method", "GET"},
		{":method", "GET", ":scheme", "https", ":authority", "a@b", ":path", "//x/../%2f?a=%zz#b"},
	} {
		f.Add(strings.Join(fields, "\n"), "trailer\nx")
	}
	f.Fuzz(func(t *testing.T, fields, trailers string) {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method == "" || r.URL == nil || r.Host == "" && r.Header.Get("Host") != "" || !httpguts.ValidHostHeader(r.Host) {
				t.Errorf("a request %q for %v of %q", r.Method, r.URL, r.Host)
			}
			for _, header := range []http.Header{r.Header, r.Trailer} {
				for name, values := range header {
					switch {
					case !httpguts.ValidHeaderFieldName(name), slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }):
						t.Errorf("a field %q: %q", name, values)
					case name == "Connection", name == "Transfer-Encoding", name == "Upgrade", name == "Keep-Alive", name == "Proxy-Connection":
						t.Errorf("the field %s: %q is of HTTP/1.1", name, values)
					}
				}
			}
		})
		var b bytes.Buffer
		framer := http2.NewFramer(&b, nil)
		must(t, framer.WriteSettings())
		block := newPeer(t, nil)
		of := func(text string) []byte {
			parts := strings.Split(text, "\n")
			return block.encode(append(parts, make([]string, len(parts)%2)...)...)
		}
		head := slices.Clone(of(fields))
		tail := of(trailers)
		if len(head)+len(tail) > 16<<10 {
			return
		}
		must(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: head}))
		must(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: tail}))
		exchange(t, handler, b.Bytes())
	})
}

// fuzzed serves all connections of the fuzz tests.
var fuzzed = New(Options{})

// exchange sends frames on a connection of their own, and checks that nothing of it is
// left when it has ended.
func exchange(t *testing.T, handler http.Handler, frames []byte) {
	t.Helper()
	pipe := faultnet.NewPipe()
	defer pipe.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := pipe.Accept(); err == nil {
			accepted <- conn
		}
	}()
	client, err := pipe.Dial(t.Context(), "tcp", "x")
	must(t, err)
	conn := <-accepted
	c := newConn(fuzzed, &plain{conn}, handler)
	served := make(chan struct{})
	go func() { c.serve(); close(served) }()
	go func() {
		_, _ = io.WriteString(client, frame.Preface)
		_, _ = client.Write(frames)
		_ = client.(interface{ CloseWrite() error }).CloseWrite()
	}()
	_, _ = io.Copy(io.Discard, client)
	select {
	case <-served:
	case <-time.After(3 * time.Minute):
		t.Fatal("the connection does not end")
	}
	if c.running != 0 || len(c.streams) != 0 || c.out.queue.first != nil || c.out.buf != nil || c.in.large != nil {
		t.Errorf("something is left: %d handlers, %d streams, %d bytes", c.running, len(c.streams), c.out.len())
	}
}

// plain is a connection without TLS.
type plain struct{ net.Conn }

func (p *plain) CloseWrite() error                    { return p.Conn.(interface{ CloseWrite() error }).CloseWrite() }
func (p *plain) ConnectionState() tls.ConnectionState { return tls.ConnectionState{} }
func (p *plain) NetConn() net.Conn                    { return p.Conn }
