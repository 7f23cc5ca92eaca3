package codec

import (
	"encoding/binary"
	"math/bits"
	"reflect"
	"unsafe"
)

// A protoSite is a place in the messages of a stream where a message stands: the spec
// of a pod, its second container. Messages that come one after the other are mostly
// equal at most of their fields, as a list is sorted by name and the objects of one
// workload stand together. So a site keeps the message that it read last and the
// struct that it became: the decoder copies the struct, compares the bytes and decodes
// the fields that differ. With that, a pod of a list takes a quarter less.
//
// The struct is the site's own: a caller that changes an object that it was given
// does not change what is decoded later, but for the parts that objects share anyway.
type protoSite struct {
	message  []byte        // that was read here last, as value is what it became
	fields   []fieldEnd    // of message, in order; their numbers ascend
	value    reflect.Value // a struct; not valid: nothing is known
	scratch  []fieldEnd    // of the message that is being read
	members  []*protoSite  // by number, of messages within this one
	elements []*protoSite  // by index, of a repeated member's
	missed   []uint8       // times in a row that a member's part was not known, by number; see skip
}

// fieldEnd is a field of a message, or all fields of a repeated member.
type fieldEnd struct{ number, end int }

const (
	// sitesAfter is after how many objects a decoder begins to keep what it reads:
	// most watches are idle.
	sitesAfter = 8
	// A site takes some kilobytes at most, and there are so many below each other
	// and side by side at most: objects of types that contain themselves may be deep.
	largestSiteMessage = 16 << 10
	deepestSite        = 6
	elementSites       = 8
)

// protoSites holds the sites of one decoder, which is for the objects of one type.
type protoSites struct {
	root    *protoSite
	shape   *protoShape
	objects int // that were decoded, up to sitesAfter
}

// beginObject returns the site of an object that comes; nil as long as there were few,
// and if objects may share nothing.
func (s *sharer) beginObject(shape *protoShape) *protoSite {
	t := &s.sites
	switch {
	case s.parts == nil:
		return nil
	case t.objects < sitesAfter:
		t.objects++
		return nil
	case t.shape != shape:
		t.root, t.shape = &protoSite{}, shape
	}
	s.depth = 0
	return t.root
}

// messageSite returns the site of a member's messages; nil if they are something else,
// or too deep.
func (s *sharer) messageSite(m *protoMember, site *protoSite) *protoSite {
	if site == nil || m.elem.kind != valueMessage || m.form == mapped || s.depth > deepestSite {
		return nil
	}
	return siteAt(&site.members, m.number)
}

// element returns the site of an element of a repeated member.
func (s *protoSite) element(index int) *protoSite {
	if s == nil || index >= elementSites {
		return nil
	}
	return siteAt(&s.elements, index)
}

func siteAt(sites *[]*protoSite, at int) *protoSite {
	for len(*sites) <= at {
		*sites = append(*sites, nil)
	}
	if (*sites)[at] == nil {
		(*sites)[at] = &protoSite{}
	}
	return (*sites)[at]
}

// keep makes msg, which has become v, what the next message is compared with. The
// fields of msg are in scratch.
func (s *protoSite) keep(v reflect.Value, msg []byte) {
	if !s.value.IsValid() {
		s.value = reflect.New(v.Type()).Elem()
	}
	s.value.Set(v)
	s.message = append(s.message[:0], msg...)
	s.fields, s.scratch = s.scratch, s.fields
}

// known is partTable.get for a member's part. Where nothing has been found for long,
// as for the conditions of pods, it mostly does not look.
func (s *sharer) known(m *protoMember, site *protoSite, encoded []byte) (value reflect.Value, found bool, at place) {
	if site == nil || s.parts == nil {
		return s.parts.get(m.typ, m.salt, encoded)
	}
	for len(site.missed) <= m.number {
		site.missed = append(site.missed, 0)
	}
	missed := &site.missed[m.number]
	if skip(missed) {
		return value, false, at
	}
	if value, found, at = s.parts.get(m.typ, m.salt, encoded); found {
		*missed = 0
	}
	return value, found, at
}

// difference reads a message into the struct at p by way of the one that the site
// knows, if it knows any: it copies that one's struct and reads what differs. It lists
// the fields in site.scratch.
func (s *sharer) difference(shape *protoShape, site *protoSite, p unsafe.Pointer, msg []byte) error {
	var known []fieldEnd // from the first that is not in msg yet
	start := 0           // of that one, in site.message
	if site.scratch = site.scratch[:0]; site.value.IsValid() {
		shape.at.value(p).Set(site.value)
		known = site.fields
	} else {
		shape.at.value(p).SetZero()
	}
	last := 0 // number
	for at := 0; at < len(msg); {
		if len(known) > 0 {
			after, end := site.equalFields(len(site.fields)-len(known), start, msg[at:])
			for _, field := range site.fields[len(site.fields)-len(known) : after] {
				last = field.number
				site.scratch = append(site.scratch, fieldEnd{last, field.end - start + at})
			}
			at += end - start
			start, known = end, site.fields[after:]
			if at == len(msg) {
				break
			}
		}
		number, wire, data, rest, err := splitField(msg[at:])
		if err != nil || number <= last {
			return errUnusual
		}
		last = number
		for len(known) > 0 && known[0].number < number {
			shape.clear(known[0].number, p)
			start, known = known[0].end, known[1:]
		}
		m := shape.member(number)
		if len(known) > 0 && known[0].number == number {
			if m != nil && m.form == single && m.elem.kind == valueGenerated {
				shape.clear(number, p) // all else is overwritten
			}
			start, known = known[0].end, known[1:]
		}
		if m != nil {
			if rest, err = s.field(m, site, p, msg[at:], wire, data, rest); err != nil {
				return err
			}
		}
		at = len(msg) - len(rest)
		site.scratch = append(site.scratch, fieldEnd{number, at})
	}
	for _, field := range known {
		shape.clear(field.number, p)
	}
	return nil
}

// clear empties the member of that number in the struct at p.
func (s *protoShape) clear(number int, p unsafe.Pointer) {
	if m := s.member(number); m != nil {
		m.at.value(unsafe.Add(p, m.offset)).SetZero()
	}
}

// equalFields returns how many fields, from the one at index next on, are equal to
// those with which rest begins, and where the last of them ends in s.message. start
// is where the first of them begins there.
func (s *protoSite) equalFields(next, start int, rest []byte) (after, end int) {
	same := commonPrefix(s.message[start:], rest)
	after, end = next, start
	for after < len(s.fields) && s.fields[after].end-start <= same {
		end = s.fields[after].end
		after++
	}
	if after == next || end-start == len(rest) {
		return after, end
	}
	// A repeated member may have more fields in rest than in s.message.
	if tag, _ := binary.Uvarint(rest[end-start:]); int(tag>>3) == s.fields[after-1].number {
		after--
		end = start
		if after > next {
			end = s.fields[after-1].end
		}
	}
	return after, end
}

// commonPrefix returns how many bytes at the beginning of a and b are equal.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	for ; i+8 <= n; i += 8 {
		if differ := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); differ != 0 {
			return i + bits.TrailingZeros64(differ)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
