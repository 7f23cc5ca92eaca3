package h2

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

// login is a handler that knows the clients that say "me".
func login(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "me" {
		w.Header().Set("X-Fields", fmt.Sprint(len(r.Header)))
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	w.(interface{ Authenticated() }).Authenticated()
	if r.URL.Path == "/wait" {
		<-r.Context().Done()
	}
	n, _ := io.Copy(io.Discard, r.Body)
	fmt.Fprint(w, n)
}

func unauthenticated(limits Unauthenticated) func(*Options) {
	return func(o *Options) { o.MaxConcurrentStreams, o.Unauthenticated = 1000, &limits }
}

// TestLimitsBeforeAuthentication: few streams, a small window and no compression table,
// until the client is known.
func TestLimitsBeforeAuthentication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/in" {
				w.(interface{ Authenticated() }).Authenticated()
				return
			}
			<-r.Context().Done()
		}, unauthenticated(Unauthenticated{MaxConcurrentStreams: 10}))
		p := f.dial()
		_, err := io.WriteString(p.conn, http2.ClientPreface)
		must(t, err)
		must(t, p.framer.WriteSettings())
		limits := map[http2.SettingID]uint32{}
		window := 65535
		settle := func() {
			must(t, p.framer.WritePing(false, [8]byte{}))
			for {
				switch f := p.read().(type) {
				case *http2.SettingsFrame:
					must(t, f.ForeachSetting(func(s http2.Setting) error {
						limits[s.ID] = s.Val
						if s.ID == http2.SettingHeaderTableSize {
							p.hpack.SetMaxDynamicTableSize(s.Val)
						}
						return nil
					}))
					if !f.IsAck() {
						must(t, p.framer.WriteSettingsAck())
					}
				case *http2.WindowUpdateFrame:
					window += int(f.Increment)
				case *http2.PingFrame:
					if f.IsAck() {
						return
					}
				}
			}
		}
		settle()
		if size, ok := limits[http2.SettingHeaderTableSize]; limits[http2.SettingMaxConcurrentStreams] != 10 || !ok || size != 0 || window != 65535 {
			t.Errorf("before: %v, a window of %d", limits, window)
		}
		for range 9 {
			p.open(true, get("a", "b")...)
		}
		in := get("a", "b")
		in[7] = "/in"
		p.open(true, in...)
		synctest.Wait()
		settle()
		if limits[http2.SettingMaxConcurrentStreams] != 1000 || limits[http2.SettingHeaderTableSize] != 4096 || window != 2<<20 {
			t.Errorf("after: %v, a window of %d", limits, window)
		}
		for range 500 {
			p.open(true, get("a", "b", "long", strings.Repeat("x", 100))...)
		}
		p.open(true, in...)
		if got := p.outcome(); got.status != "200" {
			t.Errorf("%+v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, unauthenticated(Unauthenticated{MaxConcurrentStreams: 10}))
		p := f.dial()
		_, err := io.WriteString(p.conn, http2.ClientPreface)
		must(t, err)
		must(t, p.framer.WriteSettings()) // and no acknowledgement
		for range 10 {
			p.open(true, get("a", "b")...)
		}
		id := p.open(true, get("a", "b")...)
		if got := p.outcome(); got != (outcome{code: http2.ErrCodeRefusedStream, stream: id}) {
			t.Errorf("one more stream: %+v", got)
		}
		must(t, p.framer.WriteSettingsAck())
		p.open(true, get("a", "b")...)
		if got := p.outcome(); got.code != http2.ErrCodeCompression {
			t.Errorf("fields from a table that the client has promised to empty: %+v", got)
		}
	})
}

// TestConnectionsEndAfterA401, but not those whose clients are known.
func TestConnectionsEndAfterA401(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startInMemory(t, login, unauthenticated(Unauthenticated{}))
		p := f.dial().greet()
		p.hpack.SetMaxDynamicTableSize(0)
		id := p.open(true, get()...)
		if got := p.outcome(); got.status != "401" {
			t.Errorf("%+v", got)
		}
		if _, last := p.ends(true); last == nil || last.ErrCode != http2.ErrCodeNo || last.LastStreamID != id {
			t.Errorf("ended with %+v", last)
		}
		p = f.dial().greet()
		p.hpack.SetMaxDynamicTableSize(0)
		p.open(true, get("authorization", "me")...)
		if got := p.outcome(); got.status != "200" {
			t.Errorf("%+v", got)
		}
		for range 3 {
			p.open(true, get()...)
			if got := p.outcome(); got.status != "401" {
				t.Errorf("%+v", got)
			}
		}
	})
}

// TestClientsOfGoLogIn: Go's own clients follow the changes of the limits, with large
// bodies in the first request, and fields that they compress.
func TestClientsOfGoLogIn(t *testing.T) {
	f := start(t, login, unauthenticated(Unauthenticated{}))
	for library, client := range f.clients() {
		for round := range 3 {
			done := make(chan string, 150)
			for i := range cap(done) {
				go func() {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url("/"), strings.NewReader(strings.Repeat("x", 200_000)))
					if err != nil {
						done <- err.Error()
						return
					}
					req.Header.Set("Authorization", "me")
					req.Header.Set("X-Same", strings.Repeat("same", 50))
					req.Header.Set("X-Other", fmt.Sprint(i))
					resp, err := client.Do(req)
					if err != nil {
						done <- err.Error()
						return
					}
					defer resp.Body.Close()
					body, err := io.ReadAll(resp.Body)
					done <- fmt.Sprint(string(body), " ", err)
				}()
			}
			for range cap(done) {
				if got := <-done; got != "200000 <nil>" {
					t.Fatalf("%s, round %d: %s", library, round, got)
				}
			}
		}
	}
	if held := f.server.HeldBytes(); held != 0 {
		t.Errorf("%d bytes are counted of connections that are known", held)
	}
}

// manyFields are as many small header fields as one request may have.
func manyFields() []string {
	fields := get()
	for i := range 1500 {
		fields = append(fields, fmt.Sprintf("x%d", i), "")
	}
	return fields
}

// TestUnauthenticatedClientsShareABudget: clients that do not say who they are send
// header lists and keep their windows shut. They hold no more than the budget, and a
// client that comes after them gets in.
func TestUnauthenticatedClientsShareABudget(t *testing.T) {
	const budget = 8 << 20
	var running atomic.Int64
	entered := make(chan struct{}, 10_000)
	f := start(t, counted(&running, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		login(w, r)
	}), unauthenticated(Unauthenticated{MaxBytes: budget}))
	before := liveHeap()
	var attackers []*peer
	for range 4 {
		p := f.dial().greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		p.hpack.SetMaxDynamicTableSize(0)
		block := append([]byte(nil), p.encode(manyFields()...)...)
		go func() { // what the server answers must not fill the socket
			for {
				if _, err := p.framer.ReadFrame(); err != nil {
					return
				}
			}
		}()
		for range 200 { // or until the server has had enough
			if p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: p.next, BlockFragment: block, EndHeaders: true, EndStream: true}) != nil {
				break
			}
			p.next += 2
		}
		attackers = append(attackers, p)
	}
	for range 4 {
		<-entered
	}
	if held := f.server.HeldBytes(); held > budget {
		t.Errorf("%d bytes are held, of %d", held, budget)
	}
	// What a connection is decoding is not counted before it is a request.
	if held := liveHeap() - before; int64(held) > 8*budget {
		t.Errorf("the heap has grown by %d bytes, with a budget of %d", held, budget)
	}
	for range 20 {
		p := f.dial().greet()
		p.hpack.SetMaxDynamicTableSize(0)
		p.open(true, get("authorization", "me")...)
		if got := p.outcome(); got.status != "200" {
			t.Fatalf("a client that says who it is: %+v", got)
		}
	}
	for _, p := range attackers {
		p.conn.Close()
	}
	f.http.Close()
	f.conns.Wait()
	if held := f.server.HeldBytes(); held != 0 || running.Load() != 0 {
		t.Errorf("%d bytes are counted of connections that are closed, %d handlers run", held, running.Load())
	}
}

// TestHeaderBlocksInPieces that never end count, too.
func TestHeaderBlocksInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 1 << 20
		f := startInMemory(t, login, unauthenticated(Unauthenticated{MaxBytes: budget}))
		for range 20 {
			p := f.dial().greet()
			p.hpack.SetMaxDynamicTableSize(0)
			must(t, p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.encode(manyFields()[:2000]...)}))
			synctest.Wait()
		}
		if held := f.server.HeldBytes(); held > budget || held < budget/2 {
			t.Errorf("%d bytes are held, of %d", held, budget)
		}
		p := f.dial().greet()
		p.hpack.SetMaxDynamicTableSize(0)
		p.open(true, get("authorization", "me")...)
		if got := p.outcome(); got.status != "200" {
			t.Errorf("%+v", got)
		}
	})
}
