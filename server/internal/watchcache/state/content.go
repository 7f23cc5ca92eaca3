package state

import (
	"fmt"
	"slices"
	"unsafe"
)

// hold sets the JSON of an object that is not shared yet.
func (o *Object) hold(json []byte) {
	o.length = len(json)
	o.first.Store(unsafe.SliceData(json))
}

// JSON returns the cached form: the stored object with metadata.resourceVersion in
// front of the other metadata. It must not be modified. It is made anew by each call if
// the object is compressed: a reader of many objects calls ReadJSON or AppendJSON.
func (o *Object) JSON() []byte {
	if first := o.first.Load(); first != nil {
		return unsafe.Slice(first, o.length)
	}
	return o.AppendJSON(nil)
}

// ReadJSON is JSON for a reader of one object after the other: a compressed one is
// decompressed into scratch, and so the result is valid until scratch is used again.
func (o *Object) ReadJSON(scratch *[]byte) []byte {
	if first := o.first.Load(); first != nil {
		return unsafe.Slice(first, o.length)
	}
	*scratch = o.AppendJSON((*scratch)[:0])
	return *scratch
}

// AppendJSON appends the JSON to dst.
func (o *Object) AppendJSON(dst []byte) []byte {
	if first := o.first.Load(); first != nil {
		return append(dst, unsafe.Slice(first, o.length)...)
	}
	c := o.compressed.Load()
	if c == nil {
		return dst // an object without JSON
	}
	dst = slices.Grow(dst, o.length)
	end := len(dst) + o.length
	json, err := c.dictionary.Decode(dst[len(dst):end:end], c.bytes)
	if err != nil || len(json) != o.length {
		panic(fmt.Sprintf("the cached object %q, compressed to %d bytes, cannot be decompressed to %d: memory is corrupt: %v", o.Key, len(c.bytes), o.length, err))
	}
	return dst[:end]
}

// Size is the length of the JSON.
func (o *Object) Size() int { return o.length }

// HeldBytes is how many bytes of memory the JSON takes: its length, unless it is
// compressed.
func (o *Object) HeldBytes() int64 {
	if c := o.compressed.Load(); c != nil {
		return c.size()
	}
	return int64(o.length)
}

// OwnAttributes gives the attributes strings of their own, so that they do not keep the
// JSON in memory; and the key of an object without a namespace, which may be its name. It
// must be called before the object is shared.
func (o *Object) OwnAttributes() {
	if o.ownsAttributes {
		return
	}
	o.Attributes, o.ownsAttributes = o.Attributes.Clone(), true
	if o.Key == o.Attributes.Name {
		o.Key = o.Attributes.Name
	}
}
