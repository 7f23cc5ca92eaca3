package client

import (
	"context"
	"sync/atomic"
	"time"
)

// Transfer says how far the answer to a request has come, so that a slow answer can be
// told from one that does not come: see [WithTransfer]. The zero value is that of a request
// without an answer. Its methods are safe for concurrent use.
type Transfer struct {
	bytes   atomic.Int64
	partial atomic.Pointer[time.Time]
}

type transferKey struct{}

// WithTransfer returns a context whose requests note in t what they receive. Requests that
// share a Transfer must follow each other.
func WithTransfer(ctx context.Context, t *Transfer) context.Context {
	return context.WithValue(ctx, transferKey{}, t)
}

// Bytes returns how much was received of successful answers, after decompression.
func (t *Transfer) Bytes() int64 { return t.bytes.Load() }

// PartialSince returns since when the client has waited for the rest of an event of which
// a part has come: of the one that [Watch.Next] waits for, or has returned last. It returns
// false for one that has come as a whole.
func (t *Transfer) PartialSince() (time.Time, bool) {
	since := t.partial.Load()
	if since == nil {
		return time.Time{}, false
	}
	return *since, true
}

// transferOf returns the context's; nil: it has none.
func transferOf(ctx context.Context) *Transfer {
	t, _ := ctx.Value(transferKey{}).(*Transfer)
	return t
}

// receive notes bytes. It may be called on nil.
func (t *Transfer) receive(n int) {
	if t != nil {
		t.bytes.Add(int64(n))
	}
}

// setPartial notes whether the rest of an event is waited for, or was.
func (t *Transfer) setPartial(partial bool) {
	if !partial {
		t.partial.Store(nil)
		return
	}
	now := time.Now()
	t.partial.Store(&now)
}
