package tracing

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the name under which spans are made.
const scope = "github.com/levelwire/levelwire/server"

// Tracer makes the spans of requests. It is safe for concurrent use.
type Tracer struct {
	tracer   trace.Tracer
	events   *Events
	shutdown func(context.Context) error // nil if the provider is not ours
}

// New returns a Tracer that makes its spans with a provider, which decides how many requests
// are traced.
func New(provider trace.TracerProvider) *Tracer {
	tracer := provider.Tracer(scope)
	return &Tracer{tracer: tracer, events: newEvents(tracer)}
}

// Events returns what follows the events of traced writes; nil if the Tracer is.
func (t *Tracer) Events() *Events {
	if t == nil {
		return nil
	}
	return t.events
}

// Close sends the spans that have ended, until ctx ends at the latest.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.events.close()
	if t.shutdown == nil {
		return nil
	}
	return t.shutdown(ctx)
}

// trusted are the groups whose users decide by a traceparent header whether a request is
// traced, and of which trace it is a part, as in kube-apiserver. The requests of others begin a
// trace of their own, with a link to the one that they name: any client could have all of its
// requests traced otherwise.
var trusted = []string{"system:masters", "system:monitoring"}

// Request is one request whose user is known.
type Request struct {
	Groups []string // of its user; nil if it was not authenticated
	Began  time.Time
	ID     string // in the audit log
	// Denied is why it was not authenticated.
	Denied error
}

// Begin begins the span of a request that has been authenticated, or was refused as such. It returns
// the request with a context that has the span.
func (t *Tracer) Begin(r *http.Request, q Request) (*http.Request, trace.Span) {
	authenticated := time.Now()
	ctx := r.Context()
	options := []trace.SpanStartOption{
		trace.WithTimestamp(q.Began), trace.WithSpanKind(trace.SpanKindServer),
	}
	if named := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))); named.IsValid() {
		if slices.ContainsFunc(q.Groups, func(group string) bool { return slices.Contains(trusted, group) }) {
			ctx = trace.ContextWithRemoteSpanContext(ctx, named)
		} else {
			options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: named}))
		}
	}
	ctx, span := t.tracer.Start(ctx, r.Method, options...)
	if !span.IsRecording() {
		return r.WithContext(ctx), span
	}
	span.SetAttributes(
		attribute.String("http.request.method", r.Method), textOf("url.path", r.URL.Path),
		textOf("user_agent.original", r.UserAgent()), attribute.String("audit-id", q.ID),
	)
	_, authentication := t.tracer.Start(ctx, "authentication", trace.WithTimestamp(q.Began))
	End(authentication, q.Denied, trace.WithTimestamp(authenticated))
	return r.WithContext(ctx), span
}

// maxText is how many bytes of what clients write at will an attribute has.
const maxText = 256

// textOf is an attribute of a client's text, which is cut if it is long. What is cut off is not
// kept in memory.
func textOf(name, text string) attribute.KeyValue {
	if len(text) > maxText {
		text = strings.Clone(strings.ToValidUTF8(text[:maxText], ""))
	}
	return attribute.String(name, text)
}

// Start begins a span within the context's, if that is recorded; otherwise it costs a look into
// the context. The caller must End it.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noop.Span{}
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithAttributes(attributes...))
}

// End ends a span, which failed if err is not nil.
func End(span trace.Span, err error, options ...trace.SpanEndOption) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(options...)
}

// Propagate adds the traceparent of the context's span to the headers of a request to another
// server, in place of what they have; nothing if there is no span.
func Propagate(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}
