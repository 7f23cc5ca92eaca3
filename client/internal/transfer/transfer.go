// Package transfer says how far the answer to a request has come. The client notes it, and a
// reflector asks: a slow answer is no silent server.
package transfer

import (
	"context"
	"sync/atomic"
	"time"
)

// Transfer says how far the answer to a request has come, so that a slow answer can be
// told from one that does not come: see [With]. The zero value is that of a request
// without an answer. Its methods are safe for concurrent use.
type Transfer struct {
	bytes   atomic.Int64
	partial atomic.Pointer[time.Time]
}

type key struct{}

// With returns a context whose requests note in t what they receive. Requests that
// share a Transfer must follow each other.
func With(ctx context.Context, t *Transfer) context.Context {
	return context.WithValue(ctx, key{}, t)
}

// Of returns the context's; nil: it has none.
func Of(ctx context.Context) *Transfer {
	t, _ := ctx.Value(key{}).(*Transfer)
	return t
}

// Bytes returns how much was received of successful answers, after decompression.
func (t *Transfer) Bytes() int64 { return t.bytes.Load() }

// PartialSince returns since when the client has waited for the rest of an event of which
// a part has come: of the one that client.Watch.Next waits for, or has returned last. It returns
// false for one that has come as a whole.
func (t *Transfer) PartialSince() (time.Time, bool) {
	since := t.partial.Load()
	if since == nil {
		return time.Time{}, false
	}
	return *since, true
}

// Receive notes bytes. It may be called on nil.
func (t *Transfer) Receive(n int) {
	if t != nil {
		t.bytes.Add(int64(n))
	}
}

// SetPartial notes whether the rest of an event is waited for, or was.
func (t *Transfer) SetPartial(partial bool) {
	if !partial {
		t.partial.Store(nil)
		return
	}
	now := time.Now()
	t.partial.Store(&now)
}
