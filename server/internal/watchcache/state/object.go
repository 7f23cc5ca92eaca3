package state

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/storage"
)

// Object is one state of one object. It is immutable and shared by snapshots,
// the event log and all watchers; its slices must never be modified.
type Object struct {
	// Key is "namespace/name", or "name" for a cluster-scoped kind.
	Key string
	// Revision of the write that made this state. For the last state of a
	// deleted object, as a Deleted event carries it, the revision of the event.
	Revision storage.Revision
	// Attributes are what selectors look at. Their strings share the JSON, unless
	// OwnAttributes has been called.
	Attributes resource.Attributes

	// CreatedRevision is the revision at which the object was created; 0 if it
	// is not known. Set before the object is shared.
	CreatedRevision storage.Revision
	// SelectorsStableSince is a revision since when the labels and selectable
	// fields have been as they are here; 0 if none is known. Set before the object
	// is shared.
	SelectorsStableSince storage.Revision

	// The JSON is held either as it is, from first on, or compressed. compressed is
	// set before first becomes nil, and neither changes again.
	first      atomic.Pointer[byte]
	compressed atomic.Pointer[compressed]
	length     int // of the JSON

	seal           seal
	tombstone      bool             // the JSON is only the tombstone metadata of a deleted object
	ownsAttributes bool             // OwnAttributes has been called
	written        storage.Revision // 0: Revision
	forms          atomic.Pointer[form]
	counter        atomic.Pointer[ByteCounter] // nil: forms are not counted
}

// NewObject makes an object from its cached form and the attributes that were
// extracted from it. It fails if the revision is not where the cached form has
// it, because AtRevision could then not replace it.
func NewObject(key string, revision storage.Revision, attributes resource.Attributes, json []byte) (*Object, error) {
	if _, _, ok := revisionDigits(json, revision); !ok {
		return nil, fmt.Errorf("object %q: its JSON does not begin its metadata with resourceVersion %d", key, revision)
	}
	return NewUnversioned(key, revision, attributes, json), nil
}

// NewUnversioned is NewObject for JSON without its revision in the place of the cached
// form, of which AtRevision makes no other: for objects that are computed, not stored.
func NewUnversioned(key string, revision storage.Revision, attributes resource.Attributes, json []byte) *Object {
	o := &Object{Key: key, Revision: revision, Attributes: attributes}
	o.hold(json)
	return o
}

// NewTombstoneMetadata makes the last state of a deleted object from its
// tombstone metadata; see Object.TombstoneMetadata. written is the revision of
// the last write, created that of the first, or 0.
func NewTombstoneMetadata(res *resource.Resource, key string, written, created storage.Revision, metadata []byte) (*Object, error) {
	attributes, err := res.Attributes(metadata)
	if err != nil {
		return nil, err
	}
	o, err := NewObject(key, written, attributes, metadata)
	if err != nil {
		return nil, err
	}
	o.tombstone, o.CreatedRevision, o.SelectorsStableSince = true, created, written
	return o, nil
}

// IsTombstoneMetadata reports whether the JSON is only the tombstone metadata.
func (o *Object) IsTombstoneMetadata() bool { return o.tombstone }

// TombstoneMetadata returns the object reduced to what a tombstone keeps of it:
// metadata and selectable fields. It returns o itself if the reduction fails.
func (o *Object) TombstoneMetadata(res *resource.Resource) *Object {
	if o.tombstone {
		return o
	}
	json, err := res.TombstoneMetadata(o.JSON())
	if err != nil {
		return o
	}
	attributes, err := res.Attributes(json)
	if err != nil {
		return o
	}
	out, err := NewObject(o.Key, o.Revision, attributes, json)
	if err != nil {
		return o
	}
	out.tombstone, out.written = true, o.written
	out.CreatedRevision, out.SelectorsStableSince = o.CreatedRevision, o.SelectorsStableSince
	return out
}

// Written returns the revision of the write that made the content. It differs
// from Revision only in the last state of a deleted object.
func (o *Object) Written() storage.Revision {
	if o.written != 0 {
		return o.written
	}
	return o.Revision
}

// InheritFrom sets CreatedRevision and SelectorsStableSince, where they are not
// known, from the state before this one; previous is nil if the object did not
// exist. It must be called before o is shared.
func (o *Object) InheritFrom(previous *Object) {
	if o.CreatedRevision == 0 && previous == nil {
		o.CreatedRevision = o.Revision
	} else if o.CreatedRevision == 0 {
		o.CreatedRevision = previous.CreatedRevision
	}
	if o.SelectorsStableSince != 0 {
		return
	}
	o.SelectorsStableSince = o.Revision
	if previous != nil && previous.SelectorsStableSince != 0 && previous.CreatedRevision == o.CreatedRevision &&
		slices.Equal(o.Attributes.Labels, previous.Attributes.Labels) && slices.Equal(o.Attributes.Fields, previous.Attributes.Fields) {
		o.SelectorsStableSince = previous.SelectorsStableSince
	}
}

// AtRevision returns the same content with another revision.
func (o *Object) AtRevision(revision storage.Revision) *Object {
	out := &Object{Key: o.Key, Revision: revision, Attributes: o.Attributes, written: o.Written(), ownsAttributes: o.ownsAttributes}
	json := o.JSON()
	if start, end, ok := revisionDigits(json, o.Revision); ok {
		moved := make([]byte, 0, len(json)+4)
		moved = append(moved, json[:start]...)
		moved = strconv.AppendInt(moved, int64(revision), 10)
		json = append(moved, json[end:]...)
	}
	out.hold(json)
	return out
}

const revisionMember = `"metadata":{"resourceVersion":"`

// revisionDigits returns where the digits of metadata.resourceVersion are in a
// cached form.
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
