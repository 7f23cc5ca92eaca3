package controller

import "context"

// Tracer observes how changes become calls, for spans of a tracing system.
// Package tracing has one for OpenTelemetry. Its methods are called from many
// goroutines and must return quickly.
type Tracer interface {
	// StartHandler is called when an informer delivers a change that the
	// predicates let pass. enqueued is called with each key that follows from
	// the change, before the key is in the queue, and end after the last one.
	StartHandler(HandlerInfo) (enqueued func(key any), end func())
	// StartReconcile is called before the ReconcileFunc, which gets the
	// returned context. end is called with what came of it; the error is
	// that of a panic, too.
	StartReconcile(ctx context.Context, info ReconcileInfo) (traced context.Context, end func(Result, error))
}

// HandlerInfo describes a change to a Tracer.
type HandlerInfo struct {
	Controller string
	Source     string // the informer's name
	Change     ChangeKind
	Object     Key
	// ResourceVersion of the object's new state.
	ResourceVersion string
}

// ReconcileInfo describes a call to a Tracer.
type ReconcileInfo struct {
	Controller string
	Key        any // a comparable value, of the controller's type of key
	Text       string
	Attempt    int // how often the key has failed since it last succeeded
}

// traceReconcile begins the span of a call, if there is a Tracer.
func (c *TypedController[K]) traceReconcile(ctx context.Context, key K) (context.Context, func(Result, error)) {
	if c.opts.Tracer == nil {
		return ctx, func(Result, error) {}
	}
	return c.opts.Tracer.StartReconcile(ctx, ReconcileInfo{
		Controller: c.opts.Name, Key: key, Text: keyText(key), Attempt: c.queue.NumRequeues(key),
	})
}
