package difference_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
)

// What follows in this file is written from docs/users/difference.md and nothing else: a
// client and a server that share no code, and no constant, with the package.

const (
	strangerPath  = "/levelwire/v1/difference"
	strangerMedia = "application/vnd.levelwire.difference"
)

// versions are a set of objects: versions by key.
type versions map[string]uint64

// strangerHash is "Hashes and buckets".
func strangerHash(seed []byte, b int, key string, version uint64) (bucket int, hash uint64) {
	d := sha256.Sum256(append(slices.Clone(seed), key...))
	for i := range b { // the first b bits
		at := 16*8 + i
		bucket = bucket<<1 | int(d[at/8]>>(7-at%8)&1)
	}
	x := binary.BigEndian.Uint64(d[8:16]) + version
	x ^= x >> 30
	_, x = bits.Mul64(x, 0xbf58476d1ce4e5b9)
	x ^= x >> 27
	_, x = bits.Mul64(x, 0x94d049bb133111eb)
	x ^= x >> 31
	return bucket, binary.BigEndian.Uint64(d[0:8]) ^ x
}

// strangerQuestion is "Request".
type strangerQuestion struct {
	b     int
	seed  []byte
	known uint64
	held  uint64 // how many
	value []uint64
}

func strangerAsks(seed []byte, b int, known uint64, held versions) strangerQuestion {
	q := strangerQuestion{b, seed, known, uint64(len(held)), make([]uint64, 1<<b)}
	for key, version := range held {
		bucket, hash := strangerHash(seed, b, key, version)
		q.value[bucket] ^= hash
	}
	return q
}

func (q strangerQuestion) bytes() []byte {
	out := append([]byte("LWDQ"), 1, byte(q.b), 0, 0)
	out = append(out, q.seed...)
	for _, n := range append([]uint64{q.known, q.held}, q.value...) {
		out = binary.BigEndian.AppendUint64(out, n)
	}
	return out
}

func strangerReadsQuestion(in []byte) (q strangerQuestion, err error) {
	if len(in) < 40 || string(in[:5]) != "LWDQ\x01" || in[5] > 18 || in[6]|in[7] != 0 || len(in) != 40+8<<in[5] {
		return q, fmt.Errorf("no question: %x", in[:min(40, len(in))])
	}
	q.b, q.seed, q.known, q.held = int(in[5]), in[8:24], binary.BigEndian.Uint64(in[24:]), binary.BigEndian.Uint64(in[32:])
	for in = in[40:]; len(in) > 0; in = in[8:] {
		q.value = append(q.value, binary.BigEndian.Uint64(in))
	}
	return q, nil
}

// strangerAnswer is "Answer".
type strangerAnswer struct {
	b                           int
	version, selected, checksum uint64
	differs                     []byte
	hashes                      []uint64
	objects                     [][]byte
}

// strangerAnswers compares a question with what a server has at a version, whose
// objects it encodes with item.
func strangerAnswers(q strangerQuestion, version uint64, has versions, item func(key string) []byte) strangerAnswer {
	a := strangerAnswer{b: q.b, version: version, selected: uint64(len(has)), differs: make([]byte, (1<<q.b+7)/8)}
	mine := make([]uint64, 1<<q.b)
	for key, version := range has {
		bucket, hash := strangerHash(q.seed, q.b, key, version)
		mine[bucket] ^= hash
		a.checksum ^= hash
	}
	for i := range mine {
		if mine[i] != q.value[i] {
			a.differs[i/8] |= 1 << (i % 8)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(has)) {
		bucket, hash := strangerHash(q.seed, q.b, key, has[key])
		switch {
		case a.differs[bucket/8]>>(bucket%8)&1 == 0:
		case has[key] <= q.known:
			a.hashes = append(a.hashes, hash)
		default:
			a.objects = append(a.objects, item(key))
		}
	}
	return a
}

func (a strangerAnswer) bytes() []byte {
	out := append([]byte("LWDA"), 1, byte(a.b), 0, 0)
	for _, n := range []uint64{a.version, a.selected, a.checksum, uint64(len(a.hashes)), uint64(len(a.objects))} {
		out = binary.BigEndian.AppendUint64(out, n)
	}
	out = append(out, a.differs...)
	for _, hash := range a.hashes {
		out = binary.BigEndian.AppendUint64(out, hash)
	}
	for _, object := range a.objects {
		out = append(binary.AppendUvarint(out, uint64(len(object))), object...)
	}
	return append(out, "LWDE"...)
}

func strangerReadsAnswer(b int, in []byte) (a strangerAnswer, err error) {
	r := bytes.NewReader(in)
	next := func(n uint64) []byte {
		if n > uint64(r.Len()) {
			err = errors.Join(err, io.ErrUnexpectedEOF)
			return make([]byte, 64)
		}
		out := make([]byte, n)
		_, _ = io.ReadFull(r, out)
		return out
	}
	number := func() uint64 { return binary.BigEndian.Uint64(next(8)) }
	if start := next(8); !bytes.Equal(start, append([]byte("LWDA\x01"), byte(b), 0, 0)) {
		return a, fmt.Errorf("an answer does not begin like this: %x", start)
	}
	a = strangerAnswer{b: b, version: number(), selected: number(), checksum: number()}
	hashes, objects := number(), number()
	a.differs = next((1<<b + 7) / 8)
	for i := uint64(0); i < hashes && err == nil; i++ {
		a.hashes = append(a.hashes, number())
	}
	for i := uint64(0); i < objects && err == nil; i++ {
		size, bad := binary.ReadUvarint(r)
		err = errors.Join(err, bad)
		a.objects = append(a.objects, next(size))
	}
	if end := next(4); string(end) != "LWDE" || r.Len() > 0 {
		err = errors.Join(err, fmt.Errorf("%x and %d bytes at the end", end, r.Len()))
	}
	return a, err
}

var errStrangeHash = errors.New("a hash of something that is not held")

// strangerApplies leads from what is held to what the server has. identify says
// what an object is.
func strangerApplies(q strangerQuestion, held versions, a strangerAnswer, identify func(object []byte) (key string, version uint64, err error)) (versions, error) {
	out, named := versions{}, map[uint64]string{}
	var checksum uint64
	for key, version := range held {
		bucket, hash := strangerHash(q.seed, q.b, key, version)
		if a.differs[bucket/8]>>(bucket%8)&1 == 1 {
			named[hash] = key
			continue
		}
		out[key] = version
		checksum ^= hash
	}
	for _, hash := range a.hashes {
		key, ok := named[hash]
		if !ok {
			return nil, errStrangeHash
		}
		out[key] = held[key]
		checksum ^= hash
	}
	for _, object := range a.objects {
		key, version, err := identify(object)
		if err != nil {
			return nil, err
		}
		_, hash := strangerHash(q.seed, q.b, key, version)
		out[key] = version
		checksum ^= hash
	}
	if uint64(len(out)) != a.selected || checksum != a.checksum {
		return nil, fmt.Errorf("%d objects with %x in place of %d with %x", len(out), checksum, a.selected, a.checksum)
	}
	return out, nil
}
