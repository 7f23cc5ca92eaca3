package watchstream

import (
	"context"
	"errors"
	"sync"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
	"github.com/levelwire/levelwire/server/internal/runqueue"
)

// joinedBuffers has what parts of the state are joined in for servers that cannot write several
// at once, net/http's. It is about as large as what encoding writes at a time.
var joinedBuffers = sync.Pool{New: func() any { return new([]byte) }}

// writeInitial writes all events of the initial state at once, if they have a
// form that lists share; otherwise it leaves them to writeReady.
func (t *Stream) writeInitial() error {
	if t.member.Err() != nil {
		return nil // writeReady sends it
	}
	body, plain := t.out.(*bodyWriter)
	if !plain || !t.watch.InInitialEvents() || !t.watch.SharesInitial() || !t.encoder.SharesState() {
		return nil
	}
	snapshot, selection := t.watch.TakeInitial()
	gather := gathererOf(body.w)
	joined := joinedBuffers.Get().(*[]byte)
	defer func() {
		if cap(*joined) <= 4*encoding.WriteSize {
			joinedBuffers.Put(joined)
		}
	}()
	err := t.encoder.WriteState(t.ctx, snapshot, selection, func(ctx context.Context, parts encoding.Parts, events int) error {
		if err := ctx.Err(); err != nil {
			return connectionError{err}
		}
		runqueue.FromContext(ctx).Yield()
		var err error
		if gather != nil {
			_, err = gather.WriteBuffers(parts.Pieces...)
		} else {
			*joined = (*joined)[:0]
			for _, part := range parts.Pieces {
				*joined = append(*joined, part...)
			}
			err = body.Write(*joined)
		}
		if err != nil {
			return connectionError{err}
		}
		t.count(events)
		return nil
	}, t.member.Err)
	var broken connectionError
	switch {
	case errors.As(err, &broken):
		return err
	case err != nil:
		return t.end(nil, err)
	}
	return t.out.Flush()
}

// connectionError is an error of the client's connection, on which nothing more can
// be sent.
type connectionError struct{ cause error }

// Error implements error.
func (e connectionError) Error() string { return e.cause.Error() }

// Unwrap returns the error of the connection.
func (e connectionError) Unwrap() error { return e.cause }
