// Package reporter carries what the deciders of a write have to say to its answer and its
// audit event.
package reporter

import "context"

// Reporter takes what the deciders of a write have to say beside their verdict. It is
// called concurrently.
type Reporter interface {
	// Warn adds a text to the warnings of the answer.
	Warn(text string)
	// Annotate adds an annotation to the request's audit event. The first value of a
	// key counts.
	Annotate(key, value string)
}

type key struct{}

// Key is the key under which a context has its Reporter.
var Key any = key{}

// With returns a context whose writes report to r.
func With(ctx context.Context, r Reporter) context.Context {
	return context.WithValue(ctx, Key, r)
}

// From returns the Reporter of the context's request, or nil: the server's own
// writes have none.
func From(ctx context.Context) Reporter {
	r, _ := ctx.Value(Key).(Reporter)
	return r
}

// Warn adds a text to the warnings with which the context's request is answered
// (https://kubernetes.io/blog/2020/09/03/warnings/).
func Warn(ctx context.Context, text string) {
	if r := From(ctx); r != nil {
		r.Warn(text)
	}
}

// Annotate adds an annotation to the audit event of the context's request. The first
// value of a key counts.
func Annotate(ctx context.Context, key, value string) {
	if r := From(ctx); r != nil {
		r.Annotate(key, value)
	}
}
