package h2

import (
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// Go runs goroutines in turns. A client can send a thousand requests with one write, and
// the reading goroutine opens their streams within a millisecond: everything else in the
// process, other clients' writes and events and the store's, would wait until all of
// their handlers have had their turn, and at each step of its way once more. The same is
// true, for the 10 ms after which Go interrupts a goroutine, of a flood of frames that is
// read without a pause. And it is true of many connections, each of which has little of
// that: so what waits here is not ready to run meanwhile.
const (
	// maxUnstarted is how many handlers of a connection may wait for a processor before
	// they have begun.
	maxUnstarted = 4
	// maxUnstartedOfAll is how many of all connections may wait. If more do, each
	// connection has one.
	maxUnstartedOfAll = 16
	// framesPerTurn is how many frames are read before others have their turn, and
	// framesPerStream how many of them a new request counts for.
	framesPerTurn   = 32
	framesPerStream = 8
	// floodTime is how soon the frames of a turn follow those of the last one in a flood.
	floodTime = 10 * time.Millisecond
	// abandonedPerTurn is how many handlers of a connection that has ended are woken, to
	// end as well, before others have their turn.
	abandonedPerTurn = 8
)

// pace is what a connection has for pace.
type pace struct {
	unstarted atomic.Int32 // handlers that have not begun to run
	paused    atomic.Bool  // the reading goroutine waits for resume, or is about to
	resume    chan struct{}
	served    atomic.Pointer[servedFor]

	// Used by the reading goroutine only.
	frames int           // since it has let others run
	turned time.Duration // when that was, of conn.lastRead
	task   runqueue.Task // of a flood
}

// servedFor is whom the requests of a connection are of, see response.ServedFor. It is
// immutable.
type servedFor struct {
	user  string // empty: exempt
	level runqueue.Level
}

// pace lets others run after every framesPerTurn-th frame, and while too many handlers of
// the connection have not begun. Only the reading goroutine calls it, without c.mu. It
// waits for processors only, never for the client or for what handlers do.
func (c *conn) pace() {
	p := &c.pacing
	if p.frames++; p.frames >= framesPerTurn {
		p.frames = 0
		c.yield()
	}
	most := int32(maxUnstarted)
	if c.server.unstarted.Load() > maxUnstartedOfAll {
		most = 1
	}
	if p.unstarted.Load() < most {
		return
	}
	p.paused.Store(true)
	if p.unstarted.Load() > 0 || !p.paused.CompareAndSwap(true, false) {
		<-p.resume
	}
	// The last handler that began has this goroutine run next, in the rest of its own time
	// slice: both would keep others from the processor by turns.
	runtime.Gosched()
}

// yield lets others run. While there is a flood on the connection, the reading goroutine
// computes as a handler of its user does, from here to pauseFlood: several dozen readers that
// are always ready to run would be in the way of each step of every request.
func (c *conn) yield() {
	p := &c.pacing
	now := time.Duration(c.lastRead.Load())
	flood := now-p.turned < floodTime
	p.turned = now
	c.pauseFlood()
	if queue := c.server.options.RunQueue; flood && queue != nil {
		switch served := p.served.Load(); {
		case served == nil:
			p.task.Start(queue, runqueue.Level{}, unauthenticatedUser)
		case served.user != "":
			p.task.Start(queue, served.level, served.user)
		}
	}
	runtime.Gosched()
}

// unauthenticatedUser is the user of all connections on which no request was
// authenticated. No user of Kubernetes has this name.
const unauthenticatedUser = " "

// pauseFlood is called before the reading goroutine waits for the client.
func (c *conn) pauseFlood() { c.pacing.task.End() }

// ServedFor says for which user the request is served, and at which level. Of the connection's
// floods of frames no more is read at a time than handlers of that user may compute at the level
// of the first request, see Options.RunQueue. The empty string exempts them. A connection with
// requests of several users, a proxy's, has a turn of its own: none of its users has the others
// wait.
func (w *response) ServedFor(user string, level runqueue.Level) {
	c := w.st.conn
	p := &c.pacing
	switch before := p.served.Load(); {
	case before == nil:
		p.served.CompareAndSwap(nil, &servedFor{user, level})
	case before.user != user && !strings.HasPrefix(before.user, unauthenticatedUser):
		p.served.Store(&servedFor{unauthenticatedUser + c.remote, level})
	}
}

// opening is called by the reading goroutine before a handler gets one.
func (c *conn) opening() {
	c.pacing.frames += framesPerStream - 1
	c.pacing.unstarted.Add(1)
	c.server.unstarted.Add(1)
}

// begun is called when that goroutine runs. The reading goroutine goes on when all have
// begun that it waits for.
func (c *conn) begun() {
	c.server.unstarted.Add(-1)
	if p := &c.pacing; p.unstarted.Add(-1) == 0 && p.paused.CompareAndSwap(true, false) {
		p.resume <- struct{}{}
	}
}

// abandonStreams makes everything fail that handlers still do with their streams, after
// failStreams. Only the reading goroutine calls it, without c.mu.
func (c *conn) abandonStreams() {
	for {
		c.mu.Lock()
		left := abandonedPerTurn
		for id, st := range c.streams {
			delete(c.streams, id)
			st.abandon(st.err)
			if left--; left == 0 {
				break
			}
		}
		c.mu.Unlock()
		if left > 0 {
			return
		}
		runtime.Gosched()
	}
}
