package h2

import (
	"bytes"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// burst is how many requests the tests below send with one write.
const burst = 400

// sendBurst opens streams with one write to the connection, and has write append frames
// behind each.
func (p *peer) sendBurst(write func(*http2.Framer, uint32) error) {
	p.t.Helper()
	var frames bytes.Buffer
	framer := http2.NewFramer(&frames, nil)
	for range burst {
		must(p.t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: p.next, BlockFragment: p.encode(get()...), EndHeaders: true, EndStream: true}))
		must(p.t, write(framer, p.next))
		p.next += 2
	}
	_, err := p.conn.Write(frames.Bytes())
	must(p.t, err)
}

// oneProcessor makes the turns of goroutines countable, until the test ends.
func oneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestRequestsTakenBackRunNoHandlers: most of many requests that are reset at once never
// reach the handler (CVE-2023-44487).
func TestRequestsTakenBackRunNoHandlers(t *testing.T) {
	oneProcessor(t)
	var ran atomic.Int64
	f := start(t, func(http.ResponseWriter, *http.Request) { ran.Add(1) }, func(o *Options) { o.MaxConcurrentStreams = burst + 1 })
	p := f.dial().greet()
	p.sendBurst(func(framer *http2.Framer, id uint32) error { return framer.WriteRSTStream(id, http2.ErrCodeCancel) })
	for last := p.open(true, get()...); ; {
		if got := p.outcome(); got.stream == last && got.status == "200" {
			break
		} else if got.stream == 0 {
			t.Fatalf("%+v", got)
		}
	}
	if n := ran.Load(); n < 1 || n > burst/2 {
		t.Errorf("%d handlers ran for %d requests that were taken back and one that was not", n, burst)
	}
}

// otherTurns counts the turns of a goroutine that does nothing else, from the first call
// of note to the last one.
type otherTurns struct{ turns, first, last atomic.Int64 }

func (o *otherTurns) note() {
	o.first.CompareAndSwap(0, o.turns.Load()+1)
	o.last.Store(o.turns.Load() + 1)
}

// count begins. The returned function ends it, and returns the number.
func (o *otherTurns) count() func() int64 {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				o.turns.Add(1)
				runtime.Gosched()
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-stopped
		return o.last.Load() - o.first.Load()
	}
}

// TestHandlersBeginInTurns: while the handlers of many requests begin that came at once,
// other goroutines get their turns.
func TestHandlersBeginInTurns(t *testing.T) {
	oneProcessor(t)
	var turns otherTurns
	var unstarted atomic.Int64
	f := start(t, func(w http.ResponseWriter, _ *http.Request) {
		turns.note()
		if n := int64(w.(*response).st.conn.pacing.unstarted.Load()); n > unstarted.Load() {
			unstarted.Store(n)
		}
	}, func(o *Options) { o.MaxConcurrentStreams = burst })
	p := f.dial().greet()
	stop := turns.count()
	p.sendBurst(func(*http2.Framer, uint32) error { return nil })
	for range burst {
		if got := p.outcome(); got.status != "200" {
			t.Fatalf("%+v", got)
		}
	}
	if n := stop(); n < burst/maxUnstarted/2 {
		t.Errorf("another goroutine had %d turns while %d handlers began", n, burst)
	}
	if n := unstarted.Load(); n > maxUnstarted {
		t.Errorf("%d handlers waited to begin", n)
	}
}

// TestHandlersEndInTurns: while the handlers of a connection end that was closed, other
// goroutines get their turns.
func TestHandlersEndInTurns(t *testing.T) {
	oneProcessor(t)
	var turns otherTurns
	var begun, ended sync.WaitGroup
	begun.Add(burst)
	ended.Add(burst)
	f := start(t, func(_ http.ResponseWriter, r *http.Request) {
		begun.Done()
		<-r.Context().Done()
		turns.note()
		ended.Done()
	}, func(o *Options) { o.MaxConcurrentStreams = burst })
	p := f.dial().greet()
	p.sendBurst(func(*http2.Framer, uint32) error { return nil })
	begun.Wait()
	stop := turns.count()
	must(t, p.conn.Close())
	ended.Wait()
	if n := stop(); n < burst/abandonedPerTurn/2 {
		t.Errorf("another goroutine had %d turns while %d handlers ended", n, burst)
	}
}

// TestServedFor: the reader of a connection waits for turns of its user at the level of the first
// request, and of no user if there are several.
func TestServedFor(t *testing.T) {
	c := &conn{remote: "192.0.2.1:1000"}
	w := &response{st: &stream{conn: c}}
	const own = unauthenticatedUser + "192.0.2.1:1000"
	for _, step := range []struct{ user, level, want, wantLevel string }{
		{"jane", "a", "jane", "a"}, {"jane", "b", "jane", "a"}, {"joe", "b", own, "b"}, {"jane", "a", own, "b"}, {"", "", own, "b"},
	} {
		w.ServedFor(step.user, runqueue.Level{Name: step.level})
		if served := c.pacing.served.Load(); served.user != step.want || served.level.Name != step.wantLevel {
			t.Errorf("after a request of %q at level %q: %+v, want %q at %q", step.user, step.level, *served, step.want, step.wantLevel)
		}
	}
	if n := testing.AllocsPerRun(10, func() { w.ServedFor("jane", runqueue.Level{Name: "a"}) }); n != 0 {
		t.Errorf("a request after the first costs %v allocations", n)
	}
}
