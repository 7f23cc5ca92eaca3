package histories

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// kind is what a client was told.
type kind string

const (
	added   kind = "added"
	updated kind = "updated"
	deleted kind = "deleted"
	// relisted: a watcher has read the whole state by hand; what it does not
	// have is gone.
	relisted kind = "relisted"
)

// note is one thing that a client was told.
type note struct {
	kind kind
	state
	old  state // of an update that a handler was told
	lost bool  // a deletion whose final state is not known
	list []state
}

// manner is how a client tells what happens.
type manner struct {
	// wire: events as they come from the server, which do not say what was
	// before and may be of objects that the client has never heard of.
	wire bool
	// joins: a deletion and a creation under the same name may be told as one
	// update, of which the object has another uid.
	joins bool
	// strangers: the end of an object may be told that has not been shown.
	strangers bool
}

// record is what one client was told, in order, and what it makes of it.
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

// note writes down what was told, and does to what is known what any client
// does to its copy.
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

// told returns all notes, and how many of them came before the silence.
func (r *record) told() (notes []note, began int) {
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
