package server

import (
	"context"
	"fmt"

	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/tracing"
	"github.com/levelwire/levelwire/storage"
)

// readTracing reads the tracing configuration, if there is one.
func (c *Config) readTracing() (err error) {
	if c.TracingConfigFile == "" {
		return nil
	}
	if c.tracing, err = tracing.ReadConfig(c.TracingConfigFile); err != nil {
		return fmt.Errorf("--tracing-config-file: %w", err)
	}
	return nil
}

// openTracer sets s.tracer, which stays nil unless requests are traced. close must be called when
// all requests have ended; it may take as long as requests may delay the shutdown.
func (s *Server) openTracer(ctx context.Context) (close func(), err error) {
	if s.config.tracing == nil {
		return func() {}, nil
	}
	if s.tracer, err = s.config.tracing.Open(ctx, s.URL()); err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.shutdownTimeout())
		defer cancel()
		if err := s.tracer.Close(ctx); err != nil {
			s.config.Logger.Warn("the last spans could not be sent", "error", err)
		}
	}, nil
}

// traceAdmission returns a hook that is a span of its request.
func (s *Server) traceAdmission(name string, hook registry.Admission) registry.Admission {
	if s.tracer == nil {
		return hook
	}
	return func(ctx context.Context, q *registry.Request) error {
		ctx, span := tracing.Start(ctx, name)
		err := hook(ctx, q)
		tracing.End(span, err)
		return err
	}
}

// eventApplied is what the caches call with the changes in their logs; nil unless requests are
// traced.
func (s *Server) eventApplied() func(prefix, key string, revision storage.Revision) {
	if s.tracer == nil {
		return nil
	}
	return s.tracer.Events().Applied
}
