package watchstream

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/read"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// errEnded ends a stream without an error event, as when the time is up. If the
// resource is not served any more, the client gets a 404 when it comes back.
var errEnded = errors.New("the stream has come to its end")

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

// writeReady writes everything that is ready now, and a bookmark if one is due. It
// may block. An error ends the stream; it has been sent, if it can be. Conversions
// by webhook that are not done at the deadline are given up.
func (t *Stream) writeReady() error {
	if t.refused {
		return errEnded
	}
	b := bufferPool.Get().(*buffers)
	defer b.release()
	defer t.endWriting(b)
	if err := t.member.Err(); err != nil {
		t.pending = pending{reason: err} // what the scheduler has left is not sent any more
	}
	out := append(b.parts.Bytes[:0], t.pending.bytes...)
	t.pending.bytes = nil
	b.sends, t.pending.sends = append(b.sends[:0], t.pending.sends...), nil
	if t.pending.reason != nil {
		return t.end(out, t.pending.reason)
	}
	wrote := false
	for {
		live := !t.watch.InInitialEvents()
		again := len(t.pending.events) > 0 // what the scheduler has read, and traced
		n, readErr := t.read(b)
		if live && !again {
			t.trace(b, b.events[:n])
		}
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
				t.beginWriting(b)
				if err := t.out.Write(out); err != nil {
					return err
				}
				out, wrote = out[:0], true
			}
		}
		t.count(n)
		b.traceEncoded()
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
		t.beginWriting(b)
		if err := t.out.Write(out); err != nil {
			return err
		}
	}
	if !wrote {
		return nil
	}
	err = t.out.Flush()
	if err == nil {
		t.streams.traceWritten(b)
	}
	return err
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
// cursor. Where there are none, and the version is not served any more, it fails with
// read.ErrClosed.
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
	// The definition is looked up after the read, for two reasons. The events may have
	// been written by a newer definition than the one that the encoder has. And where
	// there are no events the cursor sleeps from here on, so that a later change of the
	// definition wakes it; an earlier one may not have.
	//
	// If the version is not served any more, what the older definition can encode is
	// sent before the stream ends, such as the deletions that end a custom resource.
	served := t.followDefinition()
	// So is whether the right was withdrawn. However long this goroutine is kept from running between
	// the two: what is written after the withdrawal is not among what was read before it.
	if err := t.member.Err(); err != nil {
		return 0, err
	}
	if !served && n == 0 && err == nil {
		return 0, read.ErrClosed
	}
	return n, err
}

// count counts events as sent.
func (t *Stream) count(n int) {
	if n > 0 {
		t.events += int64(n)
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
	return errEnded
}

// end sends the events before an error, and the error. If the version is not served
// any more, the stream ends ordinarily instead: the older definition, which the
// stream still has, may know nothing of the version that an object is stored in.
func (t *Stream) end(out []byte, reason error) error {
	if !t.followDefinition() {
		return t.last(out)
	}
	if len(out) > 0 && t.member.Err() == nil { // else the client may not see them any more
		if err := t.out.Write(out); err != nil {
			return err
		}
	}
	t.fail(reason)
	return reason
}

// fail sends an error event. The stream ends whether it arrives or not.
func (t *Stream) fail(reason error) {
	if t.refused {
		return
	}
	out, err := t.streams.encodeError(&t.encoder, reason)
	if err != nil {
		t.streams.config.Logger.Error("a watch cannot say why it ends", "reason", reason, "error", err)
		return
	}
	if t.out.Write(out) == nil {
		_ = t.out.Flush()
	}
}

// encodedError is an error event.
type encodedError struct {
	reason *apierrors.StatusError
	media  encoding.Media
	event  []byte // which nothing modifies
}

// encodeError encodes an error event. Thousands of watches that end for the same reason, such as
// a right that was withdrawn, share the event.
func (s *Streams) encodeError(encoder *encoding.EventEncoder, reason error) ([]byte, error) {
	shared, ok := reason.(*apierrors.StatusError) //nolint:errorlint // what wraps it says something else
	if !ok {
		return encoder.AppendError(nil, reason)
	}
	media := encoder.Form().Media
	if last := s.lastError.Load(); last != nil && last.reason == shared && last.media == media {
		return last.event, nil
	}
	event, err := encoder.AppendError(nil, reason)
	if err == nil {
		s.lastError.Store(&encodedError{shared, media, event})
	}
	return event, err
}
