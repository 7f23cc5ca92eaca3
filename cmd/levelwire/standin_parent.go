package main

import (
	"context"
	"errors"
	"os"
	"time"
)

// errAlone is the cause of the end of a stand-in whose test is gone.
var errAlone = errors.New("the program that started this one has ended")

// parentInterval is how often a stand-in looks whether that is so.
const parentInterval = time.Second

// untilAlone returns a context that ends with the program that started this one. A test that panics, is
// killed or runs into its time limit stops nothing, and its servers would go on for ever.
//
// parent returns the ID of the parent process: when that ends, the system gives its children another one.
// Whoever detaches this program (it leads a session of its own then) means it to stay.
func untilAlone(ctx context.Context, parent func() int, detached bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if first := parent(); !detached {
		go func() {
			ticker := time.NewTicker(parentInterval)
			defer ticker.Stop()
			for parent() == first {
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
			cancel(errAlone)
		}()
	}
	return ctx, func() { cancel(nil) }
}

// asLongAsItsParent is untilAlone for this process.
func asLongAsItsParent(ctx context.Context) (context.Context, context.CancelFunc) {
	return untilAlone(ctx, os.Getppid, leadsSession())
}
