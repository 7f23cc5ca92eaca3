package feed

import (
	"errors"
	"fmt"

	"github.com/levelwire/levelwire/storage"
)

// errDisorder reports that a stream has broken its promise: a change that it had
// passed, or delivered, came once more. Which other changes it left out is unknown.
var errDisorder = errors.New("the change stream is not in order")

// checkOrder checks that a batch follows what the stream has delivered up to
// position: ascending, and no change twice.
func checkOrder(batch *storage.Batch, position storage.Revision) error {
	last := position
	var keys map[string]bool // of the revision last; nil until it has a second event
	for i := range batch.Events {
		e := &batch.Events[i]
		switch {
		case e.Revision <= position:
			return fmt.Errorf("%w: %s changed at revision %d, and everything up to %d had been delivered", errDisorder, e.Key, e.Revision, position)
		case e.Revision < last:
			return fmt.Errorf("%w: %s changed at revision %d, behind a change at %d", errDisorder, e.Key, e.Revision, last)
		case e.Revision > last:
			last, keys = e.Revision, nil
			continue
		}
		if keys == nil {
			keys = map[string]bool{batch.Events[i-1].Key: true}
		}
		if keys[e.Key] {
			return fmt.Errorf("%w: %s changed twice at revision %d", errDisorder, e.Key, e.Revision)
		}
		keys[e.Key] = true
	}
	if last > batch.Revision {
		return fmt.Errorf("%w: a batch that ends at revision %d has a change at %d", errDisorder, batch.Revision, last)
	}
	return nil
}
