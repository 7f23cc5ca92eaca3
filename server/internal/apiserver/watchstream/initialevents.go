package watchstream

import (
	"context"
	"errors"

	"github.com/levelwire/levelwire/server/internal/apiserver/encoding"
)

// writeInitial writes all events of the initial state at once, if they have a
// form that lists share; otherwise it leaves them to writeReady.
func (t *Stream) writeInitial() error {
	body, plain := t.out.(*bodyWriter)
	if !plain || !t.watch.InInitialEvents() || !t.encoder.SharesState() {
		return nil
	}
	snapshot, selection := t.watch.TakeInitial()
	gather := gathererOf(body.w)
	var joined []byte
	err := t.encoder.WriteState(t.ctx, snapshot, selection, func(ctx context.Context, parts encoding.Parts, events int) error {
		if err := ctx.Err(); err != nil {
			return connectionError{err}
		}
		var err error
		if gather != nil {
			_, err = gather.WriteBuffers(parts.Pieces...)
			t.record.Written += int64(parts.Size)
		} else {
			joined = joined[:0]
			for _, part := range parts.Pieces {
				joined = append(joined, part...)
			}
			err = body.Write(joined)
		}
		if err != nil {
			return connectionError{err}
		}
		t.count(events)
		return nil
	})
	var broken connectionError
	switch {
	case errors.As(err, &broken):
		return err
	case err != nil:
		t.fail(err)
		return err
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
