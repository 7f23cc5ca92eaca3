package apiserver

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// watchdog gives up clients that do not read. Everybody who writes a long
// answer notes when a write begins; one goroutine looks at all of them now and
// then, and breaks the connections of those that have been stuck for longer
// than the limit. A deadline set anew before every write would cost each of
// them a change of a timer, or a lock that it shares with all of its HTTP/2
// connection. The goroutine exists only while somebody writes.
type watchdog struct {
	limit time.Duration

	mu      sync.Mutex
	streams map[*guarded]struct{}
	stop    chan struct{} // not nil while the goroutine runs
}

// guarded is one answer under watch.
type guarded struct {
	control *http.ResponseController
	since   atomic.Int64 // when the write under way began, Unix ns; 0: none is
}

func newWatchdog(limit time.Duration) *watchdog {
	return &watchdog{limit: limit, streams: make(map[*guarded]struct{})}
}

// guard begins to look after an answer. The caller must release it before its
// handler returns.
func (d *watchdog) guard(w http.ResponseWriter) *guarded {
	g := &guarded{control: http.NewResponseController(w)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams[g] = struct{}{}
	if d.stop == nil {
		d.stop = make(chan struct{})
		go d.run(d.stop)
	}
	return g
}

func (d *watchdog) release(g *guarded) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.streams, g)
	if len(d.streams) == 0 && d.stop != nil {
		close(d.stop)
		d.stop = nil
	}
}

func (g *guarded) begin() { g.since.Store(time.Now().UnixNano()) }
func (g *guarded) end()   { g.since.Store(0) }

func (d *watchdog) run(stop <-chan struct{}) {
	ticker := time.NewTicker(max(d.limit/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			d.check(now)
		}
	}
}

// check breaks what is stuck. The lock keeps handlers from returning
// meanwhile: a ResponseWriter must not be touched after that.
func (d *watchdog) check(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for g := range d.streams {
		since := g.since.Load()
		if since != 0 && now.UnixNano()-since > int64(d.limit) {
			// An error means that the connection has no deadlines (a test's
			// recorder), and so cannot block either.
			_ = g.control.SetWriteDeadline(now.Add(-time.Second))
		}
	}
}
