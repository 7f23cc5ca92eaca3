package codec

import (
	"encoding/binary"
	"errors"
	"reflect"
)

// errUnusual ends reading by shape: the message is wrong, or right in a way
// that no Kubernetes server writes. The type's own code then decides.
var errUnusual = errors.New("protobuf: unusual message")

// unmarshalShared decodes a message into a new object by the shape of its type,
// and so can share what it has seen before, which generated code cannot. It
// accepts what the generated code accepts, with the same result. msg is not
// kept.
func (s *sharer) unmarshalShared(msg []byte, into protoUnmarshaler) error {
	v := reflect.ValueOf(into).Elem()
	shape := shapeOf(v.Type())
	if shape == nil {
		return into.Unmarshal(msg)
	}
	s.lastStates.begin(into)
	if s.message(shape, v, msg) == nil {
		s.lastStates.end()
		return nil
	}
	v.SetZero()
	return into.Unmarshal(msg)
}

// message reads a message into the zero struct v. An error is errUnusual or
// that of a member's own code.
func (s *sharer) message(shape *protoShape, v reflect.Value, msg []byte) error {
	for len(msg) > 0 {
		number, wire, data, rest, err := splitField(msg)
		if err != nil {
			return err
		}
		m := shape.member(number)
		if m == nil {
			msg = rest
			continue
		}
		if m.form == repeated || m.form == mapped {
			if wire != wireBytes && wire != m.elem.wire {
				return errUnusual
			}
			var n int
			if rest, n, err = m.run(rest); err != nil {
				return err
			}
			err = s.many(m, v.Field(m.index), msg[:len(msg)-len(rest)], n)
		} else if wire != m.elem.wire {
			return errUnusual
		} else if m.form == pointer {
			err = s.pointer(m, v.Field(m.index), data)
		} else if !m.body || !s.lastStates.unchanged(v, m.index, data) {
			err = s.value(&m.elem, v.Field(m.index), data)
		}
		if err != nil {
			return err
		}
		msg = rest
	}
	return nil
}

// splitField takes a field off the front of a message. data is its content
// without length, or its varint.
func splitField(msg []byte) (number, wire int, data, rest []byte, err error) {
	if len(msg) > 1 && msg[0]&0x87 == wireBytes && msg[0] > 7 && int(msg[1]) <= min(len(msg)-2, 0x7f) {
		// Nearly every field has a number below 16 and less than 128 bytes.
		end := 2 + int(msg[1])
		return int(msg[0] >> 3), wireBytes, msg[2:end], msg[end:], nil
	}
	tag, n := binary.Uvarint(msg)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29 {
		return 0, 0, nil, nil, errUnusual
	}
	number, wire, msg = int(tag>>3), int(tag&7), msg[n:]
	switch wire {
	case wireBytes:
		size, n := binary.Uvarint(msg)
		if n <= 0 || size > uint64(len(msg)-n) {
			return 0, 0, nil, nil, errUnusual
		}
		return number, wire, msg[n : n+int(size)], msg[n+int(size):], nil
	case wireVarint:
		if _, n := binary.Uvarint(msg); n > 0 {
			return number, wire, msg[:n], msg[n:], nil
		}
	}
	return 0, 0, nil, nil, errUnusual // 32 and 64 bits: no API type has them
}

// run returns what follows the fields of the same number that come next, and
// how many there are, with the one before rest.
func (m *protoMember) run(rest []byte) (after []byte, n int, err error) {
	for n = 1; len(rest) > 0; n++ {
		number, _, _, after, err := splitField(rest)
		if err != nil {
			return nil, 0, err
		}
		if number != m.number {
			break
		}
		rest = after
	}
	return rest, n, nil
}

// pointer reads what an optional field points to.
func (s *sharer) pointer(m *protoMember, field reflect.Value, data []byte) error {
	if !field.IsNil() {
		return errUnusual // twice: the second is merged into the first
	}
	shared, found, at := s.parts.get(m.typ, m.salt, data)
	if found {
		field.Set(shared)
		return nil
	}
	target := reflect.New(m.elem.typ)
	if err := s.value(&m.elem, target.Elem(), data); err != nil {
		return err
	}
	field.Set(target)
	at.put(m.typ, data, target)
	return nil
}

// many reads the n fields of a slice or a map that encoded has.
func (s *sharer) many(m *protoMember, field reflect.Value, encoded []byte, n int) error {
	if !field.IsNil() {
		return errUnusual // some of it came before
	}
	shared, found, at := s.parts.get(m.typ, m.salt, encoded)
	if found {
		field.Set(shared)
		return nil
	}
	var made reflect.Value
	var err error
	if m.form == mapped {
		made, err = s.entries(m, encoded, n)
	} else {
		made, err = s.elements(m, encoded, n)
	}
	if err != nil {
		return err
	}
	field.Set(made)
	at.put(m.typ, encoded, made)
	return nil
}

func (s *sharer) elements(m *protoMember, encoded []byte, n int) (reflect.Value, error) {
	made := reflect.MakeSlice(m.typ, n, n)
	for i := range n {
		_, wire, data, rest, err := splitField(encoded)
		if err != nil || wire != m.elem.wire {
			return made, errUnusual
		}
		if err := s.value(&m.elem, made.Index(i), data); err != nil {
			return made, err
		}
		encoded = rest
	}
	return made, nil
}

func (s *sharer) entries(m *protoMember, encoded []byte, n int) (reflect.Value, error) {
	made := reflect.MakeMapWithSize(m.typ, n)
	key, value := reflect.New(m.typ.Key()).Elem(), reflect.New(m.typ.Elem()).Elem()
	for range n {
		_, wire, entry, rest, err := splitField(encoded)
		if err != nil || wire != wireBytes {
			return made, errUnusual
		}
		if err := s.entry(m, key, value, entry); err != nil {
			return made, err
		}
		made.SetMapIndex(key, value)
		encoded = rest
	}
	return made, nil
}

// entry reads a key and a value, which every server writes in this order.
// What is absent is empty.
func (s *sharer) entry(m *protoMember, key, value reflect.Value, entry []byte) error {
	key.SetZero()
	value.SetZero()
	if value.Kind() == reflect.Slice {
		value.Set(reflect.MakeSlice(m.elem.typ, 0, 0)) // as generated code does
	}
	for number, part := range []struct {
		is   *protoValue
		into reflect.Value
	}{{&m.key, key}, {&m.elem, value}} {
		if len(entry) == 0 {
			return nil
		}
		is, wire, data, rest, err := splitField(entry)
		if err != nil || is != number+1 || wire != part.is.wire {
			return errUnusual
		}
		if err := s.value(part.is, part.into, data); err != nil {
			return err
		}
		entry = rest
	}
	if len(entry) > 0 {
		return errUnusual
	}
	return nil
}

// value reads one value into the zero value v.
func (s *sharer) value(p *protoValue, v reflect.Value, data []byte) error {
	switch p.kind {
	case valueString:
		v.SetString(s.strings.string(data))
	case valueBytes:
		v.SetBytes(append(make([]byte, 0, len(data)), data...))
	case valueBool:
		n, _ := binary.Uvarint(data)
		v.SetBool(n != 0)
	case valueInt:
		n, _ := binary.Uvarint(data)
		v.SetInt(int64(n))
	case valueMessage:
		return s.message(p.shape, v, data)
	case valueGenerated:
		return v.Addr().Interface().(protoUnmarshaler).Unmarshal(data)
	}
	return nil
}
