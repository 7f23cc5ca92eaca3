package watchstream

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/server/internal/status"
)

// detachable is an answer whose handler may return before the answer is complete.
type detachable interface {
	multiplexed
	// Detach lets the handler return; the stream calls End instead. It returns false if the
	// client has gone. Gone is called when it goes later, with locks held.
	Detach(watcher interface{ Gone() }) bool
	// End ends the answer. If it is not complete, the client sees it break off.
	End(complete bool)
}

// detachableOf finds out whether the handler of an answer may return before its end, behind
// the answer's wrappers.
func detachableOf(w http.ResponseWriter) detachable {
	shared, _ := multiplexedOf(w)
	answer, _ := shared.(detachable)
	return answer
}

// The signals to a detached stream: what its owner has to see to besides events.
const (
	signalGone     = 1 << iota // the client has gone
	signalStopping             // the server drains
	signalDue                  // the time has come for which the stream has set its timer
	signalProgress             // the client asks how far the stream is
)

// Gone implements the watcher of a detachable answer.
func (t *Stream) Gone() { t.signal(signalGone) }

// signal has the owner of a detached stream see to something, or a new goroutine if the
// stream has no owner. It does not block.
func (t *Stream) signal(signals uint32) {
	t.signals.Or(signals)
	if t.owner.tryAcquire() {
		go t.work()
	}
}

// handoff makes the request's goroutine the owner, or a new one if the stream is detached.
func (t *Stream) handoff() {
	if t.detachable == nil {
		t.owner.handoff()
		return
	}
	go t.work() // which owns the stream from here on
}

// serveDetached serves a stream until it is idle. It returns false if the stream has ended;
// otherwise the stream is detached, and whatever comes is served on goroutines of their own.
func (t *Stream) serveDetached() bool {
	if t.catchUp() != nil || !t.detachable.Detach(t) {
		return false
	}
	t.record.Detached = true
	select {
	case <-t.streams.config.Stopping:
		t.signals.Or(signalStopping) // Stop may have looked before the stream was among the open ones
	default:
	}
	t.setTimer()
	if t.signals.Load() != 0 || !t.owner.release() {
		t.work()
	}
	return true
}

func (t *Stream) setTimer() { t.streams.timers.set(t, time.Now().Add(t.watch.UntilDue())) }

// work is what a goroutine does that has become the owner of a detached stream: it writes
// what the scheduler cannot and what is due, until the stream is idle or ends.
func (t *Stream) work() {
	defer func() {
		if reason := recover(); reason != nil { // ends this watch, and not the process
			t.streams.config.Logger.Error("watch panicked", "resource", t.encoder.Resource().GroupResource(), "panic", reason, "stack", string(debug.Stack()))
			if !t.finished {
				t.abandon()
			}
		}
	}()
	for {
		if t.attend() != nil || t.writeReady() != nil {
			t.finish(true)
			return
		}
		t.setTimer()
		if t.owner.release() {
			return
		}
	}
}

// abandon is finish after a panic, which may have left a state in which that panics too.
func (t *Stream) abandon() {
	defer func() {
		if reason := recover(); reason != nil {
			t.streams.config.Logger.Error("the end of a watch panicked", "panic", reason, "stack", string(debug.Stack()))
		}
	}()
	t.finish(false)
}

// attend sees to the signals. An error ends the stream; what follows from it has been sent.
func (t *Stream) attend() error {
	signals := t.signals.Swap(0)
	switch {
	case signals == 0:
		return nil
	case signals&signalGone != 0:
		return errEnded
	case signals&signalStopping != 0:
		t.writeLast()
		return errEnded
	case signals&signalProgress != 0:
		t.watch.RequestBookmark()
	}
	return t.writeDue()
}

// writeLast sends what happened before the server's end, and up to where that is.
func (t *Stream) writeLast() {
	if t.watch.AwaitsRevision() {
		t.fail(status.ShuttingDown())
		return
	}
	t.watch.BookmarkNow()
	_ = t.writeReady() // if it fails, the stream ends anyway
}

// writeDue ends the stream with an error if its time is over. A bookmark that is due is left to
// writeReady.
func (t *Stream) writeDue() error {
	now := time.Now()
	if reason := t.watch.Overdue(t.ctx, now); reason != nil {
		t.fail(reason)
		return reason
	}
	if now.Before(t.watch.Deadline()) {
		return nil
	}
	_ = t.writeReady() // a bookmark may still be due, if it could not be sent in time
	return errEnded
}

// finish ends a detached stream, which its owner keeps for good.
func (t *Stream) finish(complete bool) {
	t.finished = true
	defer t.detachable.End(complete)
	defer t.ended()
	t.streams.timers.remove(t)
	t.close()
}

// finishRefused has the streams of a connection end, which have collected their errors. The
// caller owns them, and keeps the slice. A right that is withdrawn may end a hundred thousand:
// few connections end theirs at the same time, so that the errors of others are not held up.
func (s *Streams) finishRefused(refused []*Stream) {
	var detached []*Stream
	for _, t := range refused {
		if t.detachable == nil {
			t.handoff()
		} else {
			detached = append(detached, t)
		}
	}
	if detached == nil {
		return
	}
	go func() {
		const perTurn = 8
		var task runqueue.Task
		for i, t := range detached {
			if i%perTurn == 0 {
				task.End()
				task.Start(s.ends, runqueue.Level{}, "")
			}
			t.work()
		}
		task.End()
	}()
}

// Stop ends the streams of handlers that have returned, when Config.Stopping has been closed.
func (s *Streams) Stop() {
	const perTurn = 8 // streams that are woken before others have their turn
	for i, t := range s.open.all() {
		if t.detachable == nil {
			continue
		}
		t.signal(signalStopping)
		if i%perTurn == perTurn-1 {
			runtime.Gosched()
		}
	}
}
