package h2

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

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
	server := New(Options{})
	f.Fuzz(func(t *testing.T, frames []byte) {
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
		c := newConn(server, &plain{conn}, handler)
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
		case <-time.After(20 * time.Second):
			t.Fatal("the connection does not end")
		}
		if c.running != 0 || len(c.streams) != 0 || c.out.queue.first != nil || c.out.buf != nil || c.in.large != nil {
			t.Errorf("something is left: %d handlers, %d streams, %d bytes", c.running, len(c.streams), c.out.len())
		}
	})
}

// plain is a connection without TLS.
type plain struct{ net.Conn }

func (p *plain) CloseWrite() error                    { return p.Conn.(interface{ CloseWrite() error }).CloseWrite() }
func (p *plain) ConnectionState() tls.ConnectionState { return tls.ConnectionState{} }
func (p *plain) NetConn() net.Conn                    { return p.Conn }
