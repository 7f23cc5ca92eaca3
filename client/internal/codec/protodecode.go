package codec

import (
	"encoding/binary"
	"errors"
	"reflect"
	"unsafe"
)

// errUnusual ends reading by shape: the message is wrong, or right in a way
// that no Kubernetes server writes. The type's own code then decides.
var errUnusual = errors.New("protobuf: unusual message")

// unmarshalShared decodes a message into a new object by the shape of its type,
// and so can share what it has seen before, which generated code cannot. It
// accepts what the generated code accepts, with the same result. msg is not
// kept.
//
// The decoder writes to fields by their offsets in the struct, which takes half the
// time that it takes with reflect. A pointer is always one to a value of the type that
// the shape was made of, in memory that the collector knows to be of that type.
func (s *sharer) unmarshalShared(msg []byte, into protoUnmarshaler) error {
	v := reflect.ValueOf(into)
	shape := shapeOf(v.Type().Elem())
	if shape == nil {
		return into.Unmarshal(msg)
	}
	s.lastStates.begin(into)
	if s.object(shape, s.beginObject(shape), v.UnsafePointer(), msg) == nil {
		s.lastStates.end()
		return nil
	}
	v.Elem().SetZero()
	return into.Unmarshal(msg)
}

// object reads a message into the zero struct at p. An error is errUnusual or that of a
// member's own code. The numbers of its fields must ascend, as every server writes
// them. site may be nil; of an object, the sites of its members are used and not that
// of the object itself, as objects differ in each of their few members.
func (s *sharer) object(shape *protoShape, site *protoSite, p unsafe.Pointer, msg []byte) error {
	for last := 0; len(msg) > 0; {
		number, wire, data, rest, err := splitField(msg)
		if err != nil {
			return err
		}
		if number <= last {
			return errUnusual // twice: the second is merged into the first
		}
		last = number
		m := shape.member(number)
		if m == nil {
			msg = rest
			continue
		}
		if m.body && s.unchanged(shape, m, p, wire, data) {
			msg = rest
			continue
		}
		if msg, err = s.field(m, site, p, msg, wire, data, rest); err != nil {
			return err
		}
	}
	return nil
}

// unchanged gives the object at p the body of its last state if that is equal.
func (s *sharer) unchanged(shape *protoShape, m *protoMember, p unsafe.Pointer, wire int, data []byte) bool {
	return s.lastStates != nil && wire == m.elem.wire && s.lastStates.unchanged(shape.at.value(p), m.index, data)
}

// field reads the field with which msg begins into the struct at p, and those of the
// same number that follow if it is repeated. It returns what comes then. The other
// parameters after msg are what splitField returns for it.
func (s *sharer) field(m *protoMember, site *protoSite, p unsafe.Pointer, msg []byte, wire int, data, rest []byte) ([]byte, error) {
	at := unsafe.Add(p, m.offset)
	switch m.form {
	case single:
		if wire != m.elem.wire {
			return nil, errUnusual
		}
		return rest, s.value(&m.elem, s.messageSite(m, site), at, data)
	case pointer:
		if wire != m.elem.wire {
			return nil, errUnusual
		}
		return rest, s.pointer(m, site, at, data)
	}
	if wire != wireBytes && wire != m.elem.wire {
		return nil, errUnusual
	}
	rest, n, err := m.run(rest)
	if err != nil {
		return nil, err
	}
	return rest, s.many(m, site, at, msg[:len(msg)-len(rest)], n)
}

// message reads a message into the struct at p, whose contents do not matter.
func (s *sharer) message(shape *protoShape, site *protoSite, p unsafe.Pointer, msg []byte) error {
	if site == nil || len(msg) > largestSiteMessage {
		shape.at.value(p).SetZero()
		return s.object(shape, nil, p, msg)
	}
	s.depth++
	err := s.difference(shape, site, p, msg)
	s.depth--
	if err == nil {
		site.keep(shape.at.value(p), msg)
	}
	return err
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
func (s *sharer) pointer(m *protoMember, site *protoSite, p unsafe.Pointer, data []byte) error {
	shared, found, at := s.known(m, site, data)
	if found {
		*(*unsafe.Pointer)(p) = shared.UnsafePointer()
		return nil
	}
	target := reflect.New(m.elem.typ)
	if err := s.value(&m.elem, s.messageSite(m, site), target.UnsafePointer(), data); err != nil {
		return err
	}
	*(*unsafe.Pointer)(p) = target.UnsafePointer()
	at.put(m.typ, data, target)
	return nil
}

// many reads the n fields of a slice or a map that encoded has.
func (s *sharer) many(m *protoMember, site *protoSite, p unsafe.Pointer, encoded []byte, n int) error {
	field := m.at.value(p)
	shared, found, at := s.known(m, site, encoded)
	if found {
		field.Set(shared)
		return nil
	}
	var err error
	if m.form == mapped {
		err = s.entries(m, field, encoded, n)
	} else {
		err = s.elements(m, s.messageSite(m, site), field, encoded, n)
	}
	if err == nil && at.slot != nil {
		kept := reflect.New(m.typ).Elem()
		kept.Set(field)
		at.put(m.typ, encoded, kept)
	}
	return err
}

// elements makes a slice. It is made in the field, as reflect.MakeSlice allocates the
// slice's header, too.
func (s *sharer) elements(m *protoMember, site *protoSite, field reflect.Value, encoded []byte, n int) error {
	field.SetZero()
	field.Grow(n)
	field.SetLen(n)
	field.SetCap(n)
	p := field.UnsafePointer()
	for i := range n {
		_, wire, data, rest, err := splitField(encoded)
		if err != nil || wire != m.elem.wire {
			return errUnusual
		}
		if err := s.value(&m.elem, site.element(i), unsafe.Add(p, uintptr(i)*m.elem.size), data); err != nil {
			return err
		}
		encoded = rest
	}
	return nil
}

func (s *sharer) entries(m *protoMember, field reflect.Value, encoded []byte, n int) error {
	made := reflect.MakeMapWithSize(m.typ, n)
	key, value := reflect.New(m.typ.Key()).Elem(), reflect.New(m.typ.Elem()).Elem()
	for range n {
		_, wire, entry, rest, err := splitField(encoded)
		if err != nil || wire != wireBytes {
			return errUnusual
		}
		if err := s.entry(m, key, value, entry); err != nil {
			return err
		}
		made.SetMapIndex(key, value)
		encoded = rest
	}
	field.Set(made)
	return nil
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
		if err := s.value(part.is, nil, part.into.Addr().UnsafePointer(), data); err != nil {
			return err
		}
		entry = rest
	}
	if len(entry) > 0 {
		return errUnusual
	}
	return nil
}

// value reads one value into the zero value at p. A message may be read into any.
func (s *sharer) value(v *protoValue, site *protoSite, p unsafe.Pointer, data []byte) error {
	switch v.kind {
	case valueString:
		*(*string)(p) = s.strings.string(data)
	case valueBytes:
		*(*[]byte)(p) = append(make([]byte, 0, len(data)), data...)
	case valueBool:
		n, _ := binary.Uvarint(data)
		*(*bool)(p) = n != 0
	case valueInt32:
		n, _ := binary.Uvarint(data)
		*(*int32)(p) = int32(n)
	case valueInt64:
		n, _ := binary.Uvarint(data)
		*(*int64)(p) = int64(n)
	case valueMessage:
		return s.message(v.shape, site, p, data)
	case valueGenerated:
		return v.at.pointer(p).(protoUnmarshaler).Unmarshal(data)
	}
	return nil
}
