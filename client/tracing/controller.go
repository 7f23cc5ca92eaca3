package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/levelwire/levelwire/client/controller"
)

var _ controller.Tracer = (*Tracer)(nil)

// Attributes of spans, beside those of OpenTelemetry's semantic conventions.
const (
	attrController      = "levelwire.controller"
	attrKey             = "levelwire.key"
	attrAttempt         = "levelwire.attempt"
	attrRequeueAfter    = "levelwire.requeue_after"
	attrInformer        = "levelwire.informer"
	attrHandler         = "levelwire.handler"
	attrChange          = "levelwire.change"
	attrResource        = "levelwire.resource"
	attrVerb            = "levelwire.verb"
	attrResourceVersion = "levelwire.resource_version"
	attrCause           = "levelwire.cause"
	attrNamespace       = "k8s.namespace.name"
	attrName            = "k8s.object.name"
)

// The causes of a call, and of a change.
const (
	causeChange = "change" // of an object
	causeRetry  = "retry"  // of a call that failed, or asked for another one
	causeWrite  = "write"  // of an object, by a request of this process
)

// causes are the attributes of links.
var causes = map[string][]attribute.KeyValue{
	causeChange: {attribute.String(attrCause, causeChange)},
	causeRetry:  {attribute.String(attrCause, causeRetry)},
	causeWrite:  {attribute.String(attrCause, causeWrite)},
}

// changes are the names of controller.ChangeKind.
var changes = map[controller.ChangeKind]string{controller.Added: "added", controller.Updated: "updated", controller.Deleted: "deleted"}

// StartHandler implements controller.Tracer: a span "handle <controller>".
func (t *Tracer) StartHandler(info controller.HandlerInfo) (enqueued func(key any), end func()) {
	span := t.startHandler(info.Controller, info.Object.Namespace, info.ResourceVersion)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String(attrController, info.Controller),
			attribute.String(attrInformer, info.Source),
			attribute.String(attrChange, changes[info.Change]),
			attribute.String(attrNamespace, info.Object.Namespace),
			attribute.String(attrName, info.Object.Name),
			attribute.String(attrResourceVersion, info.ResourceVersion),
		)
	}
	at := span.SpanContext()
	return func(key any) { t.addOrigin(originKey{info.Controller, key}, at, causeChange) }, func() { span.End() }
}

// StartReconcile implements controller.Tracer: a span "reconcile <controller>".
func (t *Tracer) StartReconcile(ctx context.Context, info controller.ReconcileInfo) (context.Context, func(controller.Result, error)) {
	key := originKey{info.Controller, info.Key}
	from := t.takeOrigin(key)
	if from.parent.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, from.parent)
	}
	ctx, span := t.tracer.Start(ctx, "reconcile "+info.Controller, trace.WithLinks(from.links...))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String(attrController, info.Controller),
			attribute.String(attrKey, info.Text),
			attribute.Int(attrAttempt, info.Attempt),
		)
	}
	return ctx, func(result controller.Result, err error) {
		if err != nil || result.RequeueAfter > 0 {
			t.addOrigin(key, span.SpanContext(), causeRetry)
		}
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		} else if result.RequeueAfter > 0 {
			span.SetAttributes(attribute.String(attrRequeueAfter, result.RequeueAfter.String()))
		}
		span.End()
	}
}

// startHandler begins the span of a change, with a link to the request that
// made it.
func (t *Tracer) startHandler(name, namespace, resourceVersion string) trace.Span {
	_, span := t.tracer.Start(context.Background(), "handle "+name,
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(t.linksTo(namespace, resourceVersion)...))
	return span
}
