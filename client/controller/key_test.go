package controller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// mutedKey is a key whose String panics.
type mutedKey struct{ ID int }

func (mutedKey) String() string { panic("no text") }

// recordingTracer keeps the text of the last key.
type recordingTracer struct {
	panickingTracer
	text *string
}

func (r recordingTracer) StartReconcile(ctx context.Context, info ReconcileInfo) (context.Context, func(Result, error)) {
	*r.text = info.Text
	return ctx, func(Result, error) {}
}

// A key whose text cannot be had does not end the process: it is shown without its method, and called as others are.
func TestKeysWhoseStringPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var log bytes.Buffer
		var text string
		calls := 0
		c, err := NewTyped(func(ctx context.Context, _ mutedKey) (Result, error) {
			Logger(ctx).Info("called")
			switch calls++; calls {
			case 1:
				return Result{}, errors.New("not yet")
			case 2:
				return Result{}, TerminalError(errors.New("not any more"))
			}
			return Result{}, nil
		}, TypedOptions[mutedKey]{Name: "widgets", Tracer: recordingTracer{text: &text}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		c.Add(mutedKey{7})
		time.AfterFunc(time.Second, func() { c.Add(mutedKey{7}) })
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.Calls != 3 || s.Failures != 2 || s.Panics != 0 || s.Successes != 1 {
			t.Errorf("%+v", s)
		}
		const want = "controller.mutedKey{ID:7} (its String panicked: no text (controller.mutedKey.String, key_test.go:17))"
		if said := log.String(); strings.Count(said, want) != 5 { // three calls and two errors
			t.Errorf("logged %s", said)
		}
		if text != want {
			t.Errorf("traced %q", text)
		}
	})
}
