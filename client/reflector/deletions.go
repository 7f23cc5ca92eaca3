package reflector

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/levelwire/levelwire/client"
)

// maxDeletions is how many deletions a Reflector remembers. What a server sends once more
// is usually what it has sent last.
const maxDeletions = 256

// deletions are the last ones that the store was given, and objects that lists lacked, so
// that an event that is older than what the store has reached does not bring back what is deleted.
// Its methods may be called concurrently; mu is held while none of the store is called, as
// the store calls dropped with its own lock held.
type deletions[T client.Object] struct {
	mu   sync.Mutex
	of   map[objectKey]deletion
	ring []objectKey // in the order in which they came; its length is maxDeletions
	next int         // in ring
	// forgotten is the latest version up to which there are deletions that are not
	// remembered any more; "": none.
	forgotten string
	// asOf is the version of the list that drops objects; "": it has none.
	asOf string
	// doubted is a state of an object of which only the next list says whether it is deleted. It is
	// the reflector's goroutine's, and needs no mu.
	doubted *T
}

type deletion struct {
	uid     types.UID
	version string
	until   string // states up to this version are from before the deletion, if it has no version
	at      int    // in ring; it is there at an earlier place, too, if the object was deleted before
}

// note remembers the last state of an object, which a server sends with its deletion. reached
// is the version that the store has reached.
func (d *deletions[T]) note(obj T, reached string) {
	version := obj.GetResourceVersion()
	until := version
	if !isNumber(version) {
		until = reached
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remember(obj, version, until)
}

// dropped remembers an object that is missing from a list, and so was deleted before it.
func (d *deletions[T]) dropped(obj T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !unset(d.asOf) {
		d.remember(obj, d.asOf, d.asOf)
	}
}

// absent remembers an object that something else than a list of the Reflector lacks, of a version.
func (d *deletions[T]) absent(obj T, version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !unset(version) {
		d.remember(obj, version, version)
	}
}

// remember needs mu.
func (d *deletions[T]) remember(obj T, version, until string) {
	if d.of == nil {
		d.of, d.ring = map[objectKey]deletion{}, make([]objectKey, maxDeletions)
	}
	if oldest, ok := d.of[d.ring[d.next]]; ok && oldest.at == d.next {
		delete(d.of, d.ring[d.next])
		if d.forgotten == "" || older(d.forgotten, oldest.until) {
			d.forgotten = oldest.until
		}
	}
	key := keyOf(obj)
	d.ring[d.next] = key
	d.of[key] = deletion{uid: obj.GetUID(), version: version, until: until, at: d.next}
	d.next = (d.next + 1) % maxDeletions
}

// listed begins a list of a version, in place of what was reached. What is known of versions that
// the server has gone back from says nothing of the list's.
func (d *deletions[T]) listed(version, reached string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if older(version, reached) {
		d.of, d.ring, d.next, d.forgotten = nil, nil, 0, ""
	}
	d.asOf = version
}

// has reports whether a state is of an object that is known to be deleted. One with
// another UID has been made since. With the same UID, it is added only if it matches a
// selector again; a change is from before the deletion, whatever its version is. Without UIDs the
// versions say it.
func (d *deletions[T]) has(state identity, added bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	deleted, known := d.of[state.objectKey]
	before := !older(deleted.version, state.version)
	switch {
	case !known:
		return false
	case deleted.uid != "" && state.uid != "":
		return deleted.uid == state.uid && (before || !added)
	default:
		return before
	}
}

// mayHave reports whether a state may be of an object whose deletion is not remembered any
// more. Objects that are remembered have not been deleted by others than that.
func (d *deletions[T]) mayHave(state identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.of[state.objectKey]
	return !known && d.forgotten != "" && !older(d.forgotten, state.version)
}

// emptied begins the end of all objects: there is none after the version that was reached.
func (d *deletions[T]) emptied(reached string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asOf = reached
}

// settle is called after a list with what the store holds. If that lacks the object that was
// doubted, it is deleted.
func (d *deletions[T]) settle(store Getter[T]) {
	if d.doubted == nil {
		return
	}
	if _, exists := store.Get(*d.doubted); !exists {
		d.dropped(*d.doubted)
	}
	d.doubted = nil
}
