package gzipblock

import (
	"hash/crc32"
	"sync"
)

// A CRC-32 is a polynomial over GF(2) modulo the generator, its bits reflected:
// the coefficient of x^0 is the highest bit. The checksum of a text followed by
// n more bytes is that of the text times x^8n, plus that of those bytes.

const one = 1 << 31 // the polynomial 1

// times multiplies two polynomials modulo the generator.
func times(a, b uint32) uint32 {
	product := uint32(0)
	for bit := uint32(one); bit != 0 && a != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
			a ^= bit
		}
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return product
}

// powers holds x^8 to the power of every 2^i.
var powers = sync.OnceValue(func() *[48]uint32 {
	p := new([48]uint32)
	p[0] = one >> 8
	for i := 1; i < len(p); i++ {
		p[i] = times(p[i-1], p[i-1])
	}
	return p
})

// combine returns the checksum of two texts in a row, of which first and
// second are the checksums and n is the length of the second in bytes.
func combine(first, second uint32, n int) uint32 {
	p := powers()
	for i := 0; n != 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			first = times(p[i], first)
		}
	}
	return first ^ second
}
