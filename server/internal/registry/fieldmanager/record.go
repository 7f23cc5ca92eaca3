package fieldmanager

import (
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// changes are the fields in which two objects differ. set is what the new one
// has otherwise, gone what it has no more; either may be nil.
type changes struct {
	set, gone *fieldpath.Set
	path      fieldpath.Path // scratch
}

func (c *changes) record(path []step, what change) {
	to := &c.set
	if what == removed {
		to = &c.gone
	}
	if *to == nil {
		*to = &fieldpath.Set{}
	}
	c.path = c.path[:0]
	for i := range path {
		c.path = append(c.path, path[i].pathElement())
	}
	(*to).Insert(c.path) // which keeps the elements, but not the slice
}

func (c *changes) leave([]step) {}

func (c *changes) none() bool { return c.set == nil && c.gone == nil }

// fieldsWriter writes the changes that a new object consists of as FieldsV1, in
// which a field and what is in it are one tree. They come in the tree's order.
type fieldsWriter struct {
	buf   []byte
	nodes []node // those that are open; the first is the root
	path  []step // for the differ
}

type node struct {
	member   bool // the field itself is in the set, which is not written yet
	children bool
}

// mostPooled bounds what a writer keeps, in bytes.
const mostPooled = 64 << 10

// fieldsWriters are used again: what one holds is larger than what it makes.
var fieldsWriters = sync.Pool{New: func() any {
	return &fieldsWriter{buf: make([]byte, 0, 2048), nodes: make([]node, 0, 16), path: make([]step, 0, 16)}
}}

func newFieldsWriter() *fieldsWriter {
	w := fieldsWriters.Get().(*fieldsWriter)
	w.buf, w.nodes = w.buf[:0], append(w.nodes[:0], node{})
	return w
}

// release gives the writer back, with the path of a differ that used it.
func (w *fieldsWriter) release(path []step) {
	if cap(w.buf) > mostPooled {
		return
	}
	clear(path[:cap(path)]) // it refers to the object
	w.path = path[:0]
	fieldsWriters.Put(w)
}

func (w *fieldsWriter) record(path []step, what change) {
	if what == removed {
		return
	}
	for i := len(w.nodes) - 1; i < len(path); i++ {
		w.open(&path[i])
	}
	w.nodes[len(w.nodes)-1].member = true
}

// open begins a node in the last one.
func (w *fieldsWriter) open(s *step) {
	parent := &w.nodes[len(w.nodes)-1]
	switch {
	case parent.children:
		w.buf = append(w.buf, ',')
	case parent.member:
		w.buf = append(w.buf, `{".":{},`...)
	default:
		w.buf = append(w.buf, '{')
	}
	parent.children = true
	w.buf = append(appendStep(w.buf, s), ':')
	w.nodes = append(w.nodes, node{})
}

func (w *fieldsWriter) leave(path []step) {
	if len(w.nodes) > len(path) {
		w.end()
	}
}

func (w *fieldsWriter) end() {
	last := len(w.nodes) - 1
	if !w.nodes[last].children {
		w.buf = append(w.buf, '{')
	}
	w.buf = append(w.buf, '}')
	w.nodes = w.nodes[:last]
}

// finish returns the set, until the release, or nothing if it is empty.
func (w *fieldsWriter) finish() []byte {
	if !w.nodes[0].children {
		return nil
	}
	w.end()
	return w.buf
}
