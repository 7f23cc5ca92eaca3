package herd

import "maps"

// Digest identifies a content: two that differ in a name or a version have the
// same one with a probability of 2^-64.
type Digest struct {
	Objects int
	XOR     uint64
}

// Content is which objects there are, in which versions. The zero value is
// empty.
type Content struct {
	versions map[uint64]uint64 // by Key
	xor      uint64
}

// Set enters an object.
func (c *Content) Set(key, version uint64) {
	if c.versions == nil {
		c.versions = map[uint64]uint64{}
	}
	c.Remove(key)
	c.versions[key] = version
	c.xor ^= mix(key + mix(version))
}

// Remove takes an object out, if it is there.
func (c *Content) Remove(key uint64) {
	if old, ok := c.versions[key]; ok {
		delete(c.versions, key)
		c.xor ^= mix(key + mix(old))
	}
}

// Digest of what there is now.
func (c *Content) Digest() Digest { return Digest{Objects: len(c.versions), XOR: c.xor} }

func (c *Content) clone() Content { return Content{versions: maps.Clone(c.versions), xor: c.xor} }

// Key stands for an object's name.
func Key[T string | []byte](namespace, name T) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for _, part := range []T{namespace, name} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		h = (h ^ '/') * prime
	}
	return mix(h)
}

// mix spreads what differs in few bits over all (SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
