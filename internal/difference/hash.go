package difference

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Seed makes each digest's hashes and buckets its own, so that names cannot be
// chosen to collide.
type Seed [16]byte

// NewSeed returns a random seed.
func NewSeed() Seed {
	var s Seed
	_, _ = rand.Read(s[:]) // never fails: it ends the program instead
	return s
}

// MaxBits is the binary logarithm of the most buckets there may be.
const MaxBits = 18

// perBucket is about how many objects share a bucket: fewer make the digest
// longer, more make each change more expensive.
const perBucket = 16

// BitsFor returns the binary logarithm of the number of buckets for so many
// objects.
func BitsFor(objects int) int {
	bits := 0
	for bits < MaxBits && objects > perBucket<<bits {
		bits++
	}
	return bits
}

// Hasher assigns objects their buckets and hashes. It is not safe for concurrent
// use.
type Hasher struct {
	shift uint
	buf   []byte // the seed, and room for a key
}

// NewHasher returns the hasher of a digest with 2^bits buckets.
func NewHasher(seed Seed, bits int) *Hasher {
	return &Hasher{shift: uint(32 - bits), buf: append(make([]byte, 0, 128), seed[:]...)}
}

// Keyed hashes an object by its key, which is "namespace/name", or "name" for a
// cluster-scoped kind, and its version.
//
// The bucket depends on the key alone, so a change touches one bucket and not
// those of both versions.
func (h *Hasher) Keyed(key string, version uint64) (bucket uint32, hash uint64) {
	return h.sum(append(h.buf, key...), version)
}

// Named is Keyed for a key in two parts.
func (h *Hasher) Named(namespace, name string, version uint64) (bucket uint32, hash uint64) {
	text := h.buf
	if namespace != "" {
		text = append(append(text, namespace...), '/')
	}
	return h.sum(append(text, name...), version)
}

func (h *Hasher) sum(text []byte, version uint64) (bucket uint32, hash uint64) {
	h.buf = text[:len(Seed{})] // keeps the room
	d := sha256.Sum256(text)
	bucket = uint32(uint64(binary.BigEndian.Uint32(d[16:])) >> h.shift)
	return bucket, binary.BigEndian.Uint64(d[:]) ^ mix(binary.BigEndian.Uint64(d[8:])+version)
}

// mix is the finalizer of SplitMix64, a bijection in which every bit of x moves
// every bit of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Version reads the resourceVersion of an object as a Hasher needs it: a
// decimal number without leading zeros (KEP-5504).
func Version(text string) (uint64, error) {
	var n uint64
	for i := range len(text) {
		digit := uint64(text[i] - '0')
		if digit > 9 || n > (1<<63-1-digit)/10 {
			return 0, fmt.Errorf("version %.40q is not a decimal number", text)
		}
		n = 10*n + digit
	}
	if text == "" || text[0] == '0' && len(text) > 1 {
		return 0, fmt.Errorf("version %.40q is not a decimal number", text)
	}
	return n, nil
}
