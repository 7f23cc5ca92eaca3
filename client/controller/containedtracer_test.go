package controller

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// panickingTracer panics at each start, or only at each end.
type panickingTracer struct{ late bool }

func (p panickingTracer) StartHandler(HandlerInfo) (func(any), func()) {
	if !p.late {
		panic("tracer")
	}
	return func(any) { panic("tracer") }, func() { panic("tracer") }
}

func (p panickingTracer) StartReconcile(ctx context.Context, _ ReconcileInfo) (context.Context, func(Result, error)) {
	if !p.late {
		panic("tracer")
	}
	return ctx, func(Result, error) { panic("tracer") }
}

// A Tracer that panics costs no call, and does not end the process.
func TestTracersThatPanic(t *testing.T) {
	for name, tracer := range map[string]panickingTracer{"at the start": {}, "at the end": {late: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var log bytes.Buffer
				calls := 0
				c, err := New(func(context.Context, Key) (Result, error) { calls++; return Result{}, nil },
					Options{Name: "widgets", Tracer: tracer, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				enqueued, end := c.opts.Tracer.StartHandler(HandlerInfo{})
				enqueued(key)
				end()
				c.Add(key)
				if err := c.Run(ctx); err != nil {
					t.Error(err)
				}
				if s := c.Stats(); calls != 1 || s.Successes != 1 || s.Panics != 0 {
					t.Errorf("%d calls, %+v", calls, s)
				}
				if !strings.Contains(log.String(), "panicked: tracer") {
					t.Errorf("logged %s", log.String())
				}
			})
		})
	}
}
