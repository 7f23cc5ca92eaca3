package apiserver

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/levelwire/levelwire/server/internal/apiserver/request"
)

// endTrace ends the span of a request.
func endTrace(span trace.Span, method string, record *request.Record) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if info := record.Info; info != nil {
		span.SetName(spanName(method, info))
		span.SetAttributes(attribute.String("k8s.verb", info.Verb))
	}
	span.SetAttributes(
		attribute.Int("http.response.status_code", record.Code), attribute.Int64("http.response.body.size", record.Written),
		attribute.String("user.name", record.User.Name),
	)
	if record.Code >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	if record.Err != nil {
		span.RecordError(record.Err)
	}
}

// spanName is the method and the path of a request without the names of its objects, as
// kube-apiserver has it.
func spanName(method string, info *request.Info) string {
	var name strings.Builder
	name.WriteString(method)
	if info.Resource.Group == "" {
		name.WriteString(" /api/")
	} else {
		name.WriteString(" /apis/" + info.Resource.Group + "/")
	}
	name.WriteString(info.Resource.Version)
	if info.Namespace != "" {
		name.WriteString("/namespaces/{:namespace}")
	}
	name.WriteString("/" + info.Resource.Plural)
	if info.Name != "" {
		name.WriteString("/{:name}")
	}
	if info.Subresource != "" {
		name.WriteString("/" + info.Subresource)
	}
	return name.String()
}
