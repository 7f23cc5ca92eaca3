package h2

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/internal/faultnet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/h2/frame"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
)

func TestMain(m *testing.M) {
	if benchChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// certificate is the servers' of all tests.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func tlsConfig(pair tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, DynamicRecordSizingDisabled: true}
}

// fixture is a server under test.
type fixture struct {
	t      testing.TB
	addr   string
	http   *http.Server
	server *Server
	served chan error
	conns  sync.WaitGroup // that are open
	pipe   *faultnet.Pipe // what the server listens on, if not a port
}

// start serves until the test ends.
func start(t testing.TB, handler http.HandlerFunc, change ...func(*Options)) *fixture {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return startOn(t, listener, handler, change...)
}

func startOn(t testing.TB, listener net.Listener, handler http.HandlerFunc, change ...func(*Options)) *fixture {
	t.Helper()
	var options Options
	for _, f := range change {
		f(&options)
	}
	pair, err := certificate()
	must(t, err)
	f := &fixture{t: t, addr: listener.Addr().String(), http: &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}, server: New(options), served: make(chan error, 1)}
	if limited, ok := listener.(limitedListener); ok {
		f.http.ConnContext = limited.limit.Context
	}
	f.server.Attach(f.http)
	serve := f.http.TLSNextProto["h2"]
	f.http.TLSNextProto["h2"] = func(s *http.Server, c *tls.Conn, h http.Handler) {
		f.conns.Add(1)
		defer f.conns.Done()
		serve(s, c, h)
	}
	listener = listen.LimitWrites(listener, f.server.options.WriteTimeout)
	go func() { f.served <- f.http.Serve(listen.BatchTLS(listener, tlsConfig(pair))) }()
	t.Cleanup(func() {
		f.http.Close()
		<-f.served
		f.conns.Wait() // Close does not, and goleak would see them
	})
	return f
}

// limitedListener is a listener whose connections a limit counts.
type limitedListener struct {
	net.Listener
	limit *listen.ConnectionLimit
}

// startInMemory is start in a synctest bubble.
func startInMemory(t testing.TB, handler http.HandlerFunc, change ...func(*Options)) *fixture {
	t.Helper()
	pipe := faultnet.NewPipe()
	f := startOn(t, pipe, handler, change...)
	f.pipe = pipe
	return f
}

// clients returns Go's own HTTP/2 clients, of both libraries.
func (f *fixture) clients() map[string]*http.Client {
	config := func() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
	ours := &http.Transport{TLSClientConfig: config(), ForceAttemptHTTP2: true, ExpectContinueTimeout: 10 * time.Second}
	x := &http2.Transport{TLSClientConfig: config()} //nolint:staticcheck // Deprecated, and what clients use for years to come.
	f.t.Cleanup(ours.CloseIdleConnections)
	f.t.Cleanup(x.CloseIdleConnections) //nolint:staticcheck // See above.
	return map[string]*http.Client{"net/http": {Transport: ours}, "x/net": {Transport: x}}
}

func (f *fixture) url(path string) string { return "https://" + f.addr + path }

// peer is a client that speaks in frames, and may break rules.
type peer struct {
	t      testing.TB
	conn   net.Conn
	framer *http2.Framer
	block  bytes.Buffer
	hpack  *hpack.Encoder
	next   uint32
	goAway *outcome // that the tests of conformance have read while they waited for something else
}

// dial connects without saying anything yet.
func (f *fixture) dial() *peer {
	f.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	if f.pipe != nil {
		raw, err := f.pipe.Dial(f.t.Context(), "tcp", f.addr)
		must(f.t, err)
		conn := tls.Client(raw, config)
		f.t.Cleanup(func() { raw.Close() })
		return newPeer(f.t, conn)
	}
	conn, err := tls.Dial("tcp", f.addr, config)
	must(f.t, err)
	f.t.Cleanup(func() { conn.Close() })
	must(f.t, conn.SetDeadline(time.Now().Add(2*time.Minute))) // for what waits for ever
	return newPeer(f.t, conn)
}

func newPeer(t testing.TB, conn net.Conn) *peer {
	p := &peer{t: t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1}
	p.framer.AllowIllegalWrites = true
	p.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.framer.SetMaxReadFrameSize(1 << 20)
	p.hpack = hpack.NewEncoder(&p.block)
	return p
}

// greet exchanges SETTINGS.
func (p *peer) greet(settings ...http2.Setting) *peer {
	p.t.Helper()
	_, err := io.WriteString(p.conn, frame.Preface)
	must(p.t, err)
	must(p.t, p.framer.WriteSettings(settings...))
	must(p.t, p.framer.WriteSettingsAck())
	for {
		if s, ok := p.read().(*http2.SettingsFrame); ok && s.IsAck() {
			return p
		}
	}
}

func (p *peer) read() http2.Frame {
	p.t.Helper()
	frame, err := p.framer.ReadFrame()
	must(p.t, err)
	return frame
}

// encode returns a header block: name, value, name, value...
func (p *peer) encode(fields ...string) []byte {
	p.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		must(p.t, p.hpack.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	return p.block.Bytes()
}

// target are the pseudo header fields of a request, and more.
func get(more ...string) []string {
	return append([]string{":method", "GET", ":scheme", "https", ":authority", "x", ":path", "/"}, more...)
}

func post(more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "https", ":authority", "x", ":path", "/"}, more...)
}

// open sends HEADERS and returns the stream's id.
func (p *peer) open(end bool, fields ...string) uint32 {
	p.t.Helper()
	id := p.next
	p.next += 2
	must(p.t, p.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: p.encode(fields...), EndHeaders: true, EndStream: end,
	}))
	return id
}

// outcome is how the server reacted to something.
type outcome struct {
	code   http2.ErrCode
	stream uint32 // 0: the connection ended, with a GOAWAY
	status string // of a stream that was answered
	hungUp bool   // the connection ended without a GOAWAY
	silent bool   // nothing happened
}

// outcome reads until a stream or the connection has ended.
func (p *peer) outcome() outcome {
	p.t.Helper()
	status := make(map[uint32]string)
	for {
		switch f := p.read().(type) {
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo {
				return outcome{code: f.ErrCode}
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
