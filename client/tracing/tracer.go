package tracing

import (
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the name under which spans are made.
const scope = "github.com/levelwire/levelwire/client/tracing"

// Options configures a Tracer.
type Options struct {
	// Propagator writes the span of a request into its headers. Default: W3C
	// Trace Context.
	Propagator propagation.TextMapPropagator
}

// Tracer makes spans. It is safe for concurrent use, and one is enough for a
// process: it implements controller.Tracer, and its WrapTransport is for
// client.Options.
type Tracer struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator

	mu      sync.Mutex
	origins map[originKey]*origin
	writes  recentWrites
}

// New returns a Tracer that makes its spans with the provider, which decides
// what is sampled. A nil provider makes none.
func New(provider trace.TracerProvider, opts Options) *Tracer {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	if opts.Propagator == nil {
		opts.Propagator = propagation.TraceContext{}
	}
	return &Tracer{tracer: provider.Tracer(scope), propagator: opts.Propagator, origins: map[originKey]*origin{}}
}
