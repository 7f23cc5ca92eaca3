package codec

import (
	"hash/maphash"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// sharer holds what the decoder of one stream shares between objects. It is for one
// goroutine at a time.
type sharer struct {
	strings    *stringTable
	parts      *partTable  // nil: only strings are shared
	lastStates *lastStates // nil: objects come once each
	sites      protoSites  // of protobuf; they need parts
	depth      int         // of the message that is being read
}

func (c *Codec[T]) newSharer() *sharer {
	s := &sharer{strings: &stringTable{}}
	if c.interning {
		s.parts = &partTable{}
	}
	return s
}

// newWatchSharer is newSharer for a stream in which objects come again.
func (c *Codec[T]) newWatchSharer() *sharer {
	s := c.newSharer()
	if c.interning && c.form == FormTyped {
		s.lastStates = &lastStates{last: map[types.UID]lastState{}}
	}
	return s
}

// MessageDecoder returns a function that decodes protobuf messages without their
// envelope into objects that share equal parts. It returns false for a type that
// cannot be decoded from protobuf.
func MessageDecoder[T Item](newT func() T) (decode func(message []byte) (T, error), ok bool) {
	share := &sharer{strings: &stringTable{}, parts: &partTable{}}
	_, ok = any(newT()).(protoUnmarshaler)
	return func(message []byte) (T, error) {
		obj := newT()
		err := share.unmarshalShared(message, any(obj).(protoUnmarshaler))
		return obj, err
	}, ok
}

// stringTable shares equal short strings of one stream: names of members,
// namespaces, labels repeat in every object. It forgets what collides, so its
// size is bounded.
type stringTable struct {
	strings []string // as many as a power of four
	misses  int      // since it grew
	// chunk is what new strings are cut from: many small allocations cost more
	// to make and to mark than their bytes do.
	chunk strings.Builder
}

const (
	// Tables begin small, as most watches are idle but for a bookmark a minute,
	// and grow when much is missed.
	firstSlots  = 16
	stringSlots = 1024
	partSlots   = 4096

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
	case t.strings == nil:
		t.strings = make([]string, firstSlots)
	}
	slot := &t.strings[maphash.Bytes(hashSeed, b)%uint64(len(t.strings))]
	if *slot == string(b) {
		return *slot
	}
	s := t.cut(b)
	*slot = s
	if t.misses++; t.misses > 4*len(t.strings) && len(t.strings) < stringSlots {
		t.grow()
	}
	return s
}

func (t *stringTable) grow() {
	old := t.strings
	t.strings, t.misses = make([]string, 4*len(old)), 0
	for _, s := range old {
		t.strings[maphash.String(hashSeed, s)%uint64(len(t.strings))] = s
	}
}

// cut returns a new string.
func (t *stringTable) cut(b []byte) string {
	if len(t.strings) == firstSlots {
		return string(b) // little comes here, which must not keep much
	}
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
type partTable struct {
	slots  []partSlot // as many as a power of four
	misses int        // since it grew
}

type partSlot struct {
	seen uint64 // the hash of what was met last
	part *part
}

type part struct {
	typ     reflect.Type
	encoded string
	value   reflect.Value
	hash    uint64
}

const largestPart = 4 << 10

// place is where a part is to be put, if anywhere.
type place struct {
	slot *partSlot
	hash uint64
}

// get returns the value that was decoded from equal bytes. If there is none, it
// returns the place to put it.
func (t *partTable) get(typ reflect.Type, salt uint64, encoded []byte) (value reflect.Value, found bool, at place) {
	if t == nil || len(encoded) > largestPart {
		return value, false, at
	}
	if t.misses > 4*len(t.slots) && len(t.slots) < partSlots || t.slots == nil {
		t.grow()
	}
	hash := maphash.Bytes(hashSeed, encoded) ^ salt
	slot := &t.slots[hash%uint64(len(t.slots))]
	if p := slot.part; p != nil && p.typ == typ && p.encoded == string(encoded) {
		return p.value, true, at
	}
	t.misses++
	if slot.seen != hash {
		slot.seen = hash
		return value, false, at
	}
	return value, false, place{slot, hash}
}

func (t *partTable) grow() {
	old := t.slots
	t.slots, t.misses = make([]partSlot, max(4*len(old), firstSlots)), 0
	for _, slot := range old {
		if slot.part != nil {
			t.slots[slot.part.hash%uint64(len(t.slots))].part = slot.part
		}
	}
}

// typeSalt returns a number to combine with a hash, so that equal bytes of different
// types have different hashes. It is made of the address of the type's descriptor,
// of which there is one.
func typeSalt(typ reflect.Type) uint64 {
	const goldenRatio = 0x9E3779B97F4A7C15
	return uint64(reflect.ValueOf(typ).Pointer()) * goldenRatio
}

// put stores a value at the place that get returned. If the table has grown since,
// the value is lost.
func (at place) put(typ reflect.Type, encoded []byte, value reflect.Value) {
	if at.slot != nil {
		at.slot.part = &part{typ: typ, encoded: string(encoded), value: value, hash: at.hash}
	}
}
