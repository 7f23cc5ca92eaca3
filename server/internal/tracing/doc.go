// Package tracing makes OpenTelemetry spans of requests, and of the way of an event from
// the commit of a write to the sockets of watches. A server that is not configured to
// trace has a nil Tracer and nil Events, and asks nothing else of this package.
//
// Spans of one request have the span of the request as their parent:
//
//	POST /api/v1/namespaces/{:namespace}/pods      the request, until its answer
//	├── authentication
//	├── authorization
//	├── mutating admission
//	│   └── webhook                               each call; the webhook gets a traceparent
//	├── validating admission
//	├── storage create                            the store's transaction
//	├── watch cache                               from the transaction until the event is in the log
//	└── watch                                     for each watch that gets the event: log, encoded, written
//
// Which requests are traced is decided as in kube-apiserver (KEP-647): a share of all, and
// those whose traceparent says so if their users are trusted with that.
package tracing
