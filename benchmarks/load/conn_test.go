package load

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// serve starts net/http's server.
func serve(t testing.TB, h http.HandlerFunc) (address string, config *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s.Listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: "example.com"}
}

func dial(t testing.TB, o Options, h http.HandlerFunc) *Conn {
	t.Helper()
	address, config := serve(t, h)
	c, err := Dial(t.Context(), address, config, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestBodiesArriveWholeBothWays(t *testing.T) {
	c := dial(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Method", r.Method+r.URL.RawQuery)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			body := make([]byte, i*i*10_000)
			_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(body)
			answer := c.Do(t.Context(), Request{Method: "PUT", Path: fmt.Sprintf("/x?%d", i), Body: body})
			if err := answer.Check(201); err != nil {
				t.Error(err)
			}
			if sha256.Sum256(answer.Body) != sha256.Sum256(body) {
				t.Errorf("of %d bytes came back %d, or others", len(body), len(answer.Body))
			}
		})
	}
	wg.Wait()
}

func TestAnswersSayWhatTheServerSaid(t *testing.T) {
	c := dial(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/headers":
			w.Header().Set("X-Long", strings.Repeat("x", 40_000)) // takes CONTINUATION
			w.WriteHeader(http.StatusNoContent)
		case "/trailer":
			w.Header().Set("Trailer", "X-After")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-After", "y")
		default:
			w.WriteHeader(http.StatusEarlyHints)
			http.Error(w, r.Header.Get("Accept"), http.StatusTeapot)
		}
	})
	if a := c.Do(t.Context(), Request{Path: "/abort"}); a.Err == nil {
		t.Errorf("a handler that panics answered %d %q", a.Status, a.Body)
	}
	if a := c.Do(t.Context(), Request{Path: "/headers"}); a.Check(204) != nil {
		t.Error(a.Check(204))
	}
	if a := c.Do(t.Context(), Request{Path: "/trailer"}); a.Check(0) != nil || string(a.Body) != "body" {
		t.Errorf("%v, %q", a.Check(0), a.Body)
	}
	a := c.Do(t.Context(), Request{Path: "/", Header: []hpack.HeaderField{{Name: "accept", Value: "tea"}}})
	if a.Check(418) != nil || a.Check(0) == nil || string(a.Body) != "tea\n" {
		t.Errorf("%v, %q", a.Check(418), a.Body)
	}
}

func TestCloseEndsStreams(t *testing.T) {
	c := dial(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	answers := make(chan Answered, 3)
	for range cap(answers) {
		if err := c.Send(Request{Path: "/"}, &whole{done: func(a Answered) { answers <- a }}); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	for range cap(answers) {
		if a := <-answers; !errors.Is(a.Err, ErrClosed) {
			t.Errorf("ended by %v", a.Err)
		}
	}
	if err := c.Send(Request{Path: "/"}, &whole{}); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed connection sends: %v", err)
	}
}

func TestMoreStreamsThanTheServerAllows(t *testing.T) {
	c := dial(t, Options{}, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	room := c.Room()
	for range room {
		if err := c.Send(Request{Path: "/"}, &whole{done: func(Answered) {}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Send(Request{Path: "/"}, &whole{}); !errors.Is(err, ErrFull) || c.Room() != 0 {
		t.Errorf("stream %d: %v", room+1, err)
	}
}

// source is a server of watches: event n has the version n.
type source struct {
	mu      sync.Mutex
	watches []chan int
	twice   bool // the fifth event comes twice
	cut     bool // every watch ends after the fifth
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	events := make(chan int, 1000)
	s.mu.Lock()
	s.watches = append(s.watches, events)
	s.mu.Unlock()
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	write := func(e []byte) { _, _ = w.Write(e) }
	for {
		select {
		case n := <-events:
			e := sourceEvent(n, r.Header.Get("Accept") != "application/json")
			write(e)
			if n == 5 && s.twice {
				write(e)
			}
			_ = http.NewResponseController(w).Flush()
			if n == 5 && s.cut {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func sourceEvent(n int, protobuf bool) []byte {
	stamp := fmt.Sprint(time.Now().Add(-time.Second).UnixNano())
	padding := strings.Repeat("x", 3000)
	if !protobuf {
		return fmt.Appendf(nil, `{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"%d","annotations":{"%s":"%s"}},"x":"%s"}}`+"\n", n, sentKey, stamp, padding)
	}
	nested := func(number int, content ...[]byte) []byte {
		b := bytes.Join(content, nil)
		return append(binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(b))), b...)
	}
	meta := nested(1, nested(1, []byte("name")), nested(6, fmt.Append(nil, n)), []byte{7 << 3, 1}, nested(12, nested(1, []byte(sentKey)), nested(2, []byte(stamp))))
	object := append([]byte("k8s\x00"), append(nested(1, []byte("type")), nested(2, meta, nested(2, []byte(padding)))...)...)
	event := append(nested(1, []byte("MODIFIED")), nested(2, nested(1, object))...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

func (s *source) send(from, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := from; n < to; n++ {
		for _, w := range s.watches {
			w <- n
		}
	}
}

func gather(t *testing.T, s *source, o CrowdOptions) *Crowd {
	t.Helper()
	o.Address, o.TLS = serve(t, s.ServeHTTP)
	o.Path = "/watch?n={i}"
	c, err := Gather(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestACrowdSeesEverythingOnce(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		s := &source{}
		c := gather(t, s, CrowdOptions{Watchers: 25, PerConn: 10, Protobuf: protobuf})
		s.send(1, 101)
		if !c.Await(t.Context(), 2500) {
			t.Fatalf("%+v", c.Report(false))
		}
		r := c.Report(true)
		if r.Open != 25 || r.Ended != 0 || r.Least != 100 || r.Most != 100 || r.Events != 2500 || r.Disordered != 0 || r.Latency.Count != 2500 {
			t.Errorf("protobuf %t: %+v", protobuf, r)
		}
		if median := r.Latency.Quantile(0.5); median < time.Second || r.Bytes < 2500*3000 {
			t.Errorf("protobuf %t: median latency %s of what was sent a second late, %d bytes", protobuf, median, r.Bytes)
		}
		if r = c.Report(false); r.Events != 0 || r.Latency.Count != 0 || r.Total != 2500 {
			t.Errorf("after a lap: %+v", r)
		}
	}
}

func TestACrowdNoticesWhatIsWrong(t *testing.T) {
	s := &source{twice: true, cut: true}
	c := gather(t, s, CrowdOptions{Watchers: 3})
	s.send(1, 8)
	if c.Await(t.Context(), 1000) {
		t.Error("1000 events were seen of 3*6")
	}
	if r := c.Report(false); r.Ended != 3 || r.Open != 0 || r.Total != 18 || r.Disordered != 3 || len(r.Errors) == 0 {
		t.Errorf("%+v", r)
	}
	address, config := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not today", http.StatusGone) })
	if _, err := Gather(t.Context(), CrowdOptions{Address: address, TLS: config, Watchers: 2, Path: "/"}); err == nil || !strings.Contains(err.Error(), "410: not today") {
		t.Errorf("refused watches: %v", err)
	}
}

func TestStalledWatchersTakeNoMoreThanAWindow(t *testing.T) {
	for _, socket := range []bool{false, true} {
		s := &source{}
		c := gather(t, s, CrowdOptions{Watchers: 5, Stalled: 1, StalledSocket: socket})
		s.send(1, 101)
		if !c.Await(t.Context(), 4*100) {
			t.Fatalf("%+v", c.Report(false))
		}
		r := c.Report(false)
		if r.Least != 100 || r.Total != 400 || r.Open != 5 || r.Ended != 0 {
			t.Errorf("socket %t: %+v", socket, r)
		}
		if most := int64(400 + initialWindow/3000); r.Events < 400 || r.Events > most {
			t.Errorf("socket %t: %d events have arrived, at most %d can have", socket, r.Events, most)
		}
	}
}

func TestAWriterKeepsItsRate(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	address, config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen[r.Method+r.URL.Path]++
		if e, err := readJSON(append([]byte(`{"resourceVersion":"1",`), body...)); err != nil || time.Since(e.sent) > time.Minute {
			t.Errorf("%+v, %v in %s", e, err, body)
		}
		if seen["PUT/0"] == 5 && r.URL.Path == "/0" {
			w.WriteHeader(http.StatusConflict)
		}
	})
	objects := make([]Object, 4)
	for i := range objects {
		objects[i] = Object{Path: fmt.Sprintf("/%d", i), Body: fmt.Appendf(nil, `{"x":%d,"%s":"%s"}`, i, SentAnnotation, SentPlaceholder)}
	}
	w, err := NewWriter(t.Context(), WriterOptions{Address: address, TLS: config, Objects: objects, InFlight: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	out, err := w.Run(t.Context(), 1000, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if out.Due != 100 || out.Sent != 99 || len(out.Errors) != 1 || !strings.Contains(out.Errors[0], "409") || out.Latency.Count != 99 {
		t.Errorf("%+v", out)
	}
	mu.Lock()
	if seen["PUT/3"] != 25 {
		t.Errorf("not in turn: %v", seen)
	}
	mu.Unlock()
	stop := make(chan struct{})
	close(stop)
	if out, err := w.RunUntil(t.Context(), 1000, stop); err != nil || out.Due != 0 {
		t.Errorf("after the stop: %+v, %v", out, err)
	}
	if _, err := NewWriter(t.Context(), WriterOptions{Objects: []Object{{Body: []byte("{}")}}}); err == nil {
		t.Error("an object without the annotation is written")
	}
}

func TestPostStopsAtTheFirstError(t *testing.T) {
	c := dial(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/7":
			w.WriteHeader(http.StatusConflict)
		case r.URL.Path == "/20":
			http.Error(w, "no", http.StatusForbidden)
		}
	})
	n := 0
	requests := func(yield func(Request) bool) {
		for ; n < 1000; n++ {
			if !yield(Request{Method: "POST", Path: fmt.Sprintf("/%d", n), Body: []byte("{}")}) {
				return
			}
		}
	}
	if err := Post(t.Context(), c, 4, requests, http.StatusConflict); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("%v", err)
	}
	if n >= 1000 {
		t.Error("it went on")
	}
}
