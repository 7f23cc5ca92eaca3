package eventlog

import (
	"fmt"

	"github.com/levelwire/levelwire/internal/btree"
	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
	"github.com/levelwire/levelwire/server/internal/watchcache/state"
	"github.com/levelwire/levelwire/storage"
)

// Key returns the key that the entry changes.
func (e *Entry) Key() string {
	if e.Object != nil {
		return e.Object.Key
	}
	return e.Previous.Key
}

// CheckFollows checks that an entry of a resource's log may follow another one; last may be nil.
func (e *Entry) CheckFollows(last *Entry, resource fmt.Stringer) {
	if last == nil {
		return
	}
	switch {
	case e.Revision < last.Revision:
		invariant.Broken("versions in a log never decrease: of %s, the change of %q at version %d follows that of %q at version %d",
			resource, e.Key(), e.Revision, last.Key(), last.Revision)
	case e.Carried() < last.Carried():
		invariant.Broken("a log has the deletions of a version first: of %s, the deletion of %q at version %d, which carries %d, follows the write of %q at version %d",
			resource, e.Key(), e.Revision, e.Carried(), last.Key(), last.Revision)
	case !e.IsLate() && e.Revision == last.Revision && last.Through == last.Revision:
		invariant.Broken("a watch resumes only behind the last change of a version: of %s, the change of %q at version %d says that it is the last, and that of %q follows",
			resource, last.Key(), last.Revision, e.Key())
	}
}

// CheckUndo checks that a tree, in which an entry of a resource's log is about to be undone, is as
// the entry left it.
func (e *Entry) CheckUndo(tree *btree.Batch[*state.Object], resource fmt.Stringer) {
	var has, left storage.Revision
	if o, ok := tree.Get(e.Key()); ok {
		has = o.Revision
	}
	if e.Object != nil {
		left = e.Object.Revision
	}
	if has != left {
		invariant.Broken("the state before a change is what the change before it left: of %s, the change of %q at version %d is undone in a state that has it at version %d, and the change left it at %d (0: deleted)",
			resource, e.Key(), e.Revision, has, left)
	}
}
