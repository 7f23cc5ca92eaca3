package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/informer"
)

// checker is a handler that remembers the events that it got, and notices when one
// comes that does not follow from them.
type checker[T client.Object] struct {
	ctx          context.Context // its end makes a slow handler quick
	slow         time.Duration
	panicEvery   int
	registration *informer.Registration

	mu    sync.Mutex
	known State
	gone  map[string]uint64 // the version of an object's last deletion
	calls int
	wrong []error // the first few
}

func (c *checker[T]) note(key string, format string, args ...any) {
	if len(c.wrong) < 5 {
		c.wrong = append(c.wrong, fmt.Errorf("call %d, %s: %s", c.calls, key, fmt.Sprintf(format, args...)))
	}
}

// called runs f with what was known of the object, and then does what makes this
// handler special.
func (c *checker[T]) called(obj T, f func(key string, last Stamp, known bool)) {
	c.mu.Lock()
	c.calls++
	key := KeyOf(obj)
	last, known := c.known[key]
	f(key, last, known)
	panics := c.panicEvery > 0 && c.calls%c.panicEvery == 0
	c.mu.Unlock()
	if c.slow > 0 {
		Wait(c.ctx, c.slow)
	}
	if panics {
		panic("on purpose")
	}
}

// OnAdd implements informer.Handler.
func (c *checker[T]) OnAdd(obj T, _ bool) {
	c.called(obj, func(key string, last Stamp, known bool) {
		if known {
			c.note(key, "added as %v, but known as %v", StampOf(obj), last)
		}
		if deleted := c.gone[key]; StampOf(obj).Version <= deleted {
			c.note(key, "added as %v, but deleted at %d", StampOf(obj), deleted)
		}
		c.known[key] = StampOf(obj)
	})
}

// OnUpdate implements informer.Handler.
func (c *checker[T]) OnUpdate(old, obj T) {
	c.called(obj, func(key string, last Stamp, known bool) {
		from, to := StampOf(old), StampOf(obj)
		if !known || last != from {
			c.note(key, "updated from %v, but known as %v, %v", from, last, known)
		}
		if from.UID != to.UID || to.Version < from.Version {
			c.note(key, "updated from %v to %v", from, to)
		}
		c.known[key] = to
	})
}

// OnDelete implements informer.Handler.
func (c *checker[T]) OnDelete(obj T, _ bool) {
	c.called(obj, func(key string, last Stamp, known bool) {
		if gone := StampOf(obj); !known || gone.UID != last.UID || gone.Version < last.Version {
			c.note(key, "deleted as %v, but known as %v, %v", gone, last, known)
		}
		delete(c.known, key)
		c.gone[key] = StampOf(obj).Version
	})
}

// compare says which events the handler got wrongly, or did not get.
func (c *checker[T]) compare(want State) error {
	if err := c.registration.Err(); err != nil {
		return fmt.Errorf("it was removed: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) > 0 {
		return fmt.Errorf("%w: %v", errWrong, c.wrong)
	}
	return difference(c.known, want)
}

// difference names one object that differs.
func difference(got, want State) error {
	for key, w := range want {
		if g, ok := got[key]; !ok || g != w {
			return fmt.Errorf("%s is %v, %v; the server has %v (%d objects, the server %d)", key, g, ok, w, len(got), len(want))
		}
	}
	for key, g := range got {
		if _, ok := want[key]; !ok {
			return fmt.Errorf("%s is %v; the server has none (%d objects, the server %d)", key, g, len(got), len(want))
		}
	}
	return nil
}
