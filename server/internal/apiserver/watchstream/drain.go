package watchstream

import (
	"bytes"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// outcome says how the drain of a stream has ended.
type outcome uint8

const (
	drained       outcome = iota // everything has been collected, and the stream released
	moreReady                    // there is more, after the other streams' turns
	needsBlocking                // the request's goroutine has to go on
	refused                      // the error is collected; the request's goroutine ends the stream
)

// pending is what a drain has read from the cursor and could not send.
type pending struct {
	bytes  []byte             // encoded events
	events []watchcache.Event // that follow
	read   error              // what the cursor returned after them
	sends  []tracing.Send     // of the traced events among both
	reason error              // why nothing can follow
}

// Withdrawn implements reauthorization.Watch.
func (t *Stream) Withdrawn() {
	if starter := t.Wake(); starter != nil {
		starter.Start()
	}
}

// Wake implements watchcache.Waker.
func (t *Stream) Wake() watchcache.Starter {
	if !t.owner.tryAcquire() {
		return nil
	}
	if t.scheduler == nil {
		t.handoff()
	} else if t.scheduler.add(t) {
		return t.scheduler
	}
	return nil
}

// drain collects what is ready for the connection. The scheduler, which calls it,
// owns the stream before; after it only if it returns moreReady or refused.
func (t *Stream) drain(b *buffers) (result outcome) {
	sends := len(b.sends) // of other streams
	defer func() {
		if reason := recover(); reason != nil { // ends this watch, and not the process
			b.parts.Reset()
			b.sends = b.sends[:sends]
			t.panicked(reason)
			result = needsBlocking
		}
	}()
	for {
		result = t.collect(b)
		b.parts.Reset()
		switch {
		case result == needsBlocking:
			if len(b.sends) > sends {
				t.pending.sends, b.sends = slices.Clone(b.sends[sends:]), b.sends[:sends]
			}
			t.handoff()
			return needsBlocking
		case result == moreReady || result == refused || t.owner.release():
			return result
		}
	}
}

// panicked has the request's goroutine send an error.
func (t *Stream) panicked(reason any) {
	t.streams.config.Logger.Error("watch panicked", "resource", t.encoder.Resource().GroupResource(), "panic", reason, "stack", string(debug.Stack()))
	t.pending = pending{reason: errors.New("this watch caused an internal error, which the server has logged")}
	t.handoff()
}

// collect adds what is ready to what is collected for the connection, about
// eventsPerRead events at most. It never waits for anything but the connection's
// Push. What needs blocking, or ends the stream, is left pending for the request's
// goroutine.
func (t *Stream) collect(b *buffers) outcome {
	if t.signals.Load() != 0 {
		return needsBlocking
	}
	if t.refuse() {
		return refused
	}
	if !t.watch.Begun() || t.encoder.Resource().FromStorageBatch != nil {
		return needsBlocking
	}
	for total := 0; total < eventsPerRead; {
		if t.watch.InCoalescedHistory() {
			return needsBlocking
		}
		n, err := t.read(b)
		t.trace(b, b.events[:n])
		if t.encoder.Resource().FromStorageBatch != nil { // since this read
			t.pending.events, t.pending.read = slices.Clone(b.events[:n]), err
			return needsBlocking
		}
		for i, event := range b.events[:n] {
			if b.parts.Size >= encoding.WriteSize && !t.send(b) {
				t.count(i)
				t.pending.bytes, t.pending.events = bytes.Join(b.parts.Pieces, nil), slices.Clone(b.events[i:n])
				t.pending.read = err
				return needsBlocking
			}
			if reason := t.encoder.AddEvent(t.ctx, &b.parts, event); reason != nil {
				t.count(i)
				t.pending.bytes, t.pending.reason = bytes.Join(b.parts.Pieces, nil), reason
				return needsBlocking
			}
		}
		t.count(n)
		b.traceEncoded()
		total += n
		switch {
		case !t.send(b):
			t.pending.bytes, t.pending.read = bytes.Join(b.parts.Pieces, nil), err
			return needsBlocking
		case err != nil:
			t.pending.read = err
			return needsBlocking
		case n == 0:
			return drained
		}
	}
	return moreReady
}

// refuse collects the error of a watch whose right was withdrawn: a right may have many
// watches, which learn of it by one write for each connection, before any of them is ended.
// It returns false if there is no such error or no room for it.
func (t *Stream) refuse() bool {
	reason := t.member.Err()
	if reason == nil || !t.watch.Begun() || !t.followDefinition() {
		return false
	}
	event, err := t.streams.encodeError(&t.encoder, reason)
	if err != nil || !t.shared.TryWrite(event) {
		return false
	}
	t.collected += int64(len(event))
	t.refused = true
	return true
}

// send adds the parts to what is collected for the connection. If there is no room,
// it pushes once to make some.
func (t *Stream) send(b *buffers) bool {
	if b.parts.Size == 0 {
		return true
	}
	if !t.shared.TryWrite(b.parts.Pieces...) {
		t.scheduler.connection.Push()
		if !t.shared.TryWrite(b.parts.Pieces...) {
			return false
		}
	}
	t.collected += int64(b.parts.Size)
	b.parts.Reset()
	return true
}
