package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/internal/faultnet"
)

// step is one request that a script expects, and its answer.
type step struct {
	// want says what is asked for: "stream", "watch 5", "list 0", "list - c1"
	// (a continue token), "list 7 NotOlderThan", with " limit=N" unless 500.
	want   string
	answer answer
}

// answer plays a step. It returns when the request is over.
type answer func(s *script, w http.ResponseWriter, r *http.Request)

// script is a server that expects requests in one order.
type script struct {
	t     *testing.T
	steps []step
	pipe  *faultnet.Pipe
	start time.Time
	done  chan struct{} // closed when the last step has been answered, or holds
	// discovery is the answer of /api/v1; nil: it lacks configmaps.
	discovery answer
	// look is the answer to a list of one object that is no step; nil: 503.
	look answer

	mu      sync.Mutex
	got     []string
	at      []time.Duration
	queries []url.Values
	conns   []net.Conn
	refuse  int // dials that are yet to fail
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/v1" {
		w.Header().Set("Content-Type", "application/json")
		if s.discovery == nil {
			s.discovery = raw(`{"kind":"APIResourceList","resources":[{"name":"pods"}]}`)
		}
		s.discovery(s, w, r)
		return
	}
	s.mu.Lock()
	n := len(s.got)
	if asked := describe(r.URL.Query()); asked == "list - limit=1" && (n >= len(s.steps) || s.steps[n].want != asked) {
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if s.look == nil {
			s.look = refusal("503")
		}
		s.look(s, w, r)
		return
	}
	s.got = append(s.got, describe(r.URL.Query()))
	s.at = append(s.at, time.Since(s.start))
	s.queries = append(s.queries, r.URL.Query())
	s.mu.Unlock()
	if n >= len(s.steps) {
		s.t.Errorf("request %d was not expected: %s", n+1, describe(r.URL.Query()))
		http.Error(w, "the script is over", http.StatusTeapot)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if n == len(s.steps)-1 {
		defer s.over()
	}
	s.steps[n].answer(s, w, r)
}

func (s *script) over() {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
}

func describe(q url.Values) string {
	version := q.Get("resourceVersion")
	if version == "" {
		version = "-"
	}
	if q.Get("watch") == "true" {
		if q.Get("sendInitialEvents") == "true" && q.Get("resourceVersionMatch") == "NotOlderThan" && version == "-" {
			return "stream"
		}
		return "watch " + version
	}
	out := strings.Join(strings.Fields("list "+version+" "+q.Get("resourceVersionMatch")+" "+q.Get("continue")), " ")
	if limit := q.Get("limit"); limit != "500" {
		out += " limit=" + limit
	}
	return out
}

func (s *script) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse > 0 {
		s.refuse--
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := s.pipe.Dial(ctx, network, address)
	if err == nil {
		s.conns = append(s.conns, conn)
	}
	return conn, err
}

// cutAll ends all connections in the middle of whatever they carry.
func (s *script) cutAll(refuse int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

// Answers.

// events writes events, given as "ADDED a 5", "BOOKMARK 7", "END 7" (which
// closes initial events) or "GARBAGE", and then does what comes last.
func events(list string, last answer) answer {
	return func(s *script, w http.ResponseWriter, r *http.Request) {
		for line := range strings.SplitSeq(list, ",") {
			if line != "" {
				_, _ = io.WriteString(w, event(line)+"\n")
			}
		}
		_ = http.NewResponseController(w).Flush()
		last(s, w, r)
	}
}

func event(line string) string {
	f := strings.Fields(line)
	switch f[0] {
	case "BOOKMARK":
		return fmt.Sprintf(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":%q}}}`, f[1])
	case "END":
		version := ""
		if len(f) > 1 {
			version = f[1]
		}
		return fmt.Sprintf(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":%q,"annotations":{"k8s.io/initial-events-end":"true"}}}}`, version)
	case "GARBAGE":
		return `{"type":"ADDED","object":{"metadata":{"name":{}}}}`
	case "ERROR":
		return fmt.Sprintf(`{"type":"ERROR","object":%s}`, status(f[1]))
	}
	return fmt.Sprintf(`{"type":%q,"object":%s}`, f[0], object(f[1], f[2]))
}

// object is an object by its name and version, or name/UID and version. "-" stands for none.
func object(name, version string) string {
	name, uid, _ := strings.Cut(name, "/")
	switch {
	case name == "-" && version == "-":
		return `{}`
	case name == "-":
		return fmt.Sprintf(`{"metadata":{"namespace":"ns","resourceVersion":%q}}`, version)
	case version == "-":
		version = ""
	}
	return fmt.Sprintf(`{"metadata":{"namespace":"ns","name":%q,"uid":%q,"resourceVersion":%q}}`, name, uid, version)
}

// status is a Status by its code; "504large" and "403withdrawn" have the cause that says so.
func status(code string) string {
	reasons := map[string]metav1.StatusReason{"410": metav1.StatusReasonExpired, "429": metav1.StatusReasonTooManyRequests,
		"403": metav1.StatusReasonForbidden, "404": metav1.StatusReasonNotFound, "400": metav1.StatusReasonBadRequest, "422": metav1.StatusReasonInvalid}
	details := "null"
	if n, ok := strings.CutSuffix(code, "large"); ok {
		code, details = n, `{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1}`
	}
	if n, ok := strings.CutSuffix(code, "withdrawn"); ok {
		code, details = n, `{"causes":[{"reason":"RightWithdrawn"}]}`
	}
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%s,"reason":%q,"details":%s}`, code, reasons[code], details)
}

// end finishes the answer cleanly.
func end(*script, http.ResponseWriter, *http.Request) {}

// after finishes the answer cleanly after a while.
func after(d time.Duration, then answer) answer {
	return func(s *script, w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			then(s, w, r)
		case <-r.Context().Done():
		}
	}
}

// hold keeps the stream open until the client leaves.
func hold(s *script, _ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	last := len(s.got) == len(s.steps)
	s.mu.Unlock()
	if last {
		s.over()
	}
	<-r.Context().Done()
}

// cut breaks the connection, and refuses so many new ones.
func cut(refuse int) answer {
	return func(s *script, _ http.ResponseWriter, r *http.Request) {
		s.cutAll(refuse)
		<-r.Context().Done()
	}
}

// refusal answers with a Status. "429 3" has Retry-After.
func refusal(code string) answer {
	return func(_ *script, w http.ResponseWriter, _ *http.Request) {
		code, retry, _ := strings.Cut(code, " ")
		if retry != "" {
			w.Header().Set("Retry-After", retry)
		}
		var n int
		_, _ = fmt.Sscan(strings.TrimSuffix(code, "large"), &n)
		w.WriteHeader(n)
		_, _ = io.WriteString(w, status(code))
	}
}

// page answers as a proxy does. retryAfter is the header of that name, if there is one.
func page(code int, retryAfter ...string) answer {
	return func(_ *script, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header()["Retry-After"] = retryAfter
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "<html><body>no such site</body></html>")
	}
}

// list answers with "version[ continue]" and objects "a 1".
func list(version string, objects ...string) answer {
	return func(_ *script, w http.ResponseWriter, _ *http.Request) {
		version, token, _ := strings.Cut(version, " ")
		items := make([]string, len(objects))
		for i, o := range objects {
			name, v, _ := strings.Cut(o, " ")
			items[i] = object(name, v)
		}
		_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`,
			version, token, strings.Join(items, ","))
	}
}

// raw answers with any body.
func raw(body string) answer {
	return func(_ *script, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// coded answers as another answer does, with a status of its own.
func coded(code int, with answer) answer {
	return func(s *script, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		with(s, w, r)
	}
}

// mirror is a store that records resourceVersions by name, and the calls that
// led there.
type mirror struct {
	mu       sync.Mutex
	objects  map[string]string
	replaces int
	fail     error
	block    func()
}

func (m *mirror) put(obj *corev1.ConfigMap) error {
	if m.block != nil {
		m.block()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[string]string{}
	}
	m.objects[obj.Name] = obj.ResourceVersion
	return m.fail
}

func (m *mirror) Add(obj *corev1.ConfigMap) error    { return m.put(obj) }
func (m *mirror) Update(obj *corev1.ConfigMap) error { return m.put(obj) }

func (m *mirror) Delete(obj *corev1.ConfigMap) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, obj.Name)
	return m.fail
}

func (m *mirror) Replace(list []*corev1.ConfigMap, _ string) error {
	m.mu.Lock()
	m.objects = map[string]string{}
	m.replaces++
	m.mu.Unlock()
	for _, obj := range list {
		if err := m.put(obj); err != nil {
			return err
		}
	}
	return m.fail
}

func (m *mirror) snapshot() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.objects)
}

// scenario is a script and what must come of it.
type scenario struct {
	name    string
	opts    Options
	steps   []step
	store   string // as fmt prints the map of names to versions
	version string
	lists   map[ListCause]int64
	resumes map[ResumeReason]int64
	check   func(t *testing.T, s *script, stats Stats)
	// discovery and look are those of script.
	discovery, look answer
	any             bool // whatever lists and resumes there were
	getter          bool // the store is a Getter
	dropper         bool // and a Dropper
	// others, unless nil, writes to the store before each WriteIf; the store is a ConditionalWriter then.
	others   func(*mirror)
	maxFrame int64
}

// play runs a scenario with each version of HTTP.
func (sc scenario) play(t *testing.T) {
	for version, opts := range map[string]client.Options{"HTTP/1.1": {ForceHTTP1: true}, "HTTP/2": {UnencryptedHTTP2: true}} {
		t.Run(sc.name+" "+version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sc.run(t, opts) })
		})
	}
}

func (sc scenario) run(t *testing.T, httpOpts client.Options) {
	s := &script{t: t, steps: sc.steps, discovery: sc.discovery, look: sc.look, pipe: faultnet.NewPipe(), start: time.Now(), done: make(chan struct{})}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: s, Protocols: protocols}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(s.pipe) }()
	httpOpts.Dial = s.dial
	httpOpts.Retry.Max = -1
	httpOpts.MaxFrameBytes = sc.maxFrame
	c, err := client.New(&rest.Config{Host: "http://server"}, httpOpts)
	if err != nil {
		t.Fatal(err)
	}
	if sc.opts.Rand == nil {
		sc.opts.Rand = func() float64 { return 0.5 }
	}
	store := &mirror{}
	written := Store[*corev1.ConfigMap](store)
	switch {
	case sc.others != nil:
		written = sharedMirror{getterMirror{store}, sc.others}
	case sc.dropper:
		written = dropperMirror{getterMirror{store}, new(func(*corev1.ConfigMap))}
	case sc.getter:
		written = getterMirror{store}
	}
	r, err := New(Resource(client.For[*corev1.ConfigMap](c), nil), written, sc.opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx) }()
	select {
	case <-s.done:
	case <-time.After(24 * time.Hour):
		t.Errorf("the script came to %d of %d steps", len(s.got), len(s.steps))
	}
	synctest.Wait()
	sc.verify(t, s, store, r)
	cancel()
	if err := <-ran; err != nil {
		t.Errorf("Run: %v", err)
	}
	c.CloseIdleConnections()
	_ = server.Close()
	<-served
	s.cutAll(0)
}

func (sc scenario) verify(t *testing.T, s *script, store *mirror, r *Reflector[*corev1.ConfigMap]) {
	t.Helper()
	want := make([]string, len(sc.steps))
	for i, step := range sc.steps {
		want[i] = step.want
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reflect.DeepEqual(s.got, want) {
		t.Errorf("requests\n got %q\nwant %q", s.got, want)
	}
	if got := store.snapshot(); got != "map["+sc.store+"]" {
		t.Errorf("store: got %s, want %s", got, sc.store)
	}
	if got := r.LastSyncResourceVersion(); got != sc.version {
		t.Errorf("version: got %q, want %q", got, sc.version)
	}
	stats := r.Stats()
	if sc.lists == nil {
		sc.lists = map[ListCause]int64{ListInitial: 1}
	}
	if !sc.any && !maps.Equal(stats.Lists, sc.lists) {
		t.Errorf("lists: got %v, want %v", stats.Lists, sc.lists)
	}
	if !sc.any && !maps.Equal(stats.Resumes, sc.resumes) {
		t.Errorf("resumes: got %v, want %v", stats.Resumes, sc.resumes)
	}
	if sc.check != nil {
		sc.check(t, s, stats)
	}
}

// getterMirror is a mirror that can say what it holds.
type getterMirror struct{ *mirror }

func (m getterMirror) Get(obj *corev1.ConfigMap) (*corev1.ConfigMap, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	version, exists := m.objects[obj.Name]
	return configMap(obj.Name, version), exists
}

var errStore = errors.New("the store is full")
