package apiserver

import (
	"bytes"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// outcome is how a watch's turn in its convoy has ended.
type outcome uint8

const (
	asleep outcome = iota // everything has been collected
	more                  // there is more, after the others' turns
	stuck                 // its own goroutine has to go on
)

// leftover is what a convoy has read and could not send.
type leftover struct {
	bytes  []byte             // of events
	events []watchcache.Event // that follow
	read   error              // what Read has said after them
	reason error              // why nothing can follow
}

// Wake implements watchcache.Waker.
func (t *watchStream) Wake() watchcache.Starter {
	if !t.claim() {
		return nil
	}
	if t.convoy == nil {
		t.handOver()
	} else if t.convoy.add(t) {
		return t.convoy
	}
	return nil
}

// turn collects what is ready on behalf of the convoy, which holds the watch,
// and gives it back unless there is more.
func (t *watchStream) turn(buffers *watchBuffers) (result outcome) {
	defer func() {
		if reason := recover(); reason != nil { // an end of this watch, and not of the process
			buffers.parts.Reset()
			t.panicked(reason)
			result = stuck
		}
	}()
	for {
		result = t.collect(buffers)
		buffers.parts.Reset()
		switch {
		case result == stuck:
			t.handOver()
			return stuck
		case result == more || t.release():
			return result
		}
	}
}

// panicked has the request's own goroutine tell the client.
func (t *watchStream) panicked(reason any) {
	t.server.config.Logger.Error("watch panicked", "resource", t.framer.Resource().GroupResource(), "panic", reason, "stack", string(debug.Stack()))
	t.left = leftover{reason: errors.New("this watch caused an internal error, which the server has logged")}
	t.handOver()
}

// collect adds what is ready to what is collected for the connection, about
// eventsPerRead events at most. What makes somebody wait, or ends the stream, is
// left to the request's own goroutine.
func (t *watchStream) collect(buffers *watchBuffers) outcome {
	if !t.watch.Begun() || t.framer.Resource().FromStorageBatch != nil || !t.followDefinition() {
		return stuck
	}
	for total := 0; total < eventsPerRead; {
		if t.watch.InCoalescedHistory() {
			return stuck
		}
		n, err := t.read(buffers)
		if t.framer.Resource().FromStorageBatch != nil { // since this read
			t.left.events, t.left.read = slices.Clone(buffers.events[:n]), err
			return stuck
		}
		for i, event := range buffers.events[:n] {
			if buffers.parts.Size >= encoding.WriteSize && !t.send(buffers) {
				t.count(i)
				t.left.bytes, t.left.events = bytes.Join(buffers.parts.Pieces, nil), slices.Clone(buffers.events[i:n])
				t.left.read = err
				return stuck
			}
			if reason := t.framer.AddEvent(t.ctx, &buffers.parts, event); reason != nil {
				t.count(i)
				t.left.bytes, t.left.reason = bytes.Join(buffers.parts.Pieces, nil), reason
				return stuck
			}
		}
		t.count(n)
		total += n
		switch {
		case !t.send(buffers):
			t.left.bytes, t.left.read = bytes.Join(buffers.parts.Pieces, nil), err
			return stuck
		case err != nil:
			t.left.read = err
			return stuck
		case n == 0:
			return asleep
		}
	}
	return more
}

// send adds the parts to what is collected for the connection. If there is no
// room, it is made once.
func (t *watchStream) send(buffers *watchBuffers) bool {
	if buffers.parts.Size == 0 {
		return true
	}
	if !t.shared.TryWrite(buffers.parts.Pieces...) {
		t.convoy.connection.Push()
		if !t.shared.TryWrite(buffers.parts.Pieces...) {
			return false
		}
	}
	t.record.Written += int64(buffers.parts.Size)
	buffers.parts.Reset()
	return true
}
