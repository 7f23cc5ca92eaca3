package server

import (
	"context"
	"time"

	"github.com/levelwire/levelwire/server/internal/registry/reporter"
	"github.com/levelwire/levelwire/storage"
)

// timed returns a store that reports to requests how long it takes, if they are audited.
func (s *Server) timed(base storage.Store) storage.Store {
	if !s.config.Audit.Enabled() {
		return base
	}
	return timedStore{base}
}

type timedStore struct{ storage.Store }

// Unwrap returns the store that is measured; see storage.Innermost.
func (s timedStore) Unwrap() storage.Store { return s.Store }

// Get implements storage.Reader.
func (s timedStore) Get(ctx context.Context, key string, at storage.Revision) (storage.KeyValue, error) {
	defer reporter.Measure(ctx, reporter.Storage).End()
	return s.Store.Get(ctx, key, at)
}

// Create implements storage.Writer.
func (s timedStore) Create(ctx context.Context, key string, value []byte, ttl time.Duration) (storage.Revision, error) {
	defer reporter.Measure(ctx, reporter.Storage).End()
	return s.Store.Create(ctx, key, value, ttl)
}

// Update implements storage.Writer.
func (s timedStore) Update(ctx context.Context, key string, value []byte, expect storage.Revision, ttl time.Duration) (storage.Revision, error) {
	defer reporter.Measure(ctx, reporter.Storage).End()
	return s.Store.Update(ctx, key, value, expect, ttl)
}

// Delete implements storage.Writer.
func (s timedStore) Delete(ctx context.Context, key string, expect storage.Revision) (storage.Revision, error) {
	defer reporter.Measure(ctx, reporter.Storage).End()
	return s.Store.Delete(ctx, key, expect)
}
