package patch

import (
	"bytes"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/internal/jsonscan"
)

// merge appends what a merge patch (RFC 7386) makes of an object, in one pass over both texts.
// The patch is valid and names no member twice; what comes of others is for the library to say. It parses and writes what is left of them on each level. The results are the same.
func merge(to, doc, patch []byte) ([]byte, error) {
	var changes []member
	if err := eachMember(patch, func(m member) error { changes = append(changes, m); return nil }); err != nil {
		return nil, err
	}
	byName := func(a, b member) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(changes, byName)
	start, applied := len(to), make([]bool, len(changes))
	err := eachMember(doc, func(m member) (err error) {
		i, changed := slices.BinarySearchFunc(changes, m, byName)
		if !changed {
			to = m.append(to)
			return nil
		}
		if applied[i] = true; !isNull(changes[i].value) {
			to, err = mergeValue(m.appendName(to), m.value, changes[i].value)
		}
		return err
	})
	for i := 0; i < len(changes) && err == nil; i++ {
		if m := changes[i]; !applied[i] && !isNull(m.value) {
			to, err = appendWithoutNulls(m.appendName(to), m.value)
		}
	}
	if err != nil {
		return nil, err
	}
	return object(to, start), nil
}

// mergeValue appends what a patch makes of a value. Only two objects are merged. A patch that
// takes the place of an object keeps its nulls, one that takes another value's place does not.
func mergeValue(to, value, patch []byte) ([]byte, error) {
	switch {
	case value[0] == '{' && patch[0] == '{':
		return merge(to, value, patch)
	case value[0] == '{':
		return append(to, patch...), nil
	}
	return appendWithoutNulls(to, patch)
}

// appendWithoutNulls appends a value without those members of its objects that are null.
// Nulls in lists stay.
func appendWithoutNulls(to, value []byte) ([]byte, error) {
	if !bytes.Contains(value, []byte("null")) {
		return append(to, value...), nil
	}
	start := len(to)
	switch value[0] {
	case '{':
		err := eachMember(value, func(m member) (err error) {
			if !isNull(m.value) {
				to, err = appendWithoutNulls(m.appendName(to), m.value)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return object(to, start), nil
	case '[':
		to = append(to, '[')
		s := jsonscan.Scanner{Data: value, Pos: 1}
		for !s.Take(']') {
			if s.Take(',') {
				to = append(to, ',')
			}
			element, err := s.Skip()
			if err == nil {
				to, err = appendWithoutNulls(to, element)
			}
			if err != nil {
				return nil, err
			}
		}
		return append(to, ']'), nil
	}
	return append(to, value...), nil
}

func isNull(value []byte) bool { return string(value) == "null" }
