package watchcache

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Object is one state of one object. It is immutable and shared by the
// snapshots, the log and all watchers; its slices must never be modified.
type Object struct {
	// Key is "namespace/name", or "name" for a cluster-scoped kind.
	Key string
	// Revision of the write that made this state. Of the last state of a deleted object,
	// as a Deleted event carries it, that of the event.
	Revision storage.Revision
	// Attributes are what selectors look at. Their strings share JSON.
	Attributes resource.Attributes
	// JSON is the cached form: the stored object with
	// metadata.resourceVersion in front of the other metadata.
	JSON []byte

	residue bool             // only what is kept of a deleted object
	written storage.Revision // 0: Revision
	// created is the revision since when the object has existed, and steady one
	// since when its attributes have been as they are; 0 means that it is not
	// known. Set before the object is shared.
	created, steady storage.Revision
	forms           atomic.Pointer[form]
	account         atomic.Pointer[account] // nil: forms are not counted
}

// Written returns the revision of the write that made the content. It differs
// from Revision only in the last state of a deleted object.
func (o *Object) Written() storage.Revision {
	if o.written != 0 {
		return o.written
	}
	return o.Revision
}

// FormID names one way to encode objects that is shared by all who need it.
type FormID uint32

var (
	formsMu   sync.Mutex
	formNames []string
)

// NewForm registers a form. Call it once for each form, when the package that
// makes the form is initialised: ids are never freed. The name is for people.
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

// form is one made form in an object's list of them. Few objects have more
// than one, so a list is smaller and quicker than a map.
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
// with encode; concurrent callers wait for that one, later ones get the same
// bytes. An error is not kept: the next caller tries again. The bytes are
// shared and must not be modified. encode must depend on nothing but the
// object.
func (o *Object) Form(id FormID, encode func(*Object) ([]byte, error)) ([]byte, error) {
	return o.FormAt(id, 0, encode)
}

// FormAt is Form for forms that depend on the object and on something that
// changes seldom, whose generations are numbered in ascending order. The first
// form of a later generation makes the object drop its others; callers of an
// earlier one get theirs unshared.
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

// HasForm reports whether FormAt has it at hand.
func (o *Object) HasForm(id FormID, generation uint64) bool {
	for f := o.forms.Load(); f != nil; f = f.next {
		if f.id == id && f.generation == generation {
			return f.made.Load()
		}
	}
	return false
}

// form finds the list element of an id, or puts a new one in front. It is nil
// if there is one of a later generation.
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
			o.discard(head)
		}
		return fresh
	}
}

// discard takes forms out of the account that the object has dropped.
func (o *Object) discard(list *form) {
	a := o.account.Load()
	for f := list; f != nil; f = f.next {
		f.dropped.Store(true)
		if f.counted.Swap(false) && a != nil {
			a.bytes.Add(-int64(len(f.bytes)))
		}
	}
}

// account counts the bytes of the forms made of a cache's objects.
type account struct{ bytes atomic.Int64 }

// count enters a form that has just been made. A release may run at the same
// time: whichever of the two swaps counted back takes the bytes out again.
func (o *Object) count(f *form) {
	a := o.account.Load()
	if a == nil || len(f.bytes) == 0 || unsafe.SliceData(f.bytes) == unsafe.SliceData(o.JSON) {
		return
	}
	a.bytes.Add(int64(len(f.bytes)))
	f.counted.Store(true)
	if (o.account.Load() == nil || f.dropped.Load()) && f.counted.Swap(false) {
		a.bytes.Add(-int64(len(f.bytes)))
	}
}

// dropForms forgets the object's forms. Who needs one again makes it again;
// otherwise what was made for an event would stay for as long as the object.
func (o *Object) dropForms() { o.discard(o.forms.Swap(nil)) }

// release takes the object's forms out of the account: the cache does not
// hold it any more, though a reader may for a while.
func (o *Object) release() {
	a := o.account.Swap(nil)
	if a == nil {
		return
	}
	for f := o.forms.Load(); f != nil; f = f.next {
		if f.counted.Swap(false) {
			a.bytes.Add(-int64(len(f.bytes)))
		}
	}
}

const revisionMember = `"metadata":{"resourceVersion":"`

// revisionDigits returns where the digits of metadata.resourceVersion are in
// a cached form.
func revisionDigits(json []byte, revision storage.Revision) (start, end int, ok bool) {
	start = bytes.Index(json, []byte(revisionMember))
	if start < 0 {
		return 0, 0, false
	}
	start += len(revisionMember)
	var digits [20]byte
	want := strconv.AppendInt(digits[:0], int64(revision), 10)
	end = start + len(want)
	ok = end < len(json) && bytes.Equal(json[start:end], want) && json[end] == '"'
	return start, end, ok
}

// NewObject makes an object from its cached form and the attributes that were
// extracted from it. It fails if the revision is not where the cached form
// has it, because the last state of a deleted object could then not be made.
func NewObject(key string, revision storage.Revision, attributes resource.Attributes, json []byte) (*Object, error) {
	if _, _, ok := revisionDigits(json, revision); !ok {
		return nil, fmt.Errorf("object %q: its JSON does not begin its metadata with resourceVersion %d", key, revision)
	}
	return &Object{Key: key, Revision: revision, Attributes: attributes, JSON: json}, nil
}

// succeed sets what o has from the state before it, if there was one.
func (o *Object) succeed(previous *Object) {
	if o.created == 0 && previous == nil {
		o.created = o.Revision
	} else if o.created == 0 {
		o.created = previous.created
	}
	if o.steady != 0 {
		return
	}
	o.steady = o.Revision
	if previous != nil && previous.steady != 0 && previous.created == o.created && slices.Equal(o.Attributes.Labels, previous.Attributes.Labels) &&
		slices.Equal(o.Attributes.Fields, previous.Attributes.Fields) {
		o.steady = previous.steady
	}
}

// at returns the same content with another revision.
func (o *Object) at(revision storage.Revision) *Object {
	out := &Object{Key: o.Key, Revision: revision, Attributes: o.Attributes, JSON: o.JSON, written: o.Written()}
	if start, end, ok := revisionDigits(o.JSON, o.Revision); ok {
		json := make([]byte, 0, len(o.JSON)+4)
		json = append(json, o.JSON[:start]...)
		json = strconv.AppendInt(json, int64(revision), 10)
		out.JSON = append(json, o.JSON[end:]...)
	}
	return out
}
