package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namespaceTerminating is corev1.NamespaceTerminatingCause, without the package: a
// program whose types are all custom does not link the types of Kubernetes.
const namespaceTerminating metav1.CauseType = "NamespaceTerminating"

// TerminalError marks an error that a retry does not correct: the object is
// invalid, say, and its next change enqueues the key anyway. The controller logs
// and counts the error, and ends the key's back-off. TerminalError(nil) is nil.
func TerminalError(err error) error {
	if err == nil {
		return nil
	}
	return terminalError{err}
}

type terminalError struct{ error }

func (p terminalError) Unwrap() error { return p.error }

// reconcile calls the ReconcileFunc with one key, and decides when to do so again.
func (c *TypedController[K]) reconcile(ctx context.Context, key K) {
	putOff := false
	defer func() {
		if !putOff {
			c.wakes.end(key)
		}
		c.queue.Done(key)
	}()
	result, err := c.call(ctx, key)
	var behind behindError
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &behind):
		if other := besidesBehind(err); other != nil {
			c.counts.failures.Add(1)
			c.opts.Logger.Warn("not reconciled, trying again when the informers have caught up", "key", keyText(key), "error", other)
		}
		putOff = true
		c.putKeyOff(key, behind)
	case err != nil:
		c.failed(key, err)
	default:
		if !result.Pending {
			c.queue.Forget(key)
		}
		if result.RequeueAfter > 0 {
			c.counts.requeues.Add(1)
			c.queue.AddAfter(key, result.RequeueAfter)
		} else {
			c.counts.successes.Add(1)
		}
	}
}

// besidesBehind returns the errors that are joined with that of [Consistent], or nil.
func besidesBehind(err error) error {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return nil
	}
	var others []error
	for _, err := range joined.Unwrap() {
		if errors.As(err, new(behindError)) {
			err = besidesBehind(err)
		}
		others = append(others, err)
	}
	return errors.Join(others...)
}

func (c *TypedController[K]) failed(key K, err error) {
	c.counts.failures.Add(1)
	switch {
	case errors.As(err, new(terminalError)):
		c.counts.terminal.Add(1)
		c.opts.Logger.Warn("not reconciled, waiting for a change", "key", keyText(key), "error", err)
		c.queue.Forget(key)
		return
	case apierrors.IsConflict(err), apierrors.HasStatusCause(err, namespaceTerminating):
		// Another client was faster, and the event of its write is on its way; or
		// the namespace is being deleted, and the object with it.
		c.counts.conflicts.Add(1)
		c.opts.Logger.Debug("not reconciled, trying again", "key", keyText(key), "error", err)
	default:
		c.opts.Logger.Warn("not reconciled, trying again", "key", keyText(key), "tries", c.queue.NumRequeues(key), "error", err)
	}
	c.queue.AddRateLimited(key)
}

var errGoexit = errors.New("it called runtime.Goexit")

// call contains what goes wrong over one object, so that the others go on
// being taken care of: a panic becomes an error, and the end of the goroutine,
// which cannot be stopped, a failure that is tried again.
func (c *TypedController[K]) call(ctx context.Context, key K) (result Result, err error) {
	if c.opts.Timeout > 0 {
		over := fmt.Errorf("controller %s: a call may take %v", c.opts.Name, c.opts.Timeout)
		limited, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout, over)
		defer func() {
			if errors.Is(context.Cause(limited), over) {
				c.counts.timeouts.Add(1)
			}
			cancel()
		}()
		ctx = limited
	}
	ctx = context.WithValue(withLogger(ctx, c.opts.Logger, key), consistencyKey{}, consistency(c.beginCall(key)))
	ctx, endTrace := c.traceReconcile(ctx, key)
	begun := time.Now()
	c.counts.calls.Add(1)
	c.counts.active.Add(1)
	returned := false
	defer func() {
		switch r := recover(); {
		case r != nil:
			c.counts.panics.Add(1)
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		case !returned:
			c.counts.panics.Add(1)
			err = errGoexit
			c.failed(key, err) // reconcile will not
		}
		c.counts.active.Add(-1)
		c.counts.took.observe(time.Since(begun))
		endTrace(result, err)
	}()
	result, err = c.fn(ctx, key)
	returned = true
	return result, err
}
