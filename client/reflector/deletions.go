package reflector

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// maxDeletions is how many deletions a Reflector remembers. What a server sends once more
// is what it has sent last.
const maxDeletions = 256

// deletions are the last ones that the store was given, so that an event that is older
// than what it has reached does not bring back what is deleted.
type deletions[T client.Object] struct {
	of   map[objectKey]deletion
	ring []objectKey // in the order in which they came; its length is maxDeletions
	next int         // in ring
}

type deletion struct {
	uid     types.UID
	version string
	at      int // in ring; it is there at an earlier place, too, if the object was deleted before
}

func (d *deletions[T]) note(obj T) {
	if d.of == nil {
		d.of, d.ring = map[objectKey]deletion{}, make([]objectKey, maxDeletions)
	}
	if oldest := d.ring[d.next]; d.of[oldest].at == d.next {
		delete(d.of, oldest)
	}
	key := keyOf(obj)
	d.ring[d.next] = key
	d.of[key] = deletion{uid: obj.GetUID(), version: obj.GetResourceVersion(), at: d.next}
	d.next = (d.next + 1) % maxDeletions
}

// has reports whether a state is of an object that is known to be deleted. One with
// another UID has been made since. With the same UID, it is added only if it matches a
// selector again; a change is from before the deletion, whatever its version is. Without UIDs the
// versions say it.
func (d *deletions[T]) has(state T, added bool) bool {
	deleted, known := d.of[keyOf(state)]
	before := !older(deleted.version, state.GetResourceVersion())
	switch {
	case !known:
		return false
	case deleted.uid != "" && state.GetUID() != "":
		return deleted.uid == state.GetUID() && (before || !added)
	default:
		return before
	}
}
