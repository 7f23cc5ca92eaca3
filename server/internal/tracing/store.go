package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/levelwire/levelwire/storage"
)

// Store returns a store whose writes are spans of their requests, and whose events are followed;
// base itself if t is nil.
func (t *Tracer) Store(base storage.Store) storage.Store {
	if t == nil {
		return base
	}
	return &store{base, t.events}
}

type store struct {
	storage.Store
	events *Events
}

// Create implements storage.Writer.
func (s *store) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	return s.write(ctx, "storage create", key, len(value), func(ctx context.Context) (storage.Revision, error) {
		return s.Store.Create(ctx, key, value, ttl)
	})
}

// Update implements storage.Writer.
func (s *store) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	return s.write(ctx, "storage update", key, len(value), func(ctx context.Context) (storage.Revision, error) {
		return s.Store.Update(ctx, key, value, expect, ttl)
	})
}

// Delete implements storage.Writer.
func (s *store) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	return s.write(ctx, "storage delete", key, 0, func(ctx context.Context) (storage.Revision, error) {
		return s.Store.Delete(ctx, key, expect)
	})
}

func (s *store) write(ctx context.Context, name, key string, size int, f func(context.Context) (storage.Revision, error)) (storage.Revision, error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return f(ctx)
	}
	inner, span := Start(ctx, name, textOf("storage.key", key), attribute.Int("storage.value.size", size))
	followed := s.events.begin(ctx, key)
	revision, err := f(inner)
	s.events.committed(followed, revision, err)
	if err == nil {
		span.SetAttributes(attribute.Int64("k8s.resource_version", int64(revision)))
	}
	End(span, err)
	return revision, err
}
