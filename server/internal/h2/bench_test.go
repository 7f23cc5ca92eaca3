package h2

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/server/internal/h2/frame"
	"github.com/levelwire/levelwire/server/internal/h2/listen"
)

// The benchmarks compare this server with net/http's and with what TLS costs
// without any HTTP, in CPU time of the server alone: it is a process of its own,
// this test's program in another role. Say with -bench which; a profile of the
// server is written to the file that H2_PROFILE names.

const (
	benchStream = 580 << 20
	benchPiece  = 64 << 10
	benchEvent  = 3 << 10
)

// benchChild serves, if that is what this process was started for.
func benchChild() bool {
	mode := os.Getenv("H2_BENCH")
	if mode == "" {
		return false
	}
	if name := os.Getenv("H2_PROFILE"); name != "" {
		file, err := os.Create(name + "." + mode)
		if err == nil && pprof.StartCPUProfile(file) == nil {
			defer file.Close()
			defer pprof.StopCPUProfile()
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(listener.Addr())
		err = benchServe(mode, listener)
	}
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
	}
	return true
}

func benchServe(mode string, listener net.Listener) error {
	pair, err := certificate()
	if err != nil {
		return err
	}
	var b benchServer
	b.cond.L = &b.mu
	go b.tick()
	server := &http.Server{Handler: &b}
	stop := func() { _, _ = io.Copy(io.Discard, os.Stdin); server.Close(); listener.Close() }
	go stop()
	switch mode {
	case "net":
		server.TLSConfig = tlsConfig(pair)
		server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1000}
		return server.ServeTLS(listener, "", "")
	case "ours":
		New(Options{MaxConcurrentStreams: 1000}).Attach(server)
		return server.Serve(listen.BatchTLS(listener, tlsConfig(pair)))
	}
	return b.serveBare(tls.NewListener(listener, tlsConfig(pair)), mode)
}

// benchServer answers everything that the benchmarks ask for.
type benchServer struct {
	mu    sync.Mutex
	cond  sync.Cond
	event int
}

// tick makes 20 events a second.
func (b *benchServer) tick() {
	for range time.Tick(50 * time.Millisecond) {
		b.mu.Lock()
		b.event++
		b.mu.Unlock()
		b.cond.Broadcast()
	}
}

func (b *benchServer) wait(seen int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.event == seen {
		b.cond.Wait()
	}
	return b.event
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ServeHTTP implements http.Handler.
func (b *benchServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/cpu":
		fmt.Fprint(w, cpu().Nanoseconds())
	case "/stream":
		b.stream(w)
	case "/events":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		event, seen := make([]byte, benchEvent), b.wait(-1)
		for r.Context().Err() == nil {
			seen = b.wait(seen)
			w.Write(event)
			w.(http.Flusher).Flush()
		}
	case "/put":
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Write(make([]byte, benchEvent))
	}
}

func (b *benchServer) stream(w io.Writer) {
	piece := make([]byte, benchPiece)
	for range benchStream / benchPiece {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// serveBare speaks no HTTP: the first byte says what is wanted. "bare" writes an
// event of each of a connection's streams on its own, "joined" ten at a time.
func (b *benchServer) serveBare(listener net.Listener, mode string) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			var want [2]byte
			for {
				if _, err := io.ReadFull(conn, want[:]); err != nil {
					return
				}
				switch want[0] {
				case 'c':
					fmt.Fprintln(conn, cpu().Nanoseconds())
				case 's':
					b.stream(conn)
				case 'e': // as many streams as the second byte says
					go func() { _, _ = io.Copy(io.Discard, conn) }()
					streams, join := int(want[1]), 1
					if mode == "joined" {
						join = min(10, streams)
					}
					event, seen := make([]byte, join*benchEvent), b.wait(-1)
					for {
						seen = b.wait(seen)
						for range streams / join {
							if _, err := conn.Write(event); err != nil {
								return
							}
						}
					}
				}
			}
		}()
	}
}

// benchPeer is the server's process.
type benchPeer struct {
	b    *testing.B
	mode string
	addr string
	ask  net.Conn // for the CPU time of bare ones
	http *http.Client
}

func benchStart(b *testing.B, mode string) *benchPeer {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "H2_BENCH="+mode)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, childprocess.Start(cmd))
	b.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	must(b, err)
	p := &benchPeer{b: b, mode: mode, addr: strings.TrimSpace(line)}
	if mode == "net" || mode == "ours" {
		p.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
		b.Cleanup(p.http.CloseIdleConnections)
	} else {
		p.ask = p.dial()
	}
	return p
}

func (p *benchPeer) dial() net.Conn {
	conn, err := tls.Dial("tcp", p.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	must(p.b, err)
	p.b.Cleanup(func() { conn.Close() })
	return conn
}

func (p *benchPeer) cpu() time.Duration {
	var text string
	if p.ask != nil {
		_, err := p.ask.Write([]byte("c."))
		must(p.b, err)
		text, err = bufio.NewReader(p.ask).ReadString('\n')
		must(p.b, err)
	} else {
		resp, err := p.http.Get("https://" + p.addr + "/cpu")
		must(p.b, err)
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		must(p.b, err)
		text = string(all)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	must(p.b, err)
	return time.Duration(n)
}

// open asks for a path on a number of streams of a new connection.
func (p *benchPeer) open(path string, streams int) net.Conn {
	conn := p.dial()
	if p.ask != nil {
		_, err := conn.Write([]byte{path[1], byte(streams)})
		must(p.b, err)
		return conn
	}
	var hello bytes.Buffer
	hello.WriteString(frame.Preface)
	peer := newPeer(p.b, nil)
	framer := http2.NewFramer(&hello, nil)
	must(p.b, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: frame.MaxWindow}))
	must(p.b, framer.WriteWindowUpdate(0, frame.MaxWindow-frame.DefaultWindow))
	for i := range streams {
		must(p.b, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), EndHeaders: true, EndStream: true,
			BlockFragment: peer.encode(":method", "GET", ":scheme", "https", ":authority", p.addr, ":path", path)}))
	}
	_, err := conn.Write(hello.Bytes())
	must(p.b, err)
	return conn
}

func BenchmarkStream(b *testing.B) {
	for _, mode := range []string{"bare", "net", "ours"} {
		b.Run(mode, func(b *testing.B) {
			p := benchStart(b, mode)
			buf := make([]byte, 256<<10)
			before := p.cpu()
			for b.Loop() {
				conn := p.open("/stream", 1)
				for got := 0; got < benchStream; {
					n, err := conn.Read(buf)
					must(b, err)
					got += n
				}
				conn.Close()
			}
			b.ReportMetric(float64((p.cpu()-before).Milliseconds())/float64(b.N), "server-ms/op")
		})
	}
}

func BenchmarkEvents(b *testing.B) {
	for _, conns := range []int{10, 1000} {
		for _, mode := range []string{"bare", "joined", "net", "ours"} {
			b.Run(fmt.Sprintf("1000over%d/%s", conns, mode), func(b *testing.B) {
				p := benchStart(b, mode)
				var got atomic.Int64
				for range conns {
					conn := p.open("/events", 1000/conns)
					go func() {
						buf := make([]byte, 256<<10)
						for {
							n, err := conn.Read(buf)
							got.Add(int64(n))
							if err != nil {
								return
							}
						}
					}()
				}
				for got.Load() < 1000*benchEvent { // all are there
					time.Sleep(10 * time.Millisecond)
				}
				before, bytes := p.cpu(), got.Load()
				for b.Loop() {
					time.Sleep(time.Second)
				}
				events := float64(got.Load()-bytes) / benchEvent
				b.ReportMetric(float64((p.cpu()-before).Nanoseconds())/1000/events, "server-µs/event")
				b.ReportMetric(events/float64(b.N), "events/s")
			})
		}
	}
}

// BenchmarkPut sends requests of 3 kB, one after the other, that are answered
// with 3 kB.
func BenchmarkPut(b *testing.B) {
	for _, mode := range []string{"net", "ours"} {
		b.Run(mode, func(b *testing.B) {
			p := benchStart(b, mode)
			conn := p.open("/none", 0)
			peer := newPeer(b, conn)
			var request bytes.Buffer
			framer := http2.NewFramer(&request, nil)
			answer := bufio.NewReaderSize(conn, 64<<10)
			body := make([]byte, benchEvent)
			id := uint32(1)
			before := p.cpu()
			for b.Loop() {
				request.Reset()
				must(b, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, BlockFragment: peer.encode(
					":method", "PUT", ":scheme", "https", ":authority", p.addr, ":path", "/put", "user-agent", "bench", "accept", "application/json",
					"authorization", "Bearer 123456789", "content-type", "application/json", "content-length", strconv.Itoa(benchEvent))}))
				must(b, framer.WriteData(id, true, body))
				_, err := conn.Write(request.Bytes())
				must(b, err)
				waitForEnd(b, answer, id)
				id += 2
			}
			b.ReportMetric(float64((p.cpu()-before).Nanoseconds())/1000/float64(b.N), "server-µs/op")
		})
	}
}

func waitForEnd(b *testing.B, r *bufio.Reader, id uint32) {
	for {
		head, err := r.Peek(frame.HeaderSize)
		must(b, err)
		h := frame.ParseHeader(head)
		_, err = r.Discard(frame.HeaderSize + int(h.Length))
		must(b, err)
		if h.Stream == id && h.Has(http2.FlagDataEndStream) && h.Type <= http2.FrameHeaders {
			return
		}
	}
}
