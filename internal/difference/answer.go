package difference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Header begins an answer.
type Header struct {
	// Version is that of the state which the client has when it has applied the
	// difference.
	Version uint64
	// Selected is how many objects that state has, and Checksum their hashes
	// combined by exclusive or.
	Selected, Checksum uint64
	// Unchanged is how many hashes follow, and Sent how many objects.
	Unchanged, Sent uint64
	// Differing are the buckets in which client and server differ.
	Differing Set
}

// Set is a set of buckets: bucket i is bit i%8 of byte i/8.
type Set []byte

// NewSet returns an empty set of 2^bits buckets.
func NewSet(bits int) Set { return make(Set, (1<<bits+7)/8) }

// Add puts a bucket in.
func (s Set) Add(bucket uint32) { s[bucket/8] |= 1 << (bucket % 8) }

// Has reports whether a bucket is in.
func (s Set) Has(bucket uint32) bool { return s[bucket/8]&(1<<(bucket%8)) != 0 }

const answerHead = 48

// Append encodes the header of an answer with 2^bits buckets.
func (h *Header) Append(dst []byte, bits int) []byte {
	dst = append(dst, answerMagic[:]...)
	dst = append(dst, version, byte(bits), 0, 0)
	for _, n := range [...]uint64{h.Version, h.Selected, h.Checksum, h.Unchanged, h.Sent} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return append(dst, h.Differing...)
}

// ReadHeader decodes the header of the answer to a digest with 2^bits buckets.
func ReadHeader(r io.Reader, bits int) (*Header, error) {
	var head [answerHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, truncated(err)
	}
	got, err := checkStart(head[:], answerMagic)
	if err != nil {
		return nil, err
	}
	if got != bits {
		return nil, fmt.Errorf("it has 2^%d buckets, the digest had 2^%d", got, bits)
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(head[8+8*i:]) }
	h := &Header{Version: n(0), Selected: n(1), Checksum: n(2), Unchanged: n(3), Sent: n(4), Differing: NewSet(bits)}
	if h.Version>>63 != 0 {
		return nil, errors.New("its version is out of range")
	}
	_, err = io.ReadFull(r, h.Differing)
	if err == nil && bits < 3 && h.Differing[0]>>(1<<bits) != 0 {
		err = errors.New("a bucket differs that does not exist")
	}
	return h, truncated(err)
}

// AppendHash encodes the hash of an object that the client has.
func AppendHash(dst []byte, hash uint64) []byte { return binary.BigEndian.AppendUint64(dst, hash) }

// ReadHash decodes one hash.
func ReadHash(r io.Reader) (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(r, b[:])
	return binary.BigEndian.Uint64(b[:]), truncated(err)
}

// AppendSize encodes the length in bytes of an object that follows.
func AppendSize(dst []byte, size int) []byte { return binary.AppendUvarint(dst, uint64(size)) }

// ReadSize decodes the length of an object.
func ReadSize(r io.ByteReader) (uint64, error) {
	size, err := binary.ReadUvarint(r)
	return size, truncated(err)
}

// AppendEnd ends an answer.
func AppendEnd(dst []byte) []byte { return append(dst, endMagic[:]...) }

// ReadEnd reads the end of an answer, and makes sure that nothing follows.
func ReadEnd(r io.Reader) error {
	var end [len(endMagic) + 1]byte
	n, err := io.ReadFull(r, end[:])
	switch {
	case n < len(endMagic):
		return truncated(err)
	case [4]byte(end[:]) != endMagic:
		return errors.New("its end is not where it should be")
	case n > len(endMagic):
		return errors.New("something follows its end")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	}
	return err
}

// truncated returns err, or io.ErrUnexpectedEOF where the data must not end.
func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
