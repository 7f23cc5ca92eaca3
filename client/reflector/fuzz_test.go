package reflector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
)

// FuzzMisbehavingServer lets a server give good and broken answers, as the input says, and
// then behave. While it misbehaves, nothing ends the Reflector, requests are spaced, and
// LastContact is never later than the last moment at which the store was right, but for what was
// on its way. In the end
// the store equals the server's state.
func FuzzMisbehavingServer(f *testing.F) {
	for fault := range byte(faults) {
		f.Add(byte(0), byte(0), []byte{fault, fault, fault, fault, fault, fault, fault, fault})
		f.Add(fault, fault, []byte{0, fault, 0, fault + 1, 1, fault + 2, 0, fault, 2, fault})
		f.Add(byte(1), fault%16, []byte{fault, 0, fault, 0, fault, 0, fault, 0})
	}
	// What it has found.
	f.Add(byte('.'), noClosingMark, []byte("x,77x8C#00"))
	f.Add(byte(0), byte(0), []byte("177#011\"\""))
	f.Add(byte(2), byte(0), []byte("70\"70\"x0"))
	f.Add(byte('Z'), noClosingMark|noStreaming, []byte("709[#0112'"))
	f.Add(byte(1), pagesAlways, []byte("xxxx$x9"))
	f.Add(byte(0), byte('R'), []byte("\"Xc0\xf12\xf1\xf0A"))
	f.Add(byte('['), pagesAlways|noStreaming, []byte("770877077"))
	f.Add(byte(0x8d), byte('2'), []byte("BxX1177C7z2C\xfc\xfc2"))
	f.Add(byte(0x18), byte(0xd8), []byte("0707\xb7\xb7\xb7\xb7\xb7'70"))
	for _, slow := range []string{"\xf0\xf0\xf0\xf0", "\xf1\xf1\xf1\xf1", "0\xf10\xf0\xf1x\xf0", "\xf1\x0f\xf1\x00\xf1"} {
		for options := range byte(4) {
			f.Add(options, byte(0), []byte(slow))
			f.Add(options, noBookmarks, []byte("xx"+slow))
		}
	}
	f.Fuzz(func(t *testing.T, options, traits byte, faults []byte) {
		if len(faults) == 0 || len(faults) > 64 {
			return
		}
		synctest.Test(t, func(t *testing.T) { misbehave(t, options, traits, faults) })
	})
}

// Traits of a server that behaves.
const (
	pagesAlways   byte = 1 << iota // without being asked for pages
	noBookmarks                    // in watches
	noClosingMark                  // of initial events: the server takes sendInitialEvents for an unknown option
	noStreaming                    // lists: 422
)

// chaosServer is a server of config maps. Each request takes one byte, which says what is
// wrong with its answer; when there are none left, answers are right.
type chaosServer struct {
	mu       sync.Mutex // is not held while something is written
	faults   []byte
	traits   byte
	pipe     *faultnet.Pipe
	version  int
	objects  map[string]int
	history  []chaosEvent // of version n at n-1
	states   []chaosState
	slow     []slowWatch
	changed  chan struct{}
	requests []time.Time
}

// chaosState is what the store must hold, as fmt prints it, from a moment on.
type chaosState struct {
	from time.Time
	want string
}

// slowWatch is a watch whose first answer is sent slowly: while it is, the changes since its version are
// on their way.
type slowWatch struct {
	from         int
	begun, ended time.Time // zero: it is still sending
}

type chaosEvent struct{ typ, name string }

// change makes the next version. It needs mu.
func (s *chaosServer) change(random byte) {
	name := string(rune('a' + random%5))
	s.version++
	switch _, exists := s.objects[name]; {
	case exists && random%3 == 0:
		delete(s.objects, name)
		s.history = append(s.history, chaosEvent{"DELETED", name})
	case exists:
		s.objects[name] = s.version
		s.history = append(s.history, chaosEvent{"MODIFIED", name})
	default:
		s.objects[name] = s.version
		s.history = append(s.history, chaosEvent{"ADDED", name})
	}
	versions := map[string]string{}
	for name, version := range s.objects {
		versions[name] = strconv.Itoa(version)
	}
	s.states = append(s.states, chaosState{time.Now(), fmt.Sprint(versions)})
	close(s.changed)
	s.changed = make(chan struct{})
}

// state is the last one.
func (s *chaosServer) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[len(s.states)-1].want
}

// sends notes that a watch begins to send slowly what has changed since a version. The function notes
// that it has ended that. It needs mu, and the function must be called without.
func (s *chaosServer) sends(from int) (ended func()) {
	n := len(s.slow)
	s.slow = append(s.slow, slowWatch{from: from, begun: time.Now()})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.slow[n].ended.IsZero() {
			s.slow[n].ended = time.Now()
		}
	}
}

// misbehaves reports whether there are faults to come.
func (s *chaosServer) misbehaves() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults) > 0
}

// wasSince reports whether a state was the server's at a moment of contact, or later, or since what was on
// its way then: for so long, or since the version whose changes a watch was sending slowly.
func (s *chaosServer) wasSince(state string, contact time.Time, onItsWay time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	moment := contact.Add(-onItsWay)
	for _, watch := range s.slow {
		under := !contact.Before(watch.begun) && (watch.ended.IsZero() || !contact.After(watch.ended))
		if from := s.states[watch.from-1].from; under && from.Before(moment) {
			moment = from
		}
	}
	for n := len(s.states) - 1; n >= 0; n-- {
		if s.states[n].want == state {
			return true
		}
		if s.states[n].from.Before(moment) {
			break // the states before this one had ended
		}
	}
	return false
}

func (s *chaosServer) take() byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, time.Now())
	if len(s.faults) == 0 {
		return 0
	}
	fault := s.faults[0]
	s.faults = s.faults[1:]
	s.change(fault)
	if fault >= slowFaults {
		return faults + fault%2
	}
	return fault % faults
}

// faults is how many kinds of faults there are: 0 is none, and those of garbled answers
// are in list, in garbled and in watch.
const faults = 40

// slowFaults is the first byte of an answer that comes in parts, half a minute apart, all of them
// (faults) or all but the last (faults + 1).
const slowFaults = 240

// refusals are faults of every request.
var refusals = map[byte]answer{
	1: refusal("500"), 2: refusal("503 86400"), 3: refusal("429 2147483647"), 4: page(502), 5: page(200), 6: refusal("410"), 7: raw(`{}`),
	8: raw(`{"kind":"Status","status":"Failure","details":{"retryAfterSeconds":-1}}`), 9: refusal("504large"), 10: page(404), 11: end,
	24: refusal("401"), 25: refusal("403"), 26: refusal("405"), 27: refusal("406"), 28: refusal("415"), 29: refusal("422"),
	30: refusal("429 1"), 31: refusal("503"), 32: refusal("501"), 33: refusal("404"),
}

func (s *chaosServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost: // the question for a difference
		refusal("404")(nil, w, r)
		return
	case r.URL.Path == "/api/v1":
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[{"name":"configmaps"}]}`)
		return
	}
	fault := s.take()
	if refuse := refusals[fault]; refuse != nil {
		refuse(nil, w, r)
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r, fault)
		return
	}
	s.list(w, r, fault)
}

// list gives pages of two objects. Later pages are of the version in the token.
func (s *chaosServer) list(w http.ResponseWriter, r *http.Request, fault byte) {
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	version, after, _ := strings.Cut(q.Get("continue"), "|")
	s.mu.Lock()
	if version != "" && version != strconv.Itoa(s.version) {
		s.mu.Unlock()
		refusal("410")(nil, w, r)
		return
	}
	names := slices.Sorted(maps.Keys(s.objects))
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	version, token := strconv.Itoa(s.version), ""
	if (limit > 0 || s.traits&pagesAlways != 0) && len(names) > 2 {
		names, token = names[:2], version+"|"+names[1]
	}
	var items []string
	for _, name := range names {
		items = append(items, object(name, strconv.Itoa(s.objects[name])))
	}
	s.mu.Unlock()
	later := after != ""
	switch {
	case fault == 12:
		version = ""
	case fault == 13:
		items = append(items, object("-", "3"))
	case fault == 14 && later:
		items = nil
	case fault == 15 && later:
		version = "1"
	case fault == 34:
		version = "0"
	case fault == 35:
		version = "abc"
	case fault == 36:
		items = append(items, strings.Replace(object("other", "3"), "{", `{"kind":"Secret","apiVersion":"v1",`, 1))
	case fault == 37:
		token = version + "|" // which begins anew
	}
	body := fmt.Sprintf(`{"kind":"ConfigMapList","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, token, strings.Join(items, ","))
	if fault == 16 {
		body = body[:len(body)/2]
	}
	s.write(w, r, body, fault)
	if fault == 17 {
		<-r.Context().Done()
	}
}

// write sends a text, slowly if the fault is that.
func (s *chaosServer) write(w http.ResponseWriter, r *http.Request, text string, fault byte) {
	const parts = 10
	switch fault {
	case faults:
		slowly(text, parts, 30*time.Second, end)(nil, w, r)
	case faults + 1:
		slowly(text[:len(text)*(parts-1)/parts], parts-1, 30*time.Second, func(_ *script, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })(nil, w, r)
	default:
		_, _ = io.WriteString(w, text)
	}
}

// garbled are events in place of the first one of a watch.
var garbled = map[byte]string{
	12: `{"type":"ERROR","object":{}}`, 13: `{"type":"ADDED","object":{"metadata":{"resourceVersion":"999"}}}`, 14: `{"type":"ADDED","object":{"metadata":`,
	15: `{"type":"ERROR","object":{"kind":"Status","code":500,"message":"same"}}`, 16: `{"type":"DELETED","object":{}}`,
	17: `{"type":"ERROR","object":{"kind":"Status","code":429,"details":{"retryAfterSeconds":86400}}}`, 18: `{"type":"BOOKMARK","object":null}`,
	19: `{"type":"MODIFIED","object":{"metadata":{"name":"` + strings.Repeat("x", 32<<10) + `"}}}`, 20: "maintenance", 21: "",
	34: event("BOOKMARK 0"), 35: event("BOOKMARK abc"), 36: `{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1","metadata":{"name":"other","resourceVersion":"999"}}}`,
	37: `{"type":"BOOKMARK","object":{"metadata":{}}}`, 38: event("END 0"), 39: event("BOOKMARK 1"), // END 1 would be a list without objects
}

func (s *chaosServer) watch(w http.ResponseWriter, r *http.Request, fault byte) {
	if text, bad := garbled[fault]; bad {
		_, _ = io.WriteString(w, text+"\n")
		return
	}
	if fault == 22 {
		<-r.Context().Done() // no answer
		return
	}
	q := r.URL.Query()
	from := q.Get("resourceVersion")
	at, err := strconv.Atoi(from)
	streaming := q.Get("sendInitialEvents") == "true"
	switch {
	case streaming && s.traits&noStreaming != 0:
		refusal("422")(nil, w, r)
		return
	case from != "" && err != nil:
		refusal("400")(nil, w, r)
		return
	}
	var text strings.Builder
	send := func(line string) { text.WriteString(event(line) + "\n") }
	s.mu.Lock()
	if from == "" || from == "0" {
		for _, name := range slices.Sorted(maps.Keys(s.objects)) {
			send("ADDED " + name + " " + strconv.Itoa(s.objects[name]))
		}
		at = s.version
		if streaming && s.traits&noClosingMark == 0 {
			send("END " + strconv.Itoa(at))
		}
	}
	arrived := func() {}
	if fault >= faults {
		arrived = s.sends(at)
		defer arrived()
	}
	seconds, _ := strconv.Atoi(q.Get("timeoutSeconds"))
	timeout := time.After(time.Duration(seconds) * time.Second)
	for {
		for ; at < s.version; at++ {
			send(s.history[at].typ + " " + s.history[at].name + " " + strconv.Itoa(at+1))
		}
		if s.traits&noBookmarks == 0 {
			send("BOOKMARK " + strconv.Itoa(at))
		}
		changed := s.changed
		s.mu.Unlock()
		s.write(w, r, text.String(), fault)
		if fault == faults {
			fault = 0
			arrived()
		}
		text.Reset()
		if http.NewResponseController(w).Flush() != nil || fault == 23 {
			return // which ends the watch when it has been of use
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
		case <-timeout:
			return
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
	}
}

func misbehave(t *testing.T, options, traits byte, input []byte) {
	s := &chaosServer{faults: input, traits: traits, pipe: faultnet.NewPipe(), objects: map[string]int{}, changed: make(chan struct{})}
	s.mu.Lock()
	for n := range byte(4) {
		s.change(n)
	}
	s.mu.Unlock()
	server := &http.Server{Handler: s}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(s.pipe) }()
	c, err := client.New(&rest.Config{Host: "http://server"}, client.Options{Dial: s.pipe.Dial, ForceHTTP1: true, MaxFrameBytes: 16 << 10, Retry: client.RetryOptions{Max: -1}})
	if err != nil {
		t.Fatal(err)
	}
	store := &mirror{}
	opts := Options{PagedList: options%2 == 0, Logger: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0.5 }}
	if options%3 == 0 {
		opts = Options{PollTimeout: 10 * time.Second, Logger: opts.Logger, Rand: opts.Rand}
	}
	r, err := New(Resource(client.For[*corev1.ConfigMap](c), nil), Store[*corev1.ConfigMap](getterMirror{store}), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	onItsWay := time.Duration(0)
	if slices.ContainsFunc(input, func(b byte) bool { return b >= slowFaults }) {
		onItsWay = 5 * time.Minute // for which the last byte of a slow answer is
	}
	for range 20 * 60 * len(input) { // a watch may last for 10 minutes, and its last event arrive slowly
		time.Sleep(time.Second)
		synctest.Wait()
		if contact := r.Stats().LastContact; !contact.IsZero() && !s.wasSince(store.snapshot(), contact, onItsWay) {
			t.Errorf("the store has %s at %v, which was not so since the last contact at %v: the server has %s", store.snapshot(), time.Now(), contact, s.state())
		}
		if !s.misbehaves() || t.Failed() {
			break
		}
	}
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	stats := r.Stats()
	if got := store.snapshot(); got != s.state() {
		t.Errorf("in the end the store has %s, the server %s: %s", got, s.state(), printed(stats))
	}
	if age := time.Since(stats.LastContact); age > 5*time.Minute {
		t.Errorf("in the end the last contact was %v ago: %s", age, printed(stats))
	}
	// A list of all pages, and the watch after it, follow each other at once.
	const most = 12
	s.mu.Lock()
	for n, at := range s.requests[min(most, len(s.requests)):] {
		if at.Sub(s.requests[n]) < time.Second {
			t.Errorf("%d requests within a second of %v: %s", most+1, s.requests[n], printed(stats))
		}
	}
	s.mu.Unlock()
	cancel()
	if err := <-ran; err != nil {
		t.Errorf("Run has ended: %v", err)
	}
	c.CloseIdleConnections()
	_ = server.Close()
	<-served
}

func printed(s Stats) string {
	s.LastError = nil // which is no JSON
	text, _ := json.Marshal(s)
	return string(text)
}
