package shard

import (
	"cmp"
	"slices"
)

// Key is the part of an object that is hashed.
type Key string

// The keys, as selectors spell them.
const (
	UID       Key = "object.metadata.uid"
	Namespace Key = "object.metadata.namespace"
)

// Selector selects the objects whose key hashes into one of its ranges. It is
// immutable, made by Parse, and safe for concurrent use. A nil *Selector selects
// every object.
type Selector struct {
	key    Key
	ranges []span // ascending, disjoint and not adjacent
	text   string
}

// span is a range of hashes. Both ends belong to it, so that it can include the
// greatest hash.
type span struct{ first, last uint64 }

// Matches reports whether an object with that UID and namespace is selected. It
// does not allocate.
func (s *Selector) Matches(uid, namespace string) bool {
	if s == nil {
		return true
	}
	value := uid
	if s.key == Namespace {
		value = namespace
	}
	h := Hash(value)
	for _, r := range s.ranges {
		if h <= r.last {
			return h >= r.first
		}
	}
	return false
}

// String returns the selector as it was given to Parse.
func (s *Selector) String() string {
	if s == nil {
		return ""
	}
	return s.text
}

// Hash is 64-bit FNV-1a (draft-eastlake-fnv). The ranges of selectors are of its
// values.
func Hash(value string) uint64 {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3
	h := uint64(offset)
	for i := range len(value) {
		h = (h ^ uint64(value[i])) * prime
	}
	return h
}

// join sorts ranges and merges those that overlap or touch.
func join(ranges []span) []span {
	slices.SortFunc(ranges, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	out := ranges[:1]
	for _, r := range ranges[1:] {
		end := &out[len(out)-1]
		if r.first <= end.last || r.first == end.last+1 {
			end.last = max(end.last, r.last)
			continue
		}
		out = append(out, r)
	}
	return out
}
