package watchstream

import (
	"context"
	"errors"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// errNotServed ends a stream whose resource is no longer served. The client
// sees an ordinary end, as when the time is up, and a 404 when it comes back.
var errNotServed = errors.New("the resource is not served any more")

// writeReady writes everything that is ready now, and a bookmark if one is due. It
// may block. An error ends the stream; it has been sent, if it can be. Conversions
// by webhook that are not done at the deadline are given up.
func (t *Stream) writeReady() error {
	served := t.followDefinition()
	if err := t.writeEvents(); err != nil {
		return err
	}
	if !served {
		return errNotServed
	}
	return nil
}

// followDefinition encodes the following events by the present definition of a
// custom resource: a watch outlives changes of it. It returns false if the version
// is not served any more, or another definition has taken its place.
func (t *Stream) followDefinition() bool {
	res := t.encoder.Resource()
	if !res.Stored().Mixed {
		return true
	}
	now := t.streams.config.Resources.Lookup(res.Group, res.Version, res.Plural)
	if now == nil || now.Stored() != res.Stored() {
		return false
	}
	if now != res {
		t.encoder.SetResource(now)
	}
	return true
}

// writeEvents is writeReady without the check of the definition.
func (t *Stream) writeEvents() error {
	b := bufferPool.Get().(*buffers)
	defer b.release()
	out := append(b.parts.Bytes[:0], t.pending.bytes...)
	t.pending.bytes = nil
	if t.pending.reason != nil {
		return t.end(out, t.pending.reason)
	}
	wrote := false
	for {
		live := !t.watch.InInitialEvents()
		n, readErr := t.read(b)
		if reason := t.convertEvents(b.events[:n]); reason != nil {
			if !time.Now().Before(t.watch.Deadline()) {
				return t.last(out) // the client resumes from what it has got
			}
			return t.end(out, reason)
		}
		for i, event := range b.events[:n] {
			var err error
			if out, err = t.encoder.AppendEvent(t.ctx, out, event, live); err != nil {
				t.count(i)
				return t.end(out, err)
			}
			if len(out) >= encoding.WriteSize || t.out.Single() {
				if err := t.out.Write(out); err != nil {
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
	b.parts.Bytes = out
	if err != nil {
		return t.end(out, err)
	}
	if len(out) > 0 {
		wrote = true
		if err := t.out.Write(out); err != nil {
			return err
		}
	}
	if !wrote {
		return nil
	}
	return t.out.Flush()
}

// convertEvents has a webhook convert the objects of the events, if one does that
// for this resource, until the watch's deadline at most.
func (t *Stream) convertEvents(events []watchcache.Event) error {
	if t.encoder.Resource().FromStorageBatch == nil || len(events) == 0 {
		return nil
	}
	ctx, cancel := context.WithDeadline(t.ctx, t.watch.Deadline())
	defer cancel()
	return t.encoder.Prepare(ctx, events)
}

// read returns what the scheduler has left pending, and then the next events of the
// cursor.
func (t *Stream) read(b *buffers) (n int, err error) {
	switch {
	case len(t.pending.events) > 0:
		n = copy(b.events[:], t.pending.events)
		t.pending.events = nil
	case t.pending.read != nil:
		return 0, t.pending.read
	default:
		n, err = t.watch.Read(b.events[:])
	}
	b.used = max(b.used, n)
	if n > 0 {
		// These events may have been written by a newer definition than the one that was
		// looked up before. If there is none any more, the next check finds that.
		t.followDefinition()
	}
	return n, err
}

// count counts events as sent.
func (t *Stream) count(n int) {
	if n > 0 {
		t.sent.Add(float64(n))
	}
}

// appendBookmark appends the bookmark that ends the initial events, or a
// periodic one, if it is due.
func (t *Stream) appendBookmark(out []byte) ([]byte, error) {
	bookmark, due := t.watch.TakeBookmark()
	if !due {
		return out, nil
	}
	out, err := t.encoder.AppendBookmark(out, bookmark.Revision, bookmark.InitialEventsEnd)
	if err == nil {
		t.sent.Inc()
	}
	return out, err
}

// last sends the events before an ordinary end.
func (t *Stream) last(out []byte) error {
	if len(out) > 0 {
		if err := t.out.Write(out); err != nil {
			return err
		}
	}
	_ = t.out.Flush() // the stream ends in any case
	return errNotServed
}

// end sends the events before an error, and the error.
func (t *Stream) end(out []byte, reason error) error {
	if len(out) > 0 {
		if err := t.out.Write(out); err != nil {
			return err
		}
	}
	t.fail(reason)
	return reason
}

// fail sends an error event. The stream ends whether it arrives or not.
func (t *Stream) fail(reason error) {
	out, err := t.encoder.AppendError(nil, reason)
	if err != nil {
		t.streams.config.Logger.Error("a watch cannot say why it ends", "reason", reason, "error", err)
		return
	}
	if t.out.Write(out) == nil {
		_ = t.out.Flush()
	}
}
