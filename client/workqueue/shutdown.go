package workqueue

import (
	"context"
	"fmt"
)

// ShutDown makes the queue take no more keys. Workers get the keys that still
// wait, then false; a worker whose context has ended gets false at once, which
// is how to drop them. Delayed keys are dropped. It does not wait, and it ends
// a ShutDownWithDrain that does.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
	select {
	case <-q.halted:
	default:
		close(q.halted)
	}
}

// ShutDownWithDrain makes the queue take no more keys and waits until the
// workers have taken and finished every key that waits or is being worked on.
// It returns an error if ctx ends or ShutDown is called before that.
func (q *Queue[K]) ShutDownWithDrain(ctx context.Context) error {
	q.mu.Lock()
	q.close()
	q.mu.Unlock()
	select {
	case <-q.drained:
		return nil
	case <-q.halted:
		return fmt.Errorf("work queue was shut down while draining: %s", q.unfinished())
	case <-ctx.Done():
		return fmt.Errorf("work queue has not drained: %s: %w", q.unfinished(), context.Cause(ctx))
	}
}

// ShuttingDown reports whether a shutdown has begun.
func (q *Queue[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing
}

func (q *Queue[K]) unfinished() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return fmt.Sprintf("%d keys wait, %d are being worked on", q.ready.n, q.busy)
}

// close needs q.mu.
func (q *Queue[K]) close() {
	if q.closing {
		return
	}
	q.closing = true
	q.dropDelayed()
	close(q.closed)
	q.checkDrained()
}

// checkDrained needs q.mu. It closes drained once: after closing begins the
// number of items only falls, and reaches 0 once.
func (q *Queue[K]) checkDrained() {
	if q.closing && len(q.items) == 0 {
		close(q.drained)
	}
}
