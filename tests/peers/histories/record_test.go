package histories

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// kind is the kind of an event that a client got.
type kind string

const (
	added   kind = "added"
	updated kind = "updated"
	deleted kind = "deleted"
	// relisted: a watcher has read the whole state by hand; what it does not
	// have is gone.
	relisted kind = "relisted"
)

// note is one event that a client got.
type note struct {
	kind kind
	state
	old  state // of an update that a handler got
	lost bool  // a deletion whose final state is not known
	list []state
}

// manner is how a client delivers events.
type manner struct {
	// wire: events as they come from the server. They do not say what was
	// before, and may be of objects that the client does not know.
	wire bool
	// joins: a deletion and a creation under the same name may come as one
	// update, of which the object has another uid.
	joins bool
	// unknownDeletions: a deletion may be of an object that the client did not get.
	unknownDeletions bool
}

// record is what one client got, in order, and what follows from that.
type record struct {
	name   string
	view   view
	manner manner

	mu    sync.Mutex
	notes []note
	known map[string]state
	began int // the notes before the silence
}

func newRecord(name string, v view, m manner) *record {
	return &record{name: name, view: v, manner: m, known: map[string]state{}}
}

// note records an event, and applies it to what is known as any client applies
// it to its cache.
func (r *record) note(n note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, n)
	switch n.kind {
	case deleted:
		delete(r.known, n.key)
	case relisted:
		clear(r.known)
		for _, s := range n.list {
			r.known[s.key] = s
		}
	default:
		r.known[n.key] = n.state
	}
}

// mark is called when a silence begins.
func (r *record) mark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = len(r.notes)
}

// copy returns what is known now.
func (r *record) copy() map[string]state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.known)
}

// received returns all notes, and how many of them came before the silence.
func (r *record) received() (notes []note, began int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes), r.began
}

// The handlers of all informers.

func (r *record) onAdd(pod *corev1.Pod) { r.note(note{kind: added, state: stateOf(pod)}) }

func (r *record) onUpdate(old, pod *corev1.Pod) {
	r.note(note{kind: updated, state: stateOf(pod), old: stateOf(old)})
}

func (r *record) onDelete(pod *corev1.Pod, finalStateUnknown bool) {
	r.note(note{kind: deleted, state: stateOf(pod), lost: finalStateUnknown})
}

// tally counts what a client asked its server for.
type tally struct {
	lists       int // all pages of one list are one; streaming lists among them
	differences int // applied in place of a list
}

func (c tally) since(before tally) tally {
	return tally{c.lists - before.lists, c.differences - before.differences}
}
