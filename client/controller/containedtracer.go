package controller

import (
	"context"
	"log/slog"

	"github.com/levelwire/levelwire/client/internal/contain"
)

// containedTracer is the program's Tracer. A panic of it is logged and costs a span: what it observes, a
// call or a change that queues keys, goes on.
type containedTracer struct {
	tracer Tracer
	log    *slog.Logger
	panics contain.Counter
}

func (c *containedTracer) call(what string, call func()) { c.panics.Call(c.log, what, call) }

func (c *containedTracer) StartHandler(info HandlerInfo) (enqueued func(key any), end func()) {
	var tracedKey func(key any)
	var endSpan func()
	c.call("Tracer.StartHandler", func() { tracedKey, endSpan = c.tracer.StartHandler(info) })
	if tracedKey == nil || endSpan == nil {
		return func(any) {}, func() {}
	}
	return func(key any) { c.call("Tracer's enqueued", func() { tracedKey(key) }) },
		func() { c.call("Tracer's end of a handler", endSpan) }
}

func (c *containedTracer) StartReconcile(ctx context.Context, info ReconcileInfo) (traced context.Context, end func(Result, error)) {
	traced = ctx
	var endSpan func(Result, error)
	c.call("Tracer.StartReconcile", func() { traced, endSpan = c.tracer.StartReconcile(ctx, info) })
	if traced == nil || endSpan == nil {
		return ctx, func(Result, error) {}
	}
	return traced, func(result Result, err error) {
		c.call("Tracer's end of a call", func() { endSpan(result, err) })
	}
}
