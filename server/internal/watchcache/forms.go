package watchcache

import "github.com/levelwire/levelwire/server/internal/watchcache/eventlog"

// Forms of events are made for watchers, which read an event within moments: a rollout
// in a small cluster held as many bytes of forms as of history. So the forms of all but
// the latest events go. A watcher that is slower makes them again, for itself and for
// others that are as slow; those go when the log has grown for a while.
const (
	// formShare is which part of the log's limit the latest events are, within bounds.
	formShare        = 8
	minFormHistory   = 256 << 10
	maxFormHistory   = 8 << 20
	sweepForms       = 16 // times the latest events: when forms made again are dropped
	mostFormsAtATime = 4096
)

// dropReadForms drops the forms of all but the latest events of a log with a limit of
// bytes. The lock is held.
func (c *Cache) dropReadForms(limit int64) {
	keep := min(max(limit/formShare, minFormHistory), maxFormHistory)
	position := c.formsDropped.Load()
	if c.sweptAgain > sweepForms*keep {
		c.sweptAgain = 0
		if c.formsRemade.Swap(false) {
			c.withForms, position = c.counters.historyBytes.Load(), c.log.Oldest()
		}
	}
	if c.withForms <= keep {
		return
	}
	for n := 0; c.withForms > keep && n < mostFormsAtATime; n++ {
		e := c.log.At(position)
		if e == nil {
			break
		}
		e.DropForms(c.keepsFormsOf(e.Object))
		size := e.Size()
		c.withForms -= size
		c.sweptAgain += size
		position++
	}
	c.formsDropped.Store(position)
}

// keepsFormsOf reports whether a state that is still the latest keeps its forms when its
// event is no longer new: those of a custom resource, which a webhook may have made.
func (c *Cache) keepsFormsOf(o *Object) bool {
	if o == nil || !c.custom {
		return false
	}
	latest, _ := c.state.Load().tree.Get(o.Key)
	return latest == o
}

// noteReader notes that a watcher has read an event.
func (c *Cache) noteReader(e *eventlog.Entry) {
	if e.Sequence < c.formsDropped.Load() && !c.formsRemade.Load() {
		c.formsRemade.Store(true)
	}
}
