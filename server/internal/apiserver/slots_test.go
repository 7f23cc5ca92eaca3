package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/levelwire/levelwire/internal/testwait"
	"github.com/levelwire/levelwire/server/internal/apiserver/request"
	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/storage"
)

const (
	greedyToken = "the-token-of-an-attacker"
	adminToken  = "the-token-of-an-administrator"
)

// threeUsers adds an attacker and an administrator to the test's user.
func threeUsers(s *setup) {
	s.config.Tokens = auth.NewStaticTokens(map[string]auth.User{
		testToken:   {Name: "tester", Groups: []string{"testers"}},
		greedyToken: {Name: "greedy"},
		adminToken:  {Name: "admin", Groups: []string{auth.Masters}},
	})
}

// attacker is an HTTP/2 connection whose client does nothing but what a test says.
type attacker struct {
	t       testing.TB
	conn    io.Closer
	framer  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	decoder *hpack.Decoder
	next    uint32
	window  int // of the connection, for bodies
	token   string
}

func (c *cluster) attack(token string, settings ...http2.Setting) *attacker {
	c.t.Helper()
	conn, framer := c.dialHTTP2(settings...)
	framer.SetMaxReadFrameSize(1 << 20)
	a := &attacker{t: c.t, conn: conn, framer: framer, decoder: hpack.NewDecoder(4096, nil), next: 1, window: 65535, token: token}
	a.encoder = hpack.NewEncoder(&a.block)
	a.encoder.SetMaxDynamicTableSizeLimit(0)
	return a
}

// attackKnown is attack by a client that the server knows already, so that it may open more streams than others.
func (c *cluster) attackKnown(token string) *attacker {
	c.t.Helper()
	a := c.attack(token)
	a.send("GET", "/version", true)
	if codes := a.answered(1); codes["200"] != 1 {
		c.t.Fatalf("/version: %v", codes)
	}
	return a
}

// send opens a stream.
func (a *attacker) send(method, path string, end bool, fields ...string) uint32 {
	a.t.Helper()
	a.block.Reset()
	all := append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path, "authorization", "Bearer " + a.token}, fields...)
	for i := 0; i < len(all); i += 2 {
		must(a.t, a.encoder.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]}))
	}
	id := a.next
	a.next += 2
	rest := a.block.Bytes()
	first := rest[:min(len(rest), 16<<10)]
	rest = rest[len(first):]
	must(a.t, a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndHeaders: len(rest) == 0, EndStream: end}))
	for len(rest) > 0 {
		next := rest[:min(len(rest), 16<<10)]
		rest = rest[len(next):]
		must(a.t, a.framer.WriteContinuation(id, len(rest) == 0, next))
	}
	return id
}

// read returns the next frame, and the fields of a header block.
func (a *attacker) read() (http2.Frame, []hpack.HeaderField) {
	a.t.Helper()
	frame, err := a.framer.ReadFrame()
	must(a.t, err)
	switch f := frame.(type) {
	case *http2.HeadersFrame:
		fields, err := a.decoder.DecodeFull(f.HeaderBlockFragment())
		must(a.t, err)
		return f, fields
	case *http2.SettingsFrame:
		if !f.IsAck() {
			must(a.t, a.framer.WriteSettingsAck())
		}
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			a.window += int(f.Increment)
		}
	case *http2.GoAwayFrame:
		if f.ErrCode != http2.ErrCodeNo {
			a.t.Fatalf("the server ends the connection: %v %s", f.ErrCode, f.DebugData())
		}
	}
	return frame, nil
}

// answered reads until n streams have been answered, and returns how often with which
// status; "refused" for those that the server did not take.
func (a *attacker) answered(n int) map[string]int {
	a.t.Helper()
	codes := map[string]int{}
	for n > 0 {
		frame, fields := a.read()
		if fields != nil {
			codes[fields[0].Value]++
			n--
		}
		if reset, ok := frame.(*http2.RSTStreamFrame); ok && reset.ErrCode == http2.ErrCodeRefusedStream {
			codes["refused"]++
			n--
		}
	}
	return codes
}

// settle returns when the server has read all frames that were sent.
func (a *attacker) settle() {
	a.t.Helper()
	must(a.t, a.framer.WritePing(false, [8]byte{7}))
	for {
		frame, _ := a.read()
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() && ping.Data == [8]byte{7} {
			return
		}
	}
}

// data sends n bytes of a body, once handlers have read so much of others that the
// connection's window allows it.
func (a *attacker) data(stream uint32, n int) {
	a.t.Helper()
	for a.window < n {
		a.read()
	}
	a.window -= n
	must(a.t, a.framer.WriteData(stream, false, make([]byte, n)))
}

const newConfigMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-"}}`

// post creates something as the user of a token.
func (c *cluster) post(token string) reply {
	return c.do(http.MethodPost, "/api/v1/namespaces/default/configmaps", newConfigMap,
		"Authorization: Bearer "+token, "Content-Type: application/json")
}

// TestBodiesThatDoNotComeHoldNoSlots: requests whose bodies are announced and not sent,
// more than there are slots, delay no other user's writes.
func TestBodiesThatDoNotComeHoldNoSlots(t *testing.T) {
	c := newCluster(t, threeUsers)
	for _, token := range []string{greedyToken, testToken} { // another user's, and its own
		a := c.attackKnown(token)
		for range 420 {
			a.send("POST", "/api/v1/namespaces/default/configmaps", false, "content-type", "application/json", "content-length", "1000")
		}
		a.settle()
		for range 20 {
			if got := c.post(testToken); got.code != http.StatusCreated {
				t.Fatalf("%d %s", got.code, got.body)
			}
		}
	}
}

// TestElementsOfBodiesAreBounded: what a body takes when it is decoded counts, and not what it is long: a container of
// three bytes takes a kilobyte.
func TestElementsOfBodiesAreBounded(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.MaxBodyBytesInFlight = 40 << 20 })
	post := func(elements int) int {
		body := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[` + strings.TrimSuffix(strings.Repeat("{},", elements), ",") + `]}}`
		return c.do(http.MethodPost, "/api/v1/namespaces/default/pods?dryRun=All", body).code
	}
	for _, test := range []struct{ elements, code int }{{2000, 422}, {100_000, 429}, {200_000, 413}, {2000, 422}} {
		if got := post(test.elements); got != test.code {
			t.Errorf("a pod with %d empty containers: %d, want %d", test.elements, got, test.code)
		}
	}
	if used := c.server.bodies.InUse(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// TestBodiesInMemoryAreBounded: bodies that stop before their ends take a part of the
// memory for bodies, and none of what other users need.
func TestBodiesInMemoryAreBounded(t *testing.T) {
	const limit = 2 << 20
	c := newCluster(t, threeUsers, func(s *setup) { s.config.MaxBodyBytes, s.config.MaxBodyBytesInFlight = 64<<10, limit })
	a := c.attack(greedyToken)
	for range 100 { // each keeps up to 64 kB
		id := a.send("POST", "/api/v1/namespaces/default/configmaps", false, "content-type", "application/json", "content-length", "65536")
		a.data(id, 10_000)
		a.settle()
	}
	for id := uint32(1); id < a.next; id += 2 {
		for range 3 {
			a.data(id, 16_000)
		}
		a.settle()
	}
	if used := c.server.bodies.InUse(); used == 0 || used > limit*3/4 {
		t.Errorf("%d bytes of bodies are kept, of %d", used, limit)
	}
	for _, token := range []string{testToken, adminToken} {
		if got := c.post(token); got.code != http.StatusCreated {
			t.Errorf("%d %s", got.code, got.body)
		}
	}
	a.conn.Close()
	testwait.Stable(t, "the memory of bodies is given back", func() (any, bool) { seen := c.server.bodies.InUse(); return seen, seen == 0 })
}

// TestAnswersThatAreNotReadHoldNoSlots: lists whose stream windows stay shut, more than
// there are slots, delay no other user's reads.
func TestAnswersThatAreNotReadHoldNoSlots(t *testing.T) {
	c := newCluster(t, threeUsers)
	big := testPod("a", "big", nil, "")
	big.Annotations = map[string]string{"fill": strings.Repeat("x", 100<<10)}
	c.cached(c.put(big)) // an answer without it would be short, and need no slot until it is sent
	for _, path := range []string{"/api/v1/pods?resourceVersion=0", "/api/v1/namespaces/a/pods/big?resourceVersion=0", "/api/v1/pods?resourceVersion=0&watch=1"} {
		a := c.attack(greedyToken, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		accepted := 0
		for accepted < 850 {
			const batch = 50
			for range batch {
				a.send("GET", path, true)
			}
			accepted += a.answered(batch)["200"]
			testwait.Stable(t, "slots are given back while a client does not read", func() (any, bool) { seen := c.server.readSlots.Parked(); return seen, seen == int64(accepted) })
		}
		for _, token := range []string{greedyToken, testToken, adminToken} {
			testwait.Stable(t, "another user can read", func() (any, bool) {
				seen := c.get("/api/v1/pods?resourceVersion=0", "Authorization: Bearer "+token).code
				return seen, seen == http.StatusOK
			})
		}
		a.conn.Close()
		testwait.Stable(t, "slots are given back", func() (any, bool) {
			used, parked := c.server.readSlots.InUse(), c.server.readSlots.Parked()
			return []int64{used, parked}, used == 0 && parked == 0
		})
	}
}

// TestOneUserCannotHoldAllSlots: others have their shares, and administrators slots of
// their own.
func TestOneUserCannotHoldAllSlots(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 100), open: make(chan struct{})}
	c := newCluster(t, threeUsers, func(s *setup) {
		g.Reader, s.config.Store = s.config.Store, g
		s.config.MaxReadsInFlight = 20
	})
	a := c.attack(greedyToken)
	const asked = 40
	for range asked {
		a.send("GET", "/api/v1/pods", true) // which waits for the gate
	}
	if codes := a.answered(asked - 15); codes["429"] != asked-15 {
		t.Errorf("answers: %v", codes)
	}
	for _, token := range []string{testToken, adminToken} {
		if got := c.get("/api/v1/pods?resourceVersion=0", "Authorization: Bearer "+token); got.code != http.StatusOK {
			t.Errorf("%d %s", got.code, got.body)
		}
	}
	close(g.open)
	if codes := a.answered(15); codes["200"] != 15 {
		t.Errorf("answers after the gate was opened: %v", codes)
	}
}

// TestWatchesHoldASlotUntilTheirInitialEventsAreSent, and none after that.
func TestWatchesHoldASlotUntilTheirInitialEventsAreSent(t *testing.T) {
	c := newCluster(t, func(s *setup) { s.config.MaxReadsInFlight = 1 })
	first := c.put(testPod("a", "one", nil, ""))
	otherUser := auth.User{Name: "other"}
	other := c.server.readSlots.Slot(t.Context(), otherUser, c.server.readSeats.Flow(otherUser))
	must(t, other.Take())
	stream := c.watch("/api/v1/pods?watch=1&resourceVersion=0") // the answer begins without a slot
	testwait.Stable(t, "the watch waits for a slot", func() (any, bool) { seen := c.server.readSlots.Waiting(); return seen, seen == 1 })
	other.Release()
	stream.want(fmt.Sprintf("ADDED one@%d", first))
	testwait.Stable(t, "the watch gives back its slot", func() (any, bool) { seen := c.server.readSlots.InUse(); return seen, seen == 0 })
	must(t, other.Take())
	defer other.Release()
	rev := c.put(testPod("a", "two", nil, ""))
	stream.want(fmt.Sprintf("ADDED two@%d", rev)) // without one

	// A watch that waits ends with its time.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	resp := c.open(ctx, c.client, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=1", "") //passes: the watch waits for a slot until then
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || len(body) > 0 {
		t.Errorf("%v: %s", err, body)
	}
}

// TestSelectorsAreBounded: their size in each request, and what all watches of a user
// have of them.
func TestSelectorsAreBounded(t *testing.T) {
	c := newCluster(t, threeUsers)
	long := "labelSelector=a+in+(" + strings.Repeat("x,", request.MaxSelectorBytes/2) + "y)"
	for _, path := range []string{"/api/v1/pods?", "/api/v1/pods?watch=1&"} {
		if got := c.get(path + long); got.code != http.StatusBadRequest || !strings.Contains(got.status(t).Message, "selectors") {
			t.Errorf("%s: %d %.200s", path, got.code, got.body)
		}
	}
	path := "/api/v1/pods?watch=1&resourceVersion=0&labelSelector=a+in+(" + strings.Repeat("x,", request.MaxSelectorBytes/2-10) + "y)"
	a := c.attack(greedyToken)
	const watches = 900
	for range watches / 50 {
		for range 50 {
			a.send("GET", path, true)
		}
		a.answered(50) // its selectors are held by then, or refused
	}
	if used := c.server.selectors.InUse(); used < selectorBytes/2 || used > selectorBytes*3/4 {
		t.Errorf("selectors of %d bytes are open", used)
	}
	c.watch(path) // of another user
	a.conn.Close()
	testwait.Stable(t, "selectors are given back", func() (any, bool) { seen := c.server.selectors.InUse(); return seen, seen < 2*request.MaxSelectorBytes })
}

// TestWatchesOfAUserAreBounded: one user cannot open all that there may be.
func TestWatchesOfAUserAreBounded(t *testing.T) {
	c := newCluster(t, threeUsers, func(s *setup) { s.config.MaxWatches = 40 })
	a := c.attack(greedyToken)
	for range 60 {
		a.send("GET", "/api/v1/pods?watch=1", true)
	}
	if codes := a.answered(60); codes["200"] != 30 || codes["429"] != 30 {
		t.Errorf("answers: %v", codes)
	}
	c.watch("/api/v1/pods?watch=1") // of another user
	c.watch("/api/v1/pods?watch=1", "Authorization: Bearer "+adminToken)
	metrics := string(c.get("/metrics").body)
	for _, want := range []string{`levelwire_user_shares_in_use{resource="watches"} 32`, `levelwire_user_shares_limit{resource="watches"} 40`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	a.conn.Close()
	testwait.Stable(t, "watches that have ended are not counted", func() (any, bool) { seen := c.server.watches.InUse(); return seen, seen == 2 })
}

// TestLimitOfWatchesOfEachUser holds where a user's share would be more, and not for
// administrators.
func TestLimitOfWatchesOfEachUser(t *testing.T) {
	c := newCluster(t, threeUsers, func(s *setup) { s.config.MaxWatchesPerUser = 5 })
	for token, want := range map[string]int{greedyToken: 5, testToken: 5, adminToken: 10} {
		a := c.attack(token)
		for range 10 {
			a.send("GET", "/api/v1/pods?watch=1", true)
		}
		if codes := a.answered(10); codes["200"] != want {
			t.Errorf("answers to %s: %v, want %d", token, codes, want)
		}
	}
}

// TestBodiesOfWatchesAreNotKept: those over HTTP/1.1 are read, and could take memory that
// nothing bounds.
func TestBodiesOfWatchesAreNotKept(t *testing.T) {
	const watches, sent = 40, 2 << 20
	c := newCluster(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range watches {
		conn := c.dialHTTP1()
		_, err := fmt.Fprintf(conn, "GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", testToken, sent+1)
		must(t, err)
		_, err = conn.Write(make([]byte, sent)) // more than the buffers of the connection hold
		must(t, err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > watches*sent/4 {
		t.Errorf("%d watches with bodies of %d bytes hold %d", watches, sent, held)
	}
}

// TestWebSocketsThatAreNotReadHoldNoSlots: the initial events of a watch do not fit into
// the buffers of its connection, and the client reads none.
func TestWebSocketsThatAreNotReadHoldNoSlots(t *testing.T) {
	c := newCluster(t)
	var last storage.Revision
	for i := range 200 {
		big := testPod("a", fmt.Sprintf("big-%d", i), nil, "")
		big.Annotations = map[string]string{"fill": strings.Repeat("x", 200<<10)}
		last = c.put(big)
	}
	c.cached(last) // a watch needs no slot for what comes after its initial events
	conn := c.dialHTTP1()
	_, err := fmt.Fprintf(conn, "GET /api/v1/pods?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", testToken)
	must(t, err)
	testwait.Stable(t, "a WebSocket that is not read gives back its slot", func() (any, bool) {
		used, parked := c.server.readSlots.InUse(), c.server.readSlots.Parked()
		return []int64{used, parked}, used == 0 && parked == 1
	})
	conn.Close()
	testwait.Stable(t, "the slot is given back", func() (any, bool) {
		used, parked := c.server.readSlots.InUse(), c.server.readSlots.Parked()
		return []int64{used, parked}, used == 0 && parked == 0
	})
}
