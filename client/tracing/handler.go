package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
)

// Handler returns a handler that calls another one, each call within a span
// "handle <name>". The handlers that a controller has for its watches have
// spans without it; see controller.Options.
func Handler[T client.Object](t *Tracer, name string, handler informer.Handler[T]) informer.Handler[T] {
	if handler == nil {
		return nil // the informer refuses it
	}
	return tracedHandler[T]{t, name, handler}
}

type tracedHandler[T client.Object] struct {
	tracer  *Tracer
	name    string
	handler informer.Handler[T]
}

// OnAdd implements informer.Handler.
func (h tracedHandler[T]) OnAdd(obj T, initial bool) {
	defer h.start(controller.Added, obj)()
	h.handler.OnAdd(obj, initial)
}

// OnUpdate implements informer.Handler.
func (h tracedHandler[T]) OnUpdate(old, obj T) {
	defer h.start(controller.Updated, obj)()
	h.handler.OnUpdate(old, obj)
}

// OnDelete implements informer.Handler.
func (h tracedHandler[T]) OnDelete(obj T, finalStateUnknown bool) {
	defer h.start(controller.Deleted, obj)()
	h.handler.OnDelete(obj, finalStateUnknown)
}

// start begins the span of a call. The returned function ends it; it passes a
// panic on to the informer, which counts it.
func (h tracedHandler[T]) start(kind controller.ChangeKind, obj T) (end func()) {
	span := h.tracer.startHandler(h.name, obj.GetNamespace(), obj.GetResourceVersion())
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String(attrHandler, h.name),
			attribute.String(attrChange, changes[kind]),
			attribute.String(attrNamespace, obj.GetNamespace()),
			attribute.String(attrName, obj.GetName()),
			attribute.String(attrResourceVersion, obj.GetResourceVersion()),
		)
	}
	return func() {
		if r := recover(); r != nil {
			span.SetStatus(codes.Error, "the handler panicked")
			span.End()
			panic(r)
		}
		span.End()
	}
}
