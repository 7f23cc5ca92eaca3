// Package contention lets writes of one object take turns once they overtake each other.
package contention

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/levelwire/levelwire/server/internal/runqueue"
	"github.com/levelwire/levelwire/storage"
)

// Objects has the objects of which a write of this server was overtaken, each with the
// writes that wait for their turns. Without turns, writes of one object decide on the same
// state, one of them is committed, and the others decide and ask the store again: with n of
// them that is n² decisions, and one that takes longer to decide may lose each time.
//
// A turn is no lock, and the store still compares revisions: other servers' writes do not
// wait. A write that has waited for maxTurn goes on beside all that are before it, however many
// they are, and keeps its place, in which it waits again, twice as long, if it is overtaken. So
// writes that take long to decide, such as those whose webhook does not answer, hold up one
// that is decided quickly by maxTurn, and one that waits is decided seldom meanwhile. A write
// that keeps the next one waiting for maxTurn has company, too, and gets a new place behind
// the others if it is overtaken. Dry runs take no part.
type Objects struct {
	count atomic.Int64 // so that a write of another object takes no lock while there are none

	mu    sync.Mutex
	byKey map[string]*turns
}

// maxTurn is how long a write keeps others waiting, and how long one first waits for others.
const maxTurn = 100 * time.Millisecond

// turns are the writes of an object. It is there as long as a write has the turn.
type turns struct {
	holder  *Turn
	waiting []*Turn
	latest  Committed
	timer   *time.Timer // passes the turn on; runs while others wait
}

// Turn is a write's place.
type Turn struct {
	key     string
	granted chan struct{} // closed when the write has the turn; replaced by the write only
	latest  Committed     // when it was granted

	// These are the write's own.
	limit time.Duration    // how long it waits next
	known storage.Revision // of the latest state that Await has returned
}

// Committed is a state that a write of this server has left.
type Committed struct {
	JSON     []byte // cached form; nil: there is none
	Revision storage.Revision
}

// Len returns how many objects have turns.
func (c *Objects) Len() int64 { return c.count.Load() }

// Await waits for the turn of a place, but not for long, and returns the latest state that
// a write with a place has left, if there is one that it has not returned before: the store may
// have refused a write that was decided on that.
func (c *Objects) Await(ctx context.Context, t *Turn) (Committed, error) {
	left, err := c.wait(ctx, t)
	if err != nil || left.Revision <= t.known {
		return Committed{}, err
	}
	t.known = left.Revision
	return left, nil
}

func (c *Objects) wait(ctx context.Context, t *Turn) (Committed, error) {
	select {
	case <-t.granted:
		if c.renew(t) {
			return t.latest, nil
		}
	default:
	}
	task := runqueue.FromContext(ctx)
	task.Block()
	defer task.Unblock()
	timer := time.NewTimer(t.limit)
	defer timer.Stop()
	select {
	case <-t.granted:
		return t.latest, nil
	case <-timer.C:
		t.limit *= 2
		return c.latest(t.key), nil
	case <-ctx.Done():
		return Committed{}, ctx.Err()
	}
}

func (c *Objects) latest(key string) Committed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if object := c.byKey[key]; object != nil {
		return object.latest
	}
	return Committed{}
}

// Place returns a place among the writes of an object: nil if none of them was overtaken, and
// overtaken does not say that the caller's was. The first has the turn.
func (c *Objects) Place(key func() string, overtaken bool) *Turn {
	if !overtaken && c.count.Load() == 0 {
		return nil
	}
	t := &Turn{key: key(), granted: make(chan struct{}), limit: maxTurn}
	c.mu.Lock()
	defer c.mu.Unlock()
	object := c.byKey[t.key]
	switch {
	case object != nil:
		object.enter(c, t)
		return t
	case !overtaken:
		return nil
	}
	if c.byKey == nil {
		c.byKey = map[string]*turns{}
	}
	c.begin(t)
	close(t.granted)
	return t
}

// begin has a write be the first with a place among those of its object. mu is held.
func (c *Objects) begin(t *Turn) {
	c.byKey[t.key] = &turns{holder: t}
	c.count.Add(1)
}

// enter has a write wait behind the others. mu is held.
func (o *turns) enter(c *Objects, t *Turn) {
	o.waiting = append(o.waiting, t)
	if len(o.waiting) == 1 {
		o.passOnLater(c, t.key)
	}
}

// renew reports whether a write that was given the turn has it. If that was passed on meanwhile,
// the write has it again if no other has a place, or gets a new place. Otherwise the writes that
// take turns would overtake it each time.
func (c *Objects) renew(t *Turn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	object := c.byKey[t.key]
	switch {
	case object == nil:
		c.begin(t)
		return true
	case object.holder == t:
		return true
	}
	t.granted = make(chan struct{})
	object.enter(c, t)
	return false
}

// Leave ends a turn, or the wait for it, and says what the write has committed, if it has.
func (c *Objects) Leave(t *Turn, done Committed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	object := c.byKey[t.key]
	if object == nil {
		return
	}
	if done.Revision > object.latest.Revision {
		object.latest = done
	}
	if object.holder == t {
		object.next(c, t.key)
		return
	}
	for i, other := range object.waiting {
		if other == t {
			object.waiting = append(object.waiting[:i], object.waiting[i+1:]...)
			return
		}
	}
}

// next gives the turn to the first that waits.
func (o *turns) next(c *Objects, key string) {
	if o.timer != nil {
		o.timer.Stop()
	}
	if len(o.waiting) == 0 {
		delete(c.byKey, key)
		c.count.Add(-1)
		return
	}
	o.holder, o.waiting = o.waiting[0], o.waiting[1:]
	o.holder.latest = o.latest
	close(o.holder.granted)
	if len(o.waiting) > 0 {
		o.passOnLater(c, key)
	}
}

// passOnLater has the first that waits not wait for longer than maxTurn.
func (o *turns) passOnLater(c *Objects, key string) {
	holder := o.holder
	o.timer = time.AfterFunc(maxTurn, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.byKey[key] == o && o.holder == holder && len(o.waiting) > 0 {
			o.next(c, key)
		}
	})
}
