package watchstream

import (
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// TestOwnership has wake-ups, schedulers and the request's goroutine contend for a
// stream: it never has two owners, and no wake-up is lost.
func TestOwnership(t *testing.T) {
	const wakers, wakes = 4, 2000
	o := newOwnership()
	var users, todo, done atomic.Int64
	use := func() {
		if users.Add(1) != 1 {
			t.Error("two use it at once")
		}
		done.Store(todo.Load())
		users.Add(-1)
	}
	finish := make(chan struct{})
	owner := make(chan struct{})
	go func() {
		defer close(owner)
		use()
		for over := false; ; {
			if o.release() {
				if over {
					return
				}
				select {
				case <-o.handedOff:
				case <-finish:
					o.acquire()
					over = true
				}
			}
			use()
		}
	}()
	var group sync.WaitGroup
	for n := range wakers {
		group.Go(func() {
			for i := range wakes {
				todo.Add(1)
				for held := o.tryAcquire(); held; {
					if (n+i)%3 == 0 {
						o.handoff()
						break
					}
					use()
					held = !o.release()
				}
			}
		})
	}
	group.Wait()
	close(finish)
	<-owner
	if done.Load() != wakers*wakes {
		t.Errorf("%d of %d wake-ups were seen to", done.Load(), wakers*wakes)
	}
}
