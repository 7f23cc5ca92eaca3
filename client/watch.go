package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"sync/atomic"

	"github.com/levelwire/levelwire/client/internal/codec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Watch is an open stream of events. Next is for one goroutine at a time;
// Close may be called from any.
type Watch[T Object] struct {
	answer *answer
	events *codec.EventStream[T]
	src    *codec.Source
	ctx    context.Context // of the request; ended by cancel, and its end closes answer
	cancel context.CancelCauseFunc
	err    error // what ended the stream; sticky
	what   string

	closed atomic.Bool
}

// Watch opens a stream of events and returns when the server has answered. The
// stream ends with ctx, or with [Watch.Close], one of which must happen unless
// Next has returned an error. A refusal is not repeated here.
func (r Resource[T]) Watch(ctx context.Context, opts metav1.ListOptions) (*Watch[T], error) {
	opts.Watch = true
	q := call{verb: "watch", method: http.MethodGet, query: &opts, list: true}
	req, err := r.request(q)
	if err != nil {
		return nil, err
	}
	// A metadata-only stream has single objects in it.
	if req.form == codec.FormMetadata {
		req.list = false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ans, err := r.client.do(ctx, req)
	if err != nil {
		cancel(nil)
		return nil, r.explainVisible(q.verb, r.explain(ctx, q, err))
	}
	state := opts.SendInitialEvents != nil && *opts.SendInitialEvents || opts.ResourceVersion == "" || opts.ResourceVersion == "0"
	if err := r.confirmVisible(q.verb, ans.resp.Header, state); err != nil {
		cancel(nil)
		ans.close()
		return nil, err
	}
	w := &Watch[T]{answer: ans, ctx: ctx, cancel: cancel, what: "watch " + r.gvr.Resource}
	w.src = codec.NewSource(ans, r.client.opts.MaxFrameBytes)
	if t := ans.transfer; t != nil {
		t.SetPartial(false)
		w.src.OnPartial(t.SetPartial)
	}
	if w.events, err = r.codec.NewEventStream(ans.encoding(), w.src); err != nil {
		cancel(nil)
		ans.close()
		return nil, &DecodeError{What: w.what, Err: err}
	}
	context.AfterFunc(ctx, ans.close)
	return w, nil
}

// Next waits for the next event. The errors are:
//
//   - io.EOF: the server ended the stream, as it does after timeoutSeconds;
//   - *apierrors.StatusError: the server sent an ERROR event and ended it;
//   - *DecodeError: an event could not be understood;
//   - ErrClosed after Close, the context's cause after its end;
//   - any other: the connection was cut.
//
// After an error the stream is closed, and the error stays.
func (w *Watch[T]) Next() (WatchEvent[T], error) {
	if w.err != nil {
		return WatchEvent[T]{}, w.err
	}
	ev, status, err := w.events.Next()
	switch {
	case err == nil && status == nil:
		return WatchEvent[T](ev), nil
	case w.closed.Load():
		err = ErrClosed
	case w.ctx.Err() != nil:
		err = fmt.Errorf("%s: %w", w.what, context.Cause(w.ctx))
	case status != nil:
		err = fmt.Errorf("%s: %w", w.what, apierrors.FromObject(status))
	case errors.Is(err, io.EOF):
		err = io.EOF
	default:
		err = fmt.Errorf("%s: %w", w.what, streamError(w.src, "event", err))
	}
	w.err = err
	w.cancel(nil)
	w.answer.close()
	return WatchEvent[T]{}, err
}

// Close ends the stream and releases its connection. A Next that waits then
// returns ErrClosed.
func (w *Watch[T]) Close() {
	w.closed.Store(true)
	w.cancel(ErrClosed)
	w.answer.close()
}

// Events returns the events of the watch for a loop, and closes the watch when
// the loop ends. The loop ends without an error when the server ends the stream,
// as it does after timeoutSeconds. Any other error of [Watch.Next] is the last
// thing that the loop gets.
//
//	for event, err := range watch.Events() {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (w *Watch[T]) Events() iter.Seq2[WatchEvent[T], error] {
	return func(yield func(WatchEvent[T], error) bool) {
		defer w.Close()
		for {
			event, err := w.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}
