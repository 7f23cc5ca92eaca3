package difference

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Digest summarizes the objects that a client holds.
type Digest struct {
	Seed Seed
	// Known is the version at which the client's cache was complete: it has, or
	// believes to have, every object whose version is not greater. 0: there is none,
	// and of each bucket that differs all objects are sent.
	Known uint64
	// Objects is how many there are.
	Objects uint64
	// Bits is the binary logarithm of the number of buckets.
	Bits int
	// Buckets are the hashes of the objects in each, combined by exclusive or.
	Buckets []uint64
}

// NewDigest returns the digest of nothing, for so many objects to come.
func NewDigest(seed Seed, objects int) *Digest {
	d := &Digest{Seed: seed, Bits: BitsFor(objects)}
	d.Buckets = make([]uint64, 1<<d.Bits)
	return d
}

// Add enters an object by the bucket and hash that a Hasher returned.
func (d *Digest) Add(bucket uint32, hash uint64) {
	d.Buckets[bucket] ^= hash
	d.Objects++
}

// digestHead is the length of a digest before its buckets.
const digestHead = 40

// Append encodes the digest.
func (d *Digest) Append(dst []byte) []byte {
	dst = append(dst, requestMagic[:]...)
	dst = append(dst, version, byte(d.Bits), 0, 0)
	dst = append(dst, d.Seed[:]...)
	dst = binary.BigEndian.AppendUint64(dst, d.Known)
	dst = binary.BigEndian.AppendUint64(dst, d.Objects)
	for _, bucket := range d.Buckets {
		dst = binary.BigEndian.AppendUint64(dst, bucket)
	}
	return dst
}

// ParseDigest decodes a digest, which is all of data. It shares no memory with
// it.
func ParseDigest(data []byte) (*Digest, error) {
	if len(data) < digestHead {
		return nil, fmt.Errorf("the digest has %d bytes, fewer than its head", len(data))
	}
	bits, err := checkStart(data, requestMagic)
	if err != nil {
		return nil, err
	}
	d := &Digest{Bits: bits, Seed: Seed(data[8:24]),
		Known: binary.BigEndian.Uint64(data[24:]), Objects: binary.BigEndian.Uint64(data[32:])}
	if d.Known>>63 != 0 || d.Objects>>63 != 0 {
		return nil, errors.New("the digest's version or number of objects is out of range")
	}
	data = data[digestHead:]
	if len(data) != 8<<d.Bits {
		return nil, fmt.Errorf("the digest's buckets have %d bytes and should have %d", len(data), 8<<d.Bits)
	}
	d.Buckets = make([]uint64, 1<<d.Bits)
	for i := range d.Buckets {
		d.Buckets[i] = binary.BigEndian.Uint64(data[8*i:])
	}
	return d, nil
}

// checkStart checks the eight bytes that digest and answer have in common.
func checkStart(data []byte, magic [4]byte) (bits int, err error) {
	switch {
	case [4]byte(data) != magic:
		return 0, fmt.Errorf("it begins with %q and not with %q", data[:4], magic[:])
	case data[4] != version:
		return 0, fmt.Errorf("its format has version %d, and only %d is known", data[4], version)
	case data[5] > MaxBits:
		return 0, fmt.Errorf("it has 2^%d buckets, more than 2^%d", data[5], MaxBits)
	case data[6] != 0 || data[7] != 0:
		return 0, errors.New("its reserved bytes are not zero")
	}
	return int(data[5]), nil
}
