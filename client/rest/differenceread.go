package rest

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
	sum, err := d.keep(header, src, c)
	if errors.Is(err, errNotHeld) {
		return nil, err
	}
	if err == nil {
		err = d.receive(codec, enc, header, src)
	}
	if err == nil {
		src.frame()
		err = difference.ReadEnd(src)
	}
	if err != nil {
		return nil, src.cause("difference", err)
	}
	for _, obj := range d.Received {
		bucket, hash, err := c.of(obj)
		if err == nil && !header.Differing.Has(bucket) {
			err = fmt.Errorf("%s/%s is in a bucket that does not differ", obj.GetNamespace(), obj.GetName())
		}
		if err != nil {
			return nil, &DecodeError{What: "difference", Err: err}
		}
		sum ^= hash
	}
	if n := uint64(len(d.Kept) + len(d.Received)); n != header.Selected || sum != header.Checksum {
		return nil, &DecodeError{What: "difference", Err: fmt.Errorf("it leads to %d objects and the server has %d, or others", n, header.Selected)}
	}
	return d, nil
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

// receive decodes the objects that were sent.
func (d *Difference[T]) receive(codec *codec[T], enc encoding, header *difference.Header, src *source) error {
	decode, err := codec.itemDecoder(enc)
	if err != nil {
		return err
	}
	var buf []byte
	for range header.Sent {
		src.frame()
		size, err := difference.ReadSize(src)
		if err != nil {
			return err
		}
		if src.limit >= 0 && size > uint64(src.limit) || size > 1<<40 {
			return src.tooLarge()
		}
		src.frame()
		if buf, err = readSized(src, buf, int(size)); err != nil {
			return err
		}
		obj, err := decode(buf)
		if err != nil {
			return fmt.Errorf("objects[%d]: %w", len(d.Received), err)
		}
		d.Received = append(d.Received, obj)
	}
	return nil
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
