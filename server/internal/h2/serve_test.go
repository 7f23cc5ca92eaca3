package h2

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/internal/testseed"
)

// reply is what a client got.
type reply struct {
	code   int
	length int64
	body   string
	header http.Header
	err    error
}

func ask(client *http.Client, method, url string, body io.Reader, fields ...string) reply {
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return reply{err: err}
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Add(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{code: resp.StatusCode, length: resp.ContentLength, body: string(b), header: resp.Header, err: err}
}

// TestAnswers compares what clients get with what they get from net/http's
// server, for handlers of all sorts.
func TestAnswers(t *testing.T) {
	long := strings.Repeat("0123456789", 20000)
	for name, handler := range map[string]http.HandlerFunc{
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"short":   func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") },
		"html":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"typed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "a/b")
			io.WriteString(w, "x")
		},
		"untyped": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil; io.WriteString(w, "x") },
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "x")
		},
		"long": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) },
		"long with a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
			io.WriteString(w, long)
		},
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			io.WriteString(w, "b")
		},
		"flushed empty": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"created":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); io.WriteString(w, "made") },
		"no content":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); io.WriteString(w, "x") },
		"not modified":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", "1"); w.WriteHeader(304) },
		"header twice":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(200) },
		"header too late": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.Header().Set("X-Late", "1")
			io.WriteString(w, "x")
		},
		"several values": func(w http.ResponseWriter, _ *http.Request) { w.Header()["X-Many"] = []string{"1", "2", ""} },
		"HTTP/1 fields": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "keep-alive")
			w.Header().Set("Transfer-Encoding", "x")
		},
		"bad field": func(w http.ResponseWriter, _ *http.Request) { w.Header()["bad name"] = []string{"1"} },
		"many fields": func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("y", 50))
			}
		},
		"date":               func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "Sun, 01 Mar 2026 00:00:00 GMT") },
		"abort":              func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"abort after a part": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long); panic(http.ErrAbortHandler) },
		"exit":               func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a part"); runtime.Goexit() },
		"echo": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, r.Method, r.URL, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor, r.ContentLength, r.TLS.ServerName, r.TLS.NegotiatedProtocol)
			for _, name := range []string{"Accept", "Cookie", "X-Two", "User-Agent", "Accept-Encoding"} {
				fmt.Fprintf(w, "%s: %q\n", name, r.Header[name])
			}
			b, err := io.ReadAll(r.Body)
			fmt.Fprintln(w, string(b), err, r.Context().Err(), r.Context().Value(http.ServerContextKey) != nil, r.Context().Value(http.LocalAddrContextKey) != nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours := start(t, handler)
			theirs := startNetHTTP(t, handler)
			want := theirs.clients()
			for library, client := range ours.clients() {
				for _, method := range []string{"GET", "HEAD", "POST", "PUT"} {
					ask := func(client *http.Client, url string) reply {
						var body io.Reader
						if method[0] == 'P' {
							body = strings.NewReader("what is sent")
						}
						return ask(client, method, url, body, "Accept: a/b", "X-Two: 1", "X-Two: 2", "Cookie: a=b", "Cookie: c=d")
					}
					got, want := ask(client, ours.url("/a%20b?c=d&e")), ask(want[library], theirs.url("/a%20b?c=d&e"))
					if got.header.Get("Date") == "" && got.err == nil {
						t.Errorf("%s %s: no date", library, method)
					}
					if name != "date" {
						got.header.Del("Date")
						want.header.Del("Date")
					}
					if (got.err == nil) != (want.err == nil) || got.code != want.code || got.body != want.body && got.err == nil || got.length != want.length ||
						fmt.Sprint(got.header) != fmt.Sprint(want.header) {
						t.Errorf("%s %s: got %.300v\nwant %.300v", library, method, fmt.Sprint(got), fmt.Sprint(want))
					}
				}
			}
		})
	}
}

func TestBodiesBothWays(t *testing.T) {
	seed := testseed.New(t)
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Sum", fmt.Sprintf("%x", sum.Sum(nil)))
		random, choice := rand.NewChaCha8([32]byte{}), seed.Rand(n)
		sum.Reset()
		b := make([]byte, 100000)
		for n > 0 {
			part := b[:min(n, 1+choice.IntN(len(b)))]
			random.Read(part)
			sum.Write(part)
			n -= len(part)
			var err error
			if choice.IntN(2) == 0 {
				half := len(part) / 2
				_, err = w.(interface {
					WriteBuffers(...[]byte) (int64, error)
				}).WriteBuffers(part[:half], nil, part[half:])
			} else {
				_, err = w.Write(part)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for library, client := range f.clients() {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				up := make([]byte, 3_000_000+i)
				rand.NewChaCha8([32]byte{byte(i)}).Read(up)
				down := 5_000_000 + i
				got := ask(client, "POST", f.url("/?n="+strconv.Itoa(down)), bytes.NewReader(up))
				want := make([]byte, down)
				readLikeHandler(want)
				if got.err != nil || len(got.body) != down || got.header.Get("X-Sum") != fmt.Sprintf("%x", sha256.Sum256(up)) {
					t.Errorf("%s: %v, %d bytes, %v", library, got.err, len(got.body), got.header)
				}
			})
		}
		all.Wait()
	}
}

func readLikeHandler(b []byte) { rand.NewChaCha8([32]byte{}).Read(b) }

func TestContinue(t *testing.T) {
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(403)
			return
		}
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		b, err := io.ReadAll(r.Body)
		fmt.Fprint(w, string(b), err)
	})
	for library, client := range f.clients() {
		continued, hints := 0, 0
		trace := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
			Got100Continue: func() { continued++ },
			Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
				if code == 103 && header.Get("Link") != "" {
					hints++
				}
				return nil
			},
		})
		for path, want := range map[string]string{"/yes": "200 body<nil>", "/no": "403 "} {
			req, _ := http.NewRequestWithContext(trace, "POST", f.url(path), strings.NewReader("body"))
			req.Header.Set("Expect", "100-continue")
			resp, err := client.Do(req)
			must(t, err)
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if got := fmt.Sprint(resp.StatusCode, " ", string(b)); got != want {
				t.Errorf("%s %s: %s", library, path, got)
			}
		}
		// x/net's transport does not wait, and so gets no answer.
		if continued != 1 && library == "net/http" || hints != 1 {
			t.Errorf("%s: %d times 100, %d times 103", library, continued, hints)
		}
	}
}

func TestContextsEnd(t *testing.T) {
	entered, left := make(chan struct{}), make(chan error)
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		entered <- struct{}{}
		<-r.Context().Done()
		_, err := w.Write(make([]byte, 10000))
		_, readErr := r.Body.Read(make([]byte, 1))
		left <- errors.Join(err, readErr)
	})
	for _, how := range []string{"reset", "connection closed"} {
		p := f.dial().greet()
		id := p.open(false, post()...)
		<-entered
		if how == "reset" {
			must(t, p.framer.WriteRSTStream(id, http2.ErrCodeCancel))
		} else {
			p.conn.Close()
		}
		if err := <-left; err == nil {
			t.Errorf("%s: the handler could go on writing", how)
		}
	}
}

func TestPanicsEndOneStream(t *testing.T) {
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("boom")
		}
	})
	p := f.dial().greet()
	p.open(true, ":method", "GET", ":scheme", "https", ":path", "/panic")
	if got := p.outcome(); got != (outcome{stream: 1, code: http2.ErrCodeInternal}) {
		t.Errorf("panic: %+v", got)
	}
	p.open(true, get()...)
	if got := p.outcome(); got.status != "200" {
		t.Errorf("afterwards: %+v", got)
	}
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	block := make(chan struct{})
	f := start(t, func(http.ResponseWriter, *http.Request) { <-block }, func(o *Options) { o.MaxConcurrentStreams = 2 })
	p := f.dial().greet()
	first := p.open(true, get()...)
	p.open(true, get()...)
	if got := func() outcome { p.open(true, get()...); return p.outcome() }(); got != (outcome{stream: 5, code: http2.ErrCodeRefusedStream}) {
		t.Errorf("got %+v", got)
	}
	// Handlers that still run count, whatever the client thinks of them.
	must(t, p.framer.WriteRSTStream(first, http2.ErrCodeCancel))
	p.open(true, get()...)
	if got := p.outcome(); got != (outcome{stream: 7, code: http2.ErrCodeRefusedStream}) {
		t.Errorf("after a reset: %+v", got)
	}
	close(block)
	if got := p.outcome(); got != (outcome{stream: 3, status: "200"}) {
		t.Errorf("got %+v", got)
	}
}

// TestStreamsThatHaveEndedDoNotCount has a client open a stream as soon as it may,
// before the one that has just ended has been tidied up.
func TestStreamsThatHaveEndedDoNotCount(t *testing.T) {
	finish := make(chan struct{})
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "done")
		answer := w.(*response)
		answer.end()
		answer.st.conn.Push()
		<-finish
	}, func(o *Options) { o.MaxConcurrentStreams = 1 })
	p := f.dial().greet()
	for range 3 {
		id := p.open(true, get()...)
		if got := p.outcome(); got != (outcome{stream: id, status: "200"}) {
			t.Errorf("got %+v", got)
		}
	}
	close(finish)
}

// TestClosedBodiesAreNotWaitedFor closes a body that another goroutine reads.
func TestClosedBodiesAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error)
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			go func() {
				_, err := r.Body.Read(make([]byte, 1))
				result <- err
			}()
			synctest.Wait()
			r.Body.Close()
			if err := <-result; !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("got %v", err)
			}
		})
		p := f.dial().greet()
		p.open(false, post()...)
		if got := p.outcome(); got.status != "200" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestDeadlines(t *testing.T) {
	result := make(chan error, 1)
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.URL.Path == "/read" {
			must(t, control.SetReadDeadline(time.Now().Add(20*time.Millisecond))) //passes: the read ends by it
			_, err := r.Body.Read(make([]byte, 1))
			result <- err
			return
		}
		var stop *time.Timer
		if r.URL.Path == "/late" { // while the write is under way
			stop = time.AfterFunc(20*time.Millisecond, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
		} else {
			must(t, control.SetWriteDeadline(time.Now().Add(20*time.Millisecond))) //passes: the write ends by it
		}
		_, err := w.Write(make([]byte, 100000)) // more than the window
		if stop != nil {
			stop.Stop()
		}
		result <- err
	})
	for _, path := range []string{"/read", "/write", "/late"} {
		p := f.dial().greet()
		p.open(false, ":method", "POST", ":scheme", "https", ":path", path)
		if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
		got := p.outcome()
		if want := (outcome{stream: 1, code: http2.ErrCodeInternal}); path != "/read" && got != want {
			t.Errorf("%s: the client got %+v", path, got)
		}
	}
}

// startNetHTTP serves with net/http's own HTTP/2.
func startNetHTTP(t testing.TB, handler http.HandlerFunc, change ...func(*http.Server)) *fixture {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	pair, err := certificate()
	must(t, err)
	f := &fixture{t: t, addr: listener.Addr().String(), http: &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}, served: make(chan error, 1)}
	f.http.TLSConfig = tlsConfig(pair)
	f.http.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			f.conns.Add(1)
		case http.StateClosed:
			f.conns.Done()
		}
	}
	for _, apply := range change {
		apply(f.http)
	}
	go func() { f.served <- f.http.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		f.http.Close()
		<-f.served
		f.conns.Wait() // after a GOAWAY a connection takes a second to end
	})
	return f
}

// TestContentLengthIsKept is about handlers that do not do what they announce.
func TestContentLengthIsKept(t *testing.T) {
	result := make(chan error, 1)
	f := start(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		_, err := io.WriteString(w, r.URL.Path)
		result <- err
	})
	for _, client := range f.clients() {
		got := ask(client, "GET", f.url("/1234567"), nil)
		if err := <-result; !errors.Is(err, http.ErrContentLength) || got.err == nil {
			t.Errorf("too much: %v, the client got %+v", err, got)
		}
		got = ask(client, "GET", f.url("/1"), nil)
		if err := <-result; err != nil || got.err == nil {
			t.Errorf("too little: %v, the client got %+v", err, got)
		}
	}
}
