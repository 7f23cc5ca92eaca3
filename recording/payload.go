package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// lateFlag marks the type of an entry that is Late.
const lateFlag = 0x80

var errMalformed = errors.New("an entry of the block is malformed, although its checksum is right")

// deltas are what times and revisions of a block's entries are relative to.
type deltas struct{ time, revision int64 }

// appendEntry appends an entry of an events block.
func (d *deltas) appendEntry(out []byte, e *Entry) []byte {
	kind := byte(e.Type)
	if e.Late {
		kind |= lateFlag
	}
	out = append(out, kind)
	at := e.Time.UnixNano()
	out = binary.AppendVarint(out, at-d.time)
	out = binary.AppendVarint(out, e.Revision-d.revision)
	d.time, d.revision = at, e.Revision
	if e.Type == Progress {
		return out
	}
	out = binary.AppendUvarint(out, uint64(e.Resource))
	if e.Type == Gap {
		return out
	}
	out = appendBytes(out, e.Key)
	if e.Type == Set {
		out = binary.AppendUvarint(out, uint64(e.Revision-e.Created))
		out = appendBytes(out, e.Value)
	}
	return out
}

func appendBytes[T string | []byte](out []byte, data T) []byte {
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

// appendObject appends an object of a state block.
func appendObject(out []byte, o *Object) []byte {
	out = binary.AppendUvarint(out, uint64(o.Resource))
	out = binary.AppendUvarint(out, uint64(o.Revision))
	out = binary.AppendUvarint(out, uint64(o.Created))
	out = appendBytes(out, o.Key)
	return appendBytes(out, o.Value)
}

// parser reads a payload. After an error it returns zeros.
type parser struct {
	data []byte
	bad  bool
}

func (p *parser) fail() {
	p.data, p.bad = nil, true
}

func (p *parser) byte() byte {
	if len(p.data) == 0 {
		p.fail()
		return 0
	}
	b := p.data[0]
	p.data = p.data[1:]
	return b
}

func (p *parser) uvarint() uint64 {
	n, size := binary.Uvarint(p.data)
	if size <= 0 {
		p.fail()
		return 0
	}
	p.data = p.data[size:]
	return n
}

func (p *parser) varint() int64 {
	n, size := binary.Varint(p.data)
	if size <= 0 {
		p.fail()
		return 0
	}
	p.data = p.data[size:]
	return n
}

// bytes returns a part of the payload.
func (p *parser) bytes() []byte {
	n := p.uvarint()
	if n > uint64(len(p.data)) {
		p.fail()
		return nil
	}
	out := p.data[:n:n]
	p.data = p.data[n:]
	return out
}

// resource returns the index of one of so many resources.
func (p *parser) resource(resources int) int {
	n := p.uvarint()
	if n >= uint64(resources) {
		p.fail()
		return 0
	}
	return int(n)
}

func (p *parser) err() error {
	if p.bad {
		return errMalformed
	}
	return nil
}

// entry reads one entry. Its Value is a part of the payload.
func (p *parser) entry(d *deltas, resources int) (Entry, error) {
	kind := p.byte()
	e := Entry{Type: EntryType(kind &^ lateFlag), Late: kind&lateFlag != 0}
	d.time += p.varint()
	d.revision += p.varint()
	e.Time, e.Revision = time.Unix(0, d.time), d.revision
	switch e.Type {
	case Progress:
	case Gap:
		e.Resource = p.resource(resources)
	case Set, Delete:
		e.Resource = p.resource(resources)
		e.Key = string(p.bytes())
		if e.Type == Set {
			e.Created = e.Revision - int64(p.uvarint())
			e.Value = p.bytes()
		}
	default:
		return Entry{}, fmt.Errorf("an entry is of type %d, which this version does not know", e.Type)
	}
	return e, p.err()
}

// object reads one object. Its Value is a part of the payload.
func (p *parser) object(resources int) (Object, error) {
	o := Object{Resource: p.resource(resources), Revision: int64(p.uvarint()), Created: int64(p.uvarint())}
	o.Key = string(p.bytes())
	o.Value = p.bytes()
	return o, p.err()
}

// parseEntries calls visit with each entry of an events block.
func parseEntries(h header, payload []byte, resources int, visit func(Entry) error) error {
	p, d := parser{data: payload}, deltas{time: h.firstTime, revision: h.firstRevision}
	for range h.count {
		e, err := p.entry(&d, resources)
		if err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return p.end()
}

// parseObjects calls visit with each object of a state block.
func parseObjects(h header, payload []byte, resources int, visit func(Object) error) error {
	p := parser{data: payload}
	for range h.count {
		o, err := p.object(resources)
		if err != nil {
			return err
		}
		if err := visit(o); err != nil {
			return err
		}
	}
	return p.end()
}

// end checks that nothing is left.
func (p *parser) end() error {
	if len(p.data) > 0 {
		return errMalformed
	}
	return nil
}
