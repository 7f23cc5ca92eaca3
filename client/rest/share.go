package rest

import (
	"hash/maphash"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Sharing returns the same endpoint whose lists and watches give equal parts
// of objects the same memory: labels, tolerations, volumes, field managers,
// pointers to true. A workload's pods are mostly equal, so they take half the
// memory, and what has been decoded once need not be decoded again.
//
// Such objects must not be changed, not even one that nobody else has: copy
// them with DeepCopy first. Without Sharing only strings are shared.
func (r Resource[T]) Sharing() Resource[T] {
	c := *r.codec
	c.sharing = true
	r.codec = &c
	return r
}

// newWatchSharer is newSharer for a stream in which objects come again.
func (c *codec[T]) newWatchSharer() *sharer {
	s := c.newSharer()
	if c.sharing && c.form == formTyped {
		s.lives = &lives{last: map[types.UID]life{}}
	}
	return s
}

// MessageDecoder returns a function that decodes protobuf messages of a built-in
// type, without the envelope that they have on the wire, into objects that
// share what is equal, as with [Resource.Sharing]. It is for objects that were
// stored by their generated Marshal, and for one goroutine at a time. It returns
// false for a type that cannot be decoded from protobuf.
func MessageDecoder[T Object](newT func() T) (decode func(message []byte) (T, error), ok bool) {
	share := &sharer{strings: &stringTable{}, parts: &partTable{}}
	_, ok = any(newT()).(protoUnmarshaler)
	return func(message []byte) (T, error) {
		obj := newT()
		err := share.unmarshalShared(message, any(obj).(protoUnmarshaler))
		return obj, err
	}, ok
}

// sharer is what the decoder of one stream shares between objects. It is not
// safe for concurrent use.
type sharer struct {
	strings *stringTable
	parts   *partTable // nil: only strings are shared
	lives   *lives     // nil: objects come once each
}

func (c *codec[T]) newSharer() *sharer {
	s := &sharer{strings: &stringTable{}}
	if c.sharing {
		s.parts = &partTable{}
	}
	return s
}

// stringTable shares equal short strings of one stream: names of members,
// namespaces, labels repeat in every object. It forgets what collides, so its
// size is fixed.
type stringTable struct {
	strings []string
	// chunk is what new strings are cut from: many small allocations cost more
	// to make and to mark than their bytes do.
	chunk strings.Builder
}

const (
	stringSlots   = 1024
	longestShared = 128
	// chunkBytes bounds what a surviving string keeps from being freed: the
	// strings of two or three objects.
	chunkBytes = 1 << 10
)

// hashSeed keeps servers from choosing what collides.
var hashSeed = maphash.MakeSeed()

func (t *stringTable) string(b []byte) string {
	switch {
	case len(b) == 0:
		return ""
	case len(b) > longestShared:
		return string(b)
	case t.strings == nil: // not before there is a string: idle watches are many
		t.strings = make([]string, stringSlots)
	}
	slot := &t.strings[maphash.Bytes(hashSeed, b)%stringSlots]
	if *slot != string(b) {
		*slot = t.cut(b)
	}
	return *slot
}

// cut returns a new string.
func (t *stringTable) cut(b []byte) string {
	if t.chunk.Cap()-t.chunk.Len() < len(b) {
		t.chunk = strings.Builder{}
		t.chunk.Grow(chunkBytes)
	}
	start := t.chunk.Len()
	t.chunk.Write(b)
	return t.chunk.String()[start:]
}

// partTable holds decoded values by what they were decoded from. Like
// stringTable it forgets what collides. A value enters it when it is met for
// the second time, so that the many that are met once cost a comparison of two
// numbers and nothing more.
type partTable struct{ slots []partSlot }

type partSlot struct {
	seen uint64 // the hash of what was met last
	part *part
}

type part struct {
	typ     reflect.Type
	encoded string
	value   reflect.Value
}

const (
	partSlots   = 2048
	largestPart = 4 << 10
)

// get returns the value that was decoded from equal bytes. If there is none, it
// returns the slot to put it into, or nil if it is not to be shared.
func (t *partTable) get(typ reflect.Type, salt uint64, encoded []byte) (value reflect.Value, found bool, slot *partSlot) {
	if t == nil || len(encoded) > largestPart {
		return value, false, nil
	}
	if t.slots == nil {
		t.slots = make([]partSlot, partSlots)
	}
	hash := maphash.Bytes(hashSeed, encoded) ^ salt
	slot = &t.slots[hash%partSlots]
	if p := slot.part; p != nil && p.typ == typ && p.encoded == string(encoded) {
		return p.value, true, nil
	}
	if slot.seen != hash {
		slot.seen = hash
		return value, false, nil
	}
	return value, false, slot
}

// typeSalt tells equal bytes of different types apart: a hash is combined with
// it. A type's descriptor has one address.
func typeSalt(typ reflect.Type) uint64 {
	const goldenRatio = 0x9E3779B97F4A7C15
	return uint64(reflect.ValueOf(typ).Pointer()) * goldenRatio
}

// put keeps a value in a slot that get returned.
func (slot *partSlot) put(typ reflect.Type, encoded []byte, value reflect.Value) {
	if slot != nil {
		slot.part = &part{typ: typ, encoded: string(encoded), value: value}
	}
}
