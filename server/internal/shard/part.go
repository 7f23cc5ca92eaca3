package shard

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// maxParts bounds how many parts a collection can be divided into.
const maxParts = 10_000

// ParsePart reads what a server keeps of each collection: "i/n", which is the part i of n,
// counted from 0, whose objects' UIDs hash into the i-th of n ranges of one size; or a
// selector, as Parse does.
func ParsePart(text string) (*Selector, error) {
	first, second, ok := strings.Cut(text, "/")
	if !ok {
		s, err := Parse(text)
		if err != nil {
			err = fmt.Errorf("%q is neither a part such as 0/4 nor a shard selector: %w", text, err)
		}
		return s, err
	}
	n, err := strconv.ParseUint(second, 10, 64)
	if err != nil || n == 0 || n > maxParts {
		return nil, fmt.Errorf("%q is not a part i/n: n is a number from 1 to %d", text, maxParts)
	}
	i, err := strconv.ParseUint(first, 10, 64)
	if err != nil || i >= n {
		return nil, fmt.Errorf("%q is not a part i/n: i is a number from 0 to %d", text, n-1)
	}
	begin, _ := bits.Div64(i, 0, n)
	end := "0x10000000000000000"
	if i+1 < n {
		value, _ := bits.Div64(i+1, 0, n)
		end = fmt.Sprintf("0x%016x", value)
	}
	return Parse(fmt.Sprintf("shardRange(%s, '0x%016x', '%s')", UID, begin, end))
}

// Covers reports whether a selector selects every object that another one does; nil is for
// every object.
func (s *Selector) Covers(other *Selector) bool {
	if s == nil {
		return true
	}
	if other == nil || other.key != s.key {
		return false
	}
	for _, r := range other.ranges {
		covered := false
		for _, own := range s.ranges {
			covered = covered || own.first <= r.first && r.last <= own.last
		}
		if !covered {
			return false
		}
	}
	return true
}
