package feed

import "context"

// RetryLast is the longest delay between two attempts.
const RetryLast = retryLast

// Replay makes one attempt to backfill all caches, which Run does not do then.
func (f *Feed) Replay(ctx context.Context) error { return f.replay(ctx, f.order) }
