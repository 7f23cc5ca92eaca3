package shard

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds on what Parse accepts: a fleet has some dozens of members, each of which
// may hold several ranges.
const (
	maxLength = 16 << 10 // bytes
	maxRanges = 128
)

// Parse reads a selector: one or more ranges, joined by "||", all of one key:
//
//	shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
//
// The first bound belongs to the range, the second does not; it may be
// '0x10000000000000000', which is 2^64. Blanks are ignored. The error says what
// was expected, and where.
func Parse(text string) (*Selector, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("a shard selector has %d characters at most", maxLength)
	}
	p := parser{text: text}
	s := &Selector{text: text}
	for {
		key, r, err := p.shardRange()
		if err != nil {
			return nil, fmt.Errorf("shard selector, at character %d: %w", p.at+1, err)
		}
		if s.key != "" && key != s.key {
			return nil, fmt.Errorf("shard selector: all ranges must be of one key, not of %s and %s", s.key, key)
		}
		s.key = key
		if s.ranges = append(s.ranges, r); len(s.ranges) > maxRanges {
			return nil, fmt.Errorf("a shard selector has %d ranges at most", maxRanges)
		}
		if p.end() {
			break
		}
		if err := p.expect("||"); err != nil {
			return nil, fmt.Errorf("shard selector, at character %d: %w", p.at+1, err)
		}
	}
	s.ranges = join(s.ranges)
	return s, nil
}

// parser reads a selector once from left to right.
type parser struct {
	text string
	at   int
}

func (p *parser) blanks() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) end() bool {
	p.blanks()
	return p.at == len(p.text)
}

func (p *parser) expect(token string) error {
	p.blanks()
	if !strings.HasPrefix(p.text[p.at:], token) {
		return fmt.Errorf("%q is expected", token)
	}
	p.at += len(token)
	return nil
}

// shardRange reads one call.
func (p *parser) shardRange() (key Key, r span, err error) {
	if err = p.expect("shardRange"); err == nil {
		err = p.expect("(")
	}
	if err != nil {
		return "", r, err
	}
	if key, err = p.key(); err != nil {
		return "", r, err
	}
	var bounds [2]bound
	for i := range bounds {
		if err := p.expect(","); err != nil {
			return "", r, err
		}
		if bounds[i], err = p.bound(); err != nil {
			return "", r, err
		}
	}
	if err := p.expect(")"); err != nil {
		return "", r, err
	}
	first, end := bounds[0], bounds[1]
	if first.whole || !end.whole && end.value <= first.value {
		return "", r, errors.New("a range must begin below its end")
	}
	// The end of the whole range wraps round to the greatest hash.
	return key, span{first: first.value, last: end.value - 1}, nil
}

func (p *parser) key() (Key, error) {
	p.blanks()
	for _, key := range []Key{UID, Namespace} {
		if strings.HasPrefix(p.text[p.at:], string(key)) {
			p.at += len(key)
			return key, nil
		}
	}
	return "", fmt.Errorf("%s or %s is expected", UID, Namespace)
}

// bound is a number up to 2^64, which is whole and has the value zero.
type bound struct {
	value uint64
	whole bool
}

// bound reads a quoted hexadecimal number.
func (p *parser) bound() (b bound, err error) {
	if err := p.expect("'0x"); err != nil {
		return b, err
	}
	digits, _, closed := strings.Cut(p.text[p.at:], "'")
	if !closed {
		return b, errors.New("the quote is not closed")
	}
	if digits == "10000000000000000" {
		b.whole = true
	} else if b.value, err = strconv.ParseUint(digits, 16, 64); err != nil || len(digits) > 16 {
		return b, errors.New("a hexadecimal number of 16 digits at most is expected")
	}
	p.at += len(digits) + 1
	return b, nil
}
