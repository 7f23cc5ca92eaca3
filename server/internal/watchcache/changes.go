package watchcache

import (
	"context"
	"slices"
	"time"

	"github.com/levelwire/levelwire/storage"
)

// LoggedChange is one change that the log has.
type LoggedChange struct {
	Type     EventType
	Revision storage.Revision
	Arrived  time.Time // zero if it is not known
	Object   *Object   // the state after it; nil if it was a deletion
	Previous *Object   // the state before it; nil if there was none
}

// changesBetweenChecks is how many entries Changes looks at before it asks whether its caller
// still wants them.
const changesBetweenChecks = 4096

// Changes returns the latest changes of what a selection selects, at most limit, that were made
// after one revision and through another, in their order, and whether the log has more before
// them. What the log has evicted is left out: see ExactSince.
func (c *Cache) Changes(ctx context.Context, selection *Selection, after, through storage.Revision, limit int) (changes []LoggedChange, more bool, err error) {
	first, end := c.positionAfter(after), c.positionAfter(through)
	for position := end; position > first; position-- {
		if position%changesBetweenChecks == 0 && ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		e := c.log.At(position - 1)
		if e == nil {
			break // evicted, and so are those before
		}
		kind := transition(selection, e)
		if kind == 0 {
			continue
		}
		if len(changes) == limit {
			more = true
			break
		}
		changes = append(changes, LoggedChange{Type: kind, Revision: e.Revision, Arrived: c.arrivalOf(e), Object: e.Object, Previous: e.Previous})
	}
	slices.Reverse(changes)
	return changes, more, nil
}

// RevisionAt returns the revision that the cache had reached at a moment, as far as its log
// tells: that of the latest change that had arrived. It is false if the log does not reach back
// that far, or does not know when its events arrived.
func (c *Cache) RevisionAt(moment time.Time) (storage.Revision, bool) {
	end := c.log.End()
	for position := end; position > c.log.Oldest(); position-- {
		e := c.log.At(position - 1)
		if e == nil || e.Arrived == 0 {
			return 0, false
		}
		if !c.arrivalOf(e).After(moment) {
			return e.Revision, true
		}
	}
	return 0, false
}
