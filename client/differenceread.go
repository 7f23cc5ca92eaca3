package client

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/levelwire/levelwire/internal/difference"
)

// readDifference reads an answer and makes the server's state of it and of what
// is claimed. What it returns has the number of objects and the checksum that
// the server says.
func readDifference[T Object](codec *codec[T], enc encoding, src *source, c *claim[T]) (*Difference[T], error) {
	header, err := difference.ReadHeader(src, c.digest.Bits)
	if err != nil {
		return nil, src.cause("difference", err)
	}
	d := &Difference[T]{ResourceVersion: formatVersion(header.Version)}
	sum, err := d.read(codec, enc, header, src, c)
	n := uint64(len(d.Kept) + len(d.Received))
	switch {
	case errors.Is(err, errNotHeld):
		return nil, err
	case err != nil:
		return nil, src.cause("difference", err)
	case n != header.Selected || sum != header.Checksum:
		return nil, &DecodeError{What: "difference", Err: fmt.Errorf("it leads to %d objects and the server has %d, or others", n, header.Selected)}
	}
	return d, nil
}

// read reads what follows the header, and returns the checksum of the result.
func (d *Difference[T]) read(codec *codec[T], enc encoding, header *difference.Header, src *source, c *claim[T]) (sum uint64, err error) {
	kept, err := d.keep(header, src, c)
	if err != nil {
		return 0, err
	}
	received, err := d.receive(codec, enc, header, src, c)
	if err != nil {
		return 0, err
	}
	src.frame()
	return kept ^ received, difference.ReadEnd(src)
}

// keep reads the hashes, and finds what of the claim the server has, too. It
// returns the checksum of that.
func (d *Difference[T]) keep(header *difference.Header, src *source, c *claim[T]) (sum uint64, err error) {
	same := 0
	for _, bucket := range c.buckets {
		if !header.Differing.Has(bucket) {
			same++
		}
	}
	if header.Unchanged > uint64(len(c.held)-same) {
		return 0, errNotHeld
	}
	d.Kept = make([]T, 0, same+int(header.Unchanged))
	doubtful := make(map[uint64]int, len(c.held)-same)
	for i, bucket := range c.buckets {
		if header.Differing.Has(bucket) {
			doubtful[c.hashes[i]] = i
			continue
		}
		d.Kept = append(d.Kept, c.held[i])
		sum ^= c.hashes[i]
	}
	for range header.Unchanged {
		src.frame()
		hash, err := difference.ReadHash(src)
		if err != nil {
			return 0, err
		}
		i, ok := doubtful[hash]
		if !ok {
			return 0, errNotHeld
		}
		delete(doubtful, hash)
		d.Kept = append(d.Kept, c.held[i])
		sum ^= hash
	}
	d.Dropped = make([]T, 0, len(doubtful))
	for _, i := range doubtful {
		d.Dropped = append(d.Dropped, c.held[i])
	}
	return sum, nil
}

// receive decodes the objects that were sent, and returns their checksum. Each is
// looked at as soon as it is there: one that cannot be what was asked for ends it.
func (d *Difference[T]) receive(codec *codec[T], enc encoding, header *difference.Header, src *source, c *claim[T]) (sum uint64, err error) {
	decode, err := codec.itemDecoder(enc)
	if err != nil {
		return 0, err
	}
	var buf []byte
	for range header.Sent {
		if buf, err = readItem(src, buf); err != nil {
			return 0, err
		}
		obj, err := decode(buf)
		if err != nil {
			return 0, fmt.Errorf("objects[%d]: %w", len(d.Received), err)
		}
		bucket, hash, err := c.of(obj)
		if err != nil {
			return 0, err
		}
		if !header.Differing.Has(bucket) {
			return 0, fmt.Errorf("object %s/%s is in a bucket that does not differ", obj.GetNamespace(), obj.GetName())
		}
		d.Received = append(d.Received, obj)
		sum ^= hash
	}
	return sum, nil
}

// readItem reads the bytes of one object into buf, or a larger one.
func readItem(src *source, buf []byte) ([]byte, error) {
	src.frame()
	size, err := difference.ReadSize(src)
	if err != nil {
		return nil, err
	}
	if src.limit >= 0 && size > uint64(src.limit) || size > 1<<40 {
		return nil, src.tooLarge()
	}
	src.frame()
	return readSized(src, buf, int(size))
}

// itemDecoder returns the function that decodes one object after the other,
// each a whole document in JSON or a bare message in protobuf. They share what
// the objects of a list share.
func (c *codec[T]) itemDecoder(enc encoding) (func(data []byte) (T, error), error) {
	share := c.newSharer()
	switch enc {
	case encodingProtobuf:
		return func(data []byte) (T, error) {
			obj := c.newT()
			m, ok := any(obj).(protoUnmarshaler)
			if !ok {
				return obj, fmt.Errorf("%T cannot be decoded from protobuf", obj)
			}
			err := share.unmarshalShared(data, m)
			c.finish(obj)
			return obj, err
		}, nil
	case encodingJSON:
		in := bytes.NewReader(nil)
		dec := newJSONReader(in, share)
		return func(data []byte) (T, error) {
			in.Reset(data)
			dec.Reset(in, jsonOptions)
			obj, err := c.decodeItem(dec)
			if err == nil && len(bytes.TrimRight(data[dec.InputOffset():], " \t\r\n")) > 0 {
				err = errors.New("more than one JSON document")
			}
			return obj, err
		}, nil
	}
	return nil, errUnknownEncoding
}
