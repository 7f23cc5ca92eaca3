package tracing

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// WrapTransport is for client.Options.WrapTransport: each attempt of a request
// gets a span "<verb> <resource>", a child of the span of the request's
// context. The span of a watch ends when the watch has begun, those of others
// when the answer has been read.
func (t *Tracer) WrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper{t, next}
}

type roundTripper struct {
	tracer *Tracer
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	api := parsePath(req.URL.Path)
	verb := api.verb(req)
	ctx, span := r.tracer.tracer.Start(req.Context(), api.spanName(verb, req.Method), trace.WithSpanKind(trace.SpanKindClient))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("http.request.method", req.Method),
			attribute.String("server.address", req.URL.Hostname()),
			attribute.String("url.path", req.URL.Path),
			attribute.String(attrVerb, verb),
			attribute.String(attrResource, api.resource),
			attribute.String(attrNamespace, api.namespace),
			attribute.String(attrName, api.name),
		)
	}
	req = req.Clone(ctx)
	r.tracer.propagator.Inject(ctx, propagation.HeaderCarrier(req.Header))
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		span.End()
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, resp.Status)
	}
	if verb == "watch" || !span.IsRecording() || resp.StatusCode == http.StatusSwitchingProtocols {
		span.End()
		return resp, nil
	}
	body := &tracedBody{body: resp.Body, span: span}
	if writes[verb] && resp.StatusCode < http.StatusMultipleChoices {
		body.written = func(answer []byte) { r.tracer.addWrite(api.namespace, answer, span.SpanContext()) }
	}
	resp.Body = body
	return resp, nil
}

// writes are the verbs whose answer is the object as it was written.
var writes = map[string]bool{"create": true, "update": true, "patch": true}

// tracedBody ends its span when the body has been read or closed.
type tracedBody struct {
	body io.ReadCloser
	span trace.Span
	once sync.Once

	written func(answer []byte) // called at the end with the first bytes; nil: with none
	prefix  []byte
}

// Read implements io.Reader.
func (b *tracedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if b.written != nil && len(b.prefix) < maxAnswerPrefix {
		b.prefix = append(b.prefix, p[:min(n, maxAnswerPrefix-len(b.prefix))]...)
	}
	if err != nil {
		b.end(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *tracedBody) Close() error {
	err := b.body.Close()
	b.end(nil)
	return err
}

func (b *tracedBody) end(err error) {
	b.once.Do(func() {
		if b.written != nil {
			b.written(b.prefix)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			b.span.SetStatus(codes.Error, err.Error())
		}
		b.span.End()
	})
}

// apiPath is what the path of a request to an API server names.
type apiPath struct {
	resource, namespace, name, subresource string
}

// parsePath understands /api/VERSION and /apis/GROUP/VERSION, also below the
// path of a proxy. Of any other path it returns nothing.
func parsePath(path string) (p apiPath) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for n, part := range parts {
		switch {
		case part == "api" && len(parts) > n+2:
			return parseResource(parts[n+2:])
		case part == "apis" && len(parts) > n+3:
			return parseResource(parts[n+3:])
		}
	}
	return p
}

// parseResource reads [namespaces NAMESPACE] RESOURCE [NAME [SUBRESOURCE ...]].
func parseResource(parts []string) (p apiPath) {
	if parts[0] == "namespaces" && len(parts) > 2 && !namespaceSubresources[parts[2]] {
		p.namespace, parts = parts[1], parts[2:]
	}
	p.resource = parts[0]
	if len(parts) > 1 {
		p.name = parts[1]
	}
	if len(parts) > 2 {
		p.subresource = parts[2]
	}
	return p
}

// namespaceSubresources are those of namespaces themselves.
var namespaceSubresources = map[string]bool{"status": true, "finalize": true}

// verb is the API verb of a request, as authorization has it.
func (p apiPath) verb(req *http.Request) string {
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		query := req.URL.Query()
		switch {
		case p.resource == "":
			return "get"
		case query.Get("watch") == "true" || query.Get("watch") == "1":
			return "watch"
		case p.name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if p.name == "" && p.resource != "" {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(req.Method)
}

// spanName has no names of objects in it: backends group spans by name.
func (p apiPath) spanName(verb, method string) string {
	switch {
	case p.resource == "":
		return method
	case p.subresource != "":
		return verb + " " + p.resource + "/" + p.subresource
	}
	return verb + " " + p.resource
}
