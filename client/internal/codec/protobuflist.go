package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// protoReader reads a protobuf message from a stream, field by field, so that
// a list need not be in memory as a whole.
type protoReader struct {
	src   *Source
	buf   []byte // of the field read last
	share *sharer
	// left is what remains of the message that is being read.
	left int64
}

const (
	wholeStream   = int64(1) << 62
	keepBuffer    = 1 << 20 // a larger one is not kept for the next item
	firstBuffer   = 8 << 10
	growAtATimeBy = 1 << 20
)

// decodeProtobufList reads a list from a stream, item by item.
func (c *Codec[T]) decodeProtobufList(src *Source) (*List[T], error) {
	r := &protoReader{src: src, left: wholeStream, share: c.newSharer()}
	if err := r.magic(); err != nil {
		return nil, err
	}
	list := &List[T]{Items: []T{}}
	complete := false // a list without its message was cut
	for {
		number, wire, err := r.tag()
		if complete && errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case wire != wireBytes:
			err = r.skipScalar(wire)
		case number == unknownRaw:
			err = c.decodeProtobufItems(r, list)
			complete = true
		default:
			err = c.checkEnvelope(r, number)
		}
		if err != nil {
			return nil, err
		}
	}
}

// decodeProtobufItems reads the list's own message, whose length comes next.
func (c *Codec[T]) decodeProtobufItems(r *protoReader, list *List[T]) error {
	size, err := r.uvarint()
	if err != nil {
		return err
	}
	if size > uint64(r.left) {
		return errTruncated
	}
	outer := r.left - int64(size)
	r.left = int64(size)
	for r.left > 0 {
		r.src.StartFrame()
		number, wire, err := r.tag()
		if err != nil {
			return unexpected(err)
		}
		if wire != wireBytes {
			if err := r.skipScalar(wire); err != nil {
				return err
			}
			continue
		}
		data, err := r.bytes()
		if err != nil {
			return err
		}
		switch number {
		case listMeta:
			err = list.ListMeta.Unmarshal(data)
		case listItems:
			err = c.appendProtobufItem(r.share, list, data)
		}
		if err != nil {
			return err
		}
	}
	r.left = outer
	return nil
}

func (c *Codec[T]) appendProtobufItem(share *sharer, list *List[T], data []byte) error {
	obj := c.newT()
	m, ok := any(obj).(protoUnmarshaler)
	if !ok {
		return fmt.Errorf("%T cannot be decoded from protobuf", obj)
	}
	if err := share.unmarshalShared(data, m); err != nil {
		return fmt.Errorf("items[%d]: %w", len(list.Items), err)
	}
	if err := c.finish(obj); err != nil {
		return fmt.Errorf("items[%d]: %w", len(list.Items), err)
	}
	list.Items = append(list.Items, obj)
	return nil
}

// magic reads the `k8s\0` at the start.
func (r *protoReader) magic() error {
	var got [4]byte
	if _, err := io.ReadFull(r, got[:]); err != nil {
		return unexpected(err)
	}
	if !bytes.Equal(got[:], protobufMagic) {
		return errors.New("protobuf: the list does not start with k8s\\0")
	}
	return nil
}

// checkEnvelope reads a field beside the message: the kind is the only one
// that matters beside its version. Types that have a protobuf encoding are built in, and the kinds of
// their lists end with "List".
func (c *Codec[T]) checkEnvelope(r *protoReader, number int) error {
	r.src.StartFrame()
	data, err := r.bytes()
	if err != nil || number != unknownTypeMeta {
		return err
	}
	of, err := readTypeMeta(data)
	if err == nil && len(of.kind) > 0 && !bytes.HasSuffix(of.kind, []byte("List")) {
		err = fmt.Errorf("an answer of kind %.40q in place of a list", of.kind)
	}
	if err == nil {
		err = c.checkListKind(of.gvk())
	}
	return err
}

// Read implements io.Reader within the bounds of the current message.
func (r *protoReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n, err := r.src.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// ReadByte implements io.ByteReader, for varints.
func (r *protoReader) ReadByte() (byte, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	b, err := r.src.ReadByte()
	if err == nil {
		r.left--
	}
	return b, err
}

// tag reads a field's number and wire type; io.EOF is the end of the message.
func (r *protoReader) tag() (number, wire int, err error) {
	tag, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, 0, err
	}
	if tag>>3 == 0 || tag>>3 > 1<<29 {
		return 0, 0, errors.New("protobuf: bad field number")
	}
	return int(tag >> 3), int(tag & 7), nil
}

func (r *protoReader) uvarint() (uint64, error) {
	v, err := binary.ReadUvarint(r)
	return v, unexpected(err)
}

// bytes reads a length-delimited field. The result is valid until the next
// call. A length that lies costs no more memory than what really comes.
func (r *protoReader) bytes() ([]byte, error) {
	size, err := r.uvarint()
	if err != nil {
		return nil, err
	}
	if size > uint64(r.left) {
		return nil, errTruncated
	}
	if r.src.limit >= 0 && size > uint64(r.src.limit) {
		return nil, r.src.tooLarge()
	}
	r.buf, err = readSized(r, r.buf, int(size))
	return r.buf, err
}

func (r *protoReader) skipScalar(wire int) error {
	var err error
	switch wire {
	case wireVarint:
		_, err = r.uvarint()
	case wire64:
		_, err = io.ReadFull(r, make([]byte, 8))
	case wire32:
		_, err = io.ReadFull(r, make([]byte, 4))
	default:
		return fmt.Errorf("protobuf: wire type %d is not supported", wire)
	}
	return unexpected(err)
}

// readSized reads size bytes into buf, which grows with what comes and not
// with what was announced.
func readSized(r io.Reader, buf []byte, size int) ([]byte, error) {
	if cap(buf) > keepBuffer && size <= keepBuffer {
		buf = nil
	}
	if cap(buf) < size && size <= growAtATimeBy {
		buf = make([]byte, 0, max(size+size/4, firstBuffer))
	}
	buf = buf[:0]
	for len(buf) < size {
		n := min(size-len(buf), max(cap(buf)-len(buf), growAtATimeBy))
		start := len(buf)
		if cap(buf)-start < n {
			grown := make([]byte, start, start+n+start/4)
			copy(grown, buf)
			buf = grown
		}
		buf = buf[:start+n]
		if _, err := io.ReadFull(r, buf[start:]); err != nil {
			return buf[:0], unexpected(err)
		}
	}
	return buf, nil
}

// unexpected is err where the end must not come.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
