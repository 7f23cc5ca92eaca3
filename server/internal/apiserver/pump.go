package apiserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// eventsPerRead is how many events are taken from a cursor at a time.
const eventsPerRead = 64

// watchBuffers are what a goroutine needs that writes events. An idle watch
// holds none.
type watchBuffers struct {
	events [eventsPerRead]watchcache.Event
	used   int // of events, at most
	parts  encoding.Parts
}

var watchBufferPool = sync.Pool{New: func() any {
	return &watchBuffers{parts: encoding.Parts{Bytes: make([]byte, 0, encoding.WriteSize)}}
}}

// release gives the buffers back, without what they refer to.
func (b *watchBuffers) release() {
	clear(b.events[:b.used])
	b.used = 0
	b.parts.Reset()
	if cap(b.parts.Bytes) > 16*encoding.WriteSize {
		b.parts.Bytes = make([]byte, 0, encoding.WriteSize)
	}
	watchBufferPool.Put(b)
}

// errNotServed ends a stream whose resource is no longer served. The client
// sees an ordinary end, as when the time is up, and a 404 when it comes back.
var errNotServed = errors.New("the resource is not served any more")

// pump writes everything that is ready now, and a bookmark if one is due. An
// error ends the stream; the client has been told, if it can be. Conversions by
// webhook that are not done at the deadline are given up.
func (t *watchStream) pump() error {
	served := t.followDefinition()
	if err := t.pumpReady(); err != nil {
		return err
	}
	if !served {
		return errNotServed
	}
	return nil
}

// followDefinition makes the stream show objects as the definition of a custom
// resource says now: its watches outlive its changes. It is false if the
// version is not served any more, or another definition has taken its place.
func (t *watchStream) followDefinition() bool {
	res := t.framer.Resource()
	if !res.Stored().Mixed {
		return true
	}
	now := t.server.config.Resources.Lookup(res.Group, res.Version, res.Plural)
	if now == nil || now.Stored() != res.Stored() {
		return false
	}
	if now != res {
		t.framer.SetResource(now)
	}
	return true
}

// pumpReady is pump without a look at the definition.
func (t *watchStream) pumpReady() error {
	buffers := watchBufferPool.Get().(*watchBuffers)
	defer buffers.release()
	out := append(buffers.parts.Bytes[:0], t.left.bytes...)
	t.left.bytes = nil
	if t.left.reason != nil {
		return t.end(out, t.left.reason)
	}
	wrote := false
	for {
		live := !t.watch.InInitialEvents()
		n, readErr := t.read(buffers)
		if reason := t.convertEvents(buffers.events[:n]); reason != nil {
			if !time.Now().Before(t.watch.Deadline()) {
				return t.last(out) // the client comes back for what it has not got
			}
			return t.end(out, reason)
		}
		for i, event := range buffers.events[:n] {
			var err error
			if out, err = t.framer.AppendEvent(t.ctx, out, event, live); err != nil {
				t.count(i)
				return t.end(out, err)
			}
			if len(out) >= encoding.WriteSize || t.out.single() {
				if err := t.out.write(out); err != nil {
					return err
				}
				out, wrote = out[:0], true
			}
		}
		t.count(n)
		if errors.Is(readErr, read.ErrClosed) {
			return t.last(out)
		}
		if readErr != nil {
			return t.end(out, readErr)
		}
		if n == 0 {
			break
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
	}
	out, err := t.appendBookmark(out)
	buffers.parts.Bytes = out
	if err != nil {
		return t.end(out, err)
	}
	if len(out) > 0 {
		wrote = true
		if err := t.out.write(out); err != nil {
			return err
		}
	}
	if !wrote {
		return nil
	}
	return t.out.flush()
}

// convertEvents makes what the events show, if a webhook has to, until the
// stream's time is up at most.
func (t *watchStream) convertEvents(events []watchcache.Event) error {
	if t.framer.Resource().FromStorageBatch == nil || len(events) == 0 {
		return nil
	}
	ctx, cancel := context.WithDeadline(t.ctx, t.watch.Deadline())
	defer cancel()
	return t.framer.Prepare(ctx, events)
}

// read reads on, after what a convoy has left.
func (t *watchStream) read(buffers *watchBuffers) (n int, err error) {
	switch {
	case len(t.left.events) > 0:
		n = copy(buffers.events[:], t.left.events)
		t.left.events = nil
	case t.left.read != nil:
		return 0, t.left.read
	default:
		n, err = t.watch.Read(buffers.events[:])
	}
	buffers.used = max(buffers.used, n)
	if n > 0 {
		// What has just been read may have been written by a newer definition than
		// was looked at before. That there is none any more shows at the next look.
		t.followDefinition()
	}
	return n, err
}

// count counts events as sent.
func (t *watchStream) count(n int) {
	if n > 0 {
		t.sent.Add(float64(n))
	}
}

// appendBookmark appends the bookmark that ends the initial events, or a
// periodic one, if it is due.
func (t *watchStream) appendBookmark(out []byte) ([]byte, error) {
	bookmark, due := t.watch.TakeBookmark()
	if !due {
		return out, nil
	}
	out, err := t.framer.AppendBookmark(out, bookmark.Revision, bookmark.InitialEventsEnd)
	if err == nil {
		t.sent.Inc()
	}
	return out, err
}

// last sends what has been collected before an ordinary end.
func (t *watchStream) last(out []byte) error {
	if len(out) > 0 {
		if err := t.out.write(out); err != nil {
			return err
		}
	}
	_ = t.out.flush() // the stream ends in any case
	return errNotServed
}

// end sends what has been collected and the reason why nothing follows.
func (t *watchStream) end(out []byte, reason error) error {
	if len(out) > 0 {
		if err := t.out.write(out); err != nil {
			return err
		}
	}
	t.fail(reason)
	return reason
}

// fail sends an error event. Whether it arrives makes no difference: the
// stream ends.
func (t *watchStream) fail(reason error) {
	out, err := t.framer.AppendError(nil, reason)
	if err != nil {
		t.server.config.Logger.Error("a watch cannot say why it ends", "reason", reason, "error", err)
		return
	}
	if t.out.write(out) == nil {
		_ = t.out.flush()
	}
}
