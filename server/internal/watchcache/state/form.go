package state

import (
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"
)

// FormID names one encoding of objects: protobuf, for example, or a table row.
type FormID uint32

var (
	formsMu   sync.Mutex
	formNames []string
)

// NewForm registers a form under a name for log lines and tests. Call it once
// for each form, when the package that makes the form is initialised: ids are
// never freed.
func NewForm(name string) FormID {
	formsMu.Lock()
	defer formsMu.Unlock()
	formNames = append(formNames, name)
	return FormID(len(formNames) - 1)
}

// String returns the name the form was registered with.
func (id FormID) String() string {
	formsMu.Lock()
	defer formsMu.Unlock()
	if int(id) >= len(formNames) {
		return "form " + strconv.Itoa(int(id))
	}
	return formNames[id]
}

// form is one element of an object's list of forms. Few objects have more than
// one, so a list is smaller and quicker than a map.
type form struct {
	id         FormID
	generation uint64
	next       *form
	making     sync.Mutex // held while it is made
	made       atomic.Bool
	bytes      []byte // valid once made
	counted    atomic.Bool
	dropped    atomic.Bool // no longer in the object's list
}

// Form returns the object's form with the given id. The first caller makes it
// with encode; concurrent callers wait for that one, later callers get the same
// bytes. An error is not kept: the next caller tries again. The bytes are
// shared and must not be modified. encode must depend on nothing but the
// object.
func (o *Object) Form(id FormID, encode func(*Object) ([]byte, error)) ([]byte, error) {
	return o.FormAt(id, 0, encode)
}

// FormAt is Form for a form that depends on the object and on something else
// that changes seldom, a schema for example, whose generations are numbered in
// ascending order. The first form of a later generation makes the object drop
// its others; a caller of an earlier generation gets a form that is not shared.
func (o *Object) FormAt(id FormID, generation uint64, encode func(*Object) ([]byte, error)) ([]byte, error) {
	f := o.form(id, generation)
	if f == nil {
		return encode(o)
	}
	if f.made.Load() {
		return f.bytes, nil
	}
	f.making.Lock()
	defer f.making.Unlock()
	if f.made.Load() {
		return f.bytes, nil
	}
	made, err := encode(o)
	if err != nil {
		return nil, err
	}
	f.bytes = made
	f.made.Store(true)
	o.count(f)
	return made, nil
}

// HasForm reports whether FormAt would return a form that is already made.
func (o *Object) HasForm(id FormID, generation uint64) bool {
	_, ok := o.MadeForm(id, generation)
	return ok
}

// MadeForm is FormAt for a form that is already made; it does not wait for one that is being made. The bytes are
// shared and must not be modified.
func (o *Object) MadeForm(id FormID, generation uint64) (form []byte, ok bool) {
	for f := o.forms.Load(); f != nil; f = f.next {
		if f.id == id && f.generation == generation {
			if f.made.Load() {
				return f.bytes, true
			}
			return nil, false
		}
	}
	return nil, false
}

// form finds the list element of an id, or puts a new one in front. It is nil
// if the list has one of a later generation.
func (o *Object) form(id FormID, generation uint64) *form {
	var fresh *form
	for {
		head := o.forms.Load()
		rest := head
		for f := head; f != nil; f = f.next {
			switch {
			case f.id != id:
			case f.generation == generation:
				return f
			case f.generation > generation:
				return nil
			default:
				rest = nil
			}
		}
		if fresh == nil {
			fresh = &form{id: id, generation: generation}
		}
		fresh.next = rest
		if !o.forms.CompareAndSwap(head, fresh) {
			continue
		}
		if rest != head {
			o.uncount(head)
		}
		return fresh
	}
}

// ByteCounter counts the bytes of the forms made of one cache's objects.
type ByteCounter struct{ bytes atomic.Int64 }

// Bytes returns the sum.
func (c *ByteCounter) Bytes() int64 { return c.bytes.Load() }

// CountForms makes the object count its forms, those to come included, in c.
func (o *Object) CountForms(c *ByteCounter) { o.counter.Store(c) }

// CountFormsIfUncounted is CountForms for an object that has no counter.
func (o *Object) CountFormsIfUncounted(c *ByteCounter) { o.counter.CompareAndSwap(nil, c) }

// count adds a form that has just been made. ReleaseForms may run at the same
// time: whichever of the two swaps counted back subtracts the bytes again.
func (o *Object) count(f *form) {
	c := o.counter.Load()
	if c == nil || len(f.bytes) == 0 || unsafe.SliceData(f.bytes) == o.first.Load() {
		return
	}
	c.bytes.Add(int64(len(f.bytes)))
	f.counted.Store(true)
	if (o.counter.Load() == nil || f.dropped.Load()) && f.counted.Swap(false) {
		c.bytes.Add(-int64(len(f.bytes)))
	}
}

// uncount subtracts forms that the object has dropped.
func (o *Object) uncount(list *form) {
	c := o.counter.Load()
	for f := list; f != nil; f = f.next {
		f.dropped.Store(true)
		if f.counted.Swap(false) && c != nil {
			c.bytes.Add(-int64(len(f.bytes)))
		}
	}
}

// DropForms drops the object's forms; the next caller of Form makes its form
// again. Without it, what was made for one event would stay in memory for as
// long as the object.
func (o *Object) DropForms() { o.uncount(o.forms.Swap(nil)) }

// ReleaseForms stops counting the object's forms: the cache does not hold the
// object any more, though a reader may for a while.
func (o *Object) ReleaseForms() {
	c := o.counter.Swap(nil)
	if c == nil {
		return
	}
	for f := o.forms.Load(); f != nil; f = f.next {
		if f.counted.Swap(false) {
			c.bytes.Add(-int64(len(f.bytes)))
		}
	}
}
