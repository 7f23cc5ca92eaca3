package client

import (
	"errors"
	"fmt"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/internal/difference"
)

// readDifference reads an answer and makes the server's state of it and of what
// is claimed. What it returns has the number of objects and the checksum that
// the server says.
func readDifference[T Object](items *codec.Codec[T], enc codec.Encoding, src *codec.Source, c *claim[T]) (*Difference[T], error) {
	header, err := difference.ReadHeader(src, c.digest.Bits)
	if err != nil {
		return nil, streamError(src, "difference", err)
	}
	d := &Difference[T]{ResourceVersion: formatVersion(header.Version)}
	sum, err := d.read(items, enc, header, src, c)
	n := uint64(len(d.Kept) + len(d.Received))
	switch {
	case errors.Is(err, errNotHeld):
		return nil, err
	case err != nil:
		return nil, streamError(src, "difference", err)
	case n != header.Selected || sum != header.Checksum:
		return nil, &DecodeError{What: "difference", Err: fmt.Errorf("it leads to %d objects and the server has %d, or others", n, header.Selected)}
	}
	return d, nil
}

// read reads what follows the header, and returns the checksum of the result.
func (d *Difference[T]) read(items *codec.Codec[T], enc codec.Encoding, header *difference.Header, src *codec.Source, c *claim[T]) (sum uint64, err error) {
	kept, err := d.keep(header, src, c)
	if err != nil {
		return 0, err
	}
	received, err := d.receive(items, enc, header, src, c)
	if err != nil {
		return 0, err
	}
	src.StartFrame()
	return kept ^ received, difference.ReadEnd(src)
}

// keep reads the hashes, and finds what of the claim the server has, too. It
// returns the checksum of that.
func (d *Difference[T]) keep(header *difference.Header, src *codec.Source, c *claim[T]) (sum uint64, err error) {
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
		src.StartFrame()
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
func (d *Difference[T]) receive(items *codec.Codec[T], enc codec.Encoding, header *difference.Header, src *codec.Source, c *claim[T]) (sum uint64, err error) {
	decode, err := items.ItemDecoder(enc)
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
func readItem(src *codec.Source, buf []byte) ([]byte, error) {
	src.StartFrame()
	size, err := difference.ReadSize(src)
	if err != nil {
		return nil, err
	}
	return src.ReadFrame(buf, size)
}
