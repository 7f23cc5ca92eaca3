package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/levelwire/levelwire/client/workqueue"
)

// A worker takes keys until the queue is shut down, and tries again later what
// has failed.
func Example() {
	ctx := context.Background()
	queue := workqueue.New(workqueue.Options[string]{})
	failed := false
	reconcile := func(key string) error {
		if key == "default/b" && !failed {
			failed = true
			return errors.New("not yet")
		}
		fmt.Println("reconciled", key)
		if key == "default/b" {
			queue.ShutDown()
		}
		return nil
	}

	var workers sync.WaitGroup
	workers.Go(func() {
		for {
			key, ok := queue.Get(ctx)
			if !ok {
				return
			}
			if err := reconcile(key); err != nil {
				queue.AddRateLimited(key)
			} else {
				queue.Forget(key)
			}
			queue.Done(key)
		}
	})
	queue.Add("default/b")
	queue.Add("default/a")
	queue.Add("default/a") // waits already
	workers.Wait()
	// Output:
	// reconciled default/a
	// reconciled default/b
}
