package apiserver

import (
	"context"
	"encoding/binary"
	"iter"
	"sync"

	"github.com/levelwire/levelwire/internal/difference"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// comparison finds out what a client lacks that has sent a digest. The objects
// are gone through a few times; nothing is kept of them but one bit each.
type comparison struct {
	digest  *difference.Digest
	objects iter.Seq[*watchcache.Object] // the same, and in the same order, each time
	header  difference.Header
	// marked has the bit of each object that is in a bucket that differs, by its
	// place in objects.
	marked []uint64
}

// checkEvery is after how many objects a comparison looks whether anybody still
// waits for it.
const checkEvery = 4096

// bucketNumbers hold a bucket for each object of a collection while a comparison
// goes through it.
var bucketNumbers = sync.Pool{New: func() any { return new([]uint32) }}

// compare fills in the header but for its version.
func (c *comparison) compare(ctx context.Context) error {
	numbers := bucketNumbers.Get().(*[]uint32)
	defer bucketNumbers.Put(numbers)
	*numbers = (*numbers)[:0]
	if err := c.hash(ctx, numbers); err != nil {
		return err
	}
	// What has cancelled itself out is the same on both sides.
	c.header.Differing = difference.NewSet(c.digest.Bits)
	for i, rest := range c.digest.Buckets {
		if rest != 0 {
			c.header.Differing.Add(uint32(i))
		}
	}
	c.marked = make([]uint64, (len(*numbers)+63)/64)
	for i, bucket := range *numbers {
		if c.header.Differing.Has(bucket) {
			c.marked[i/64] |= 1 << (i % 64)
		}
	}
	for o := range c.differing() {
		if c.knows(o) {
			c.header.Unchanged++
		} else {
			c.header.Sent++
		}
	}
	return ctx.Err()
}

// hash goes through the objects, combines their hashes with the client's, and
// notes the bucket of each.
func (c *comparison) hash(ctx context.Context, numbers *[]uint32) error {
	hasher := difference.NewHasher(c.digest.Seed, c.digest.Bits)
	for o := range c.objects {
		bucket, hash := hasher.Keyed(o.Key, uint64(o.Revision))
		c.digest.Buckets[bucket] ^= hash
		c.header.Checksum ^= hash
		*numbers = append(*numbers, bucket)
		if len(*numbers)%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	c.header.Selected = uint64(len(*numbers))
	return nil
}

// knows reports whether the client, by what it says, has an object.
func (c *comparison) knows(o *watchcache.Object) bool { return uint64(o.Revision) <= c.digest.Known }

// differing are the objects in buckets that differ.
func (c *comparison) differing() iter.Seq[*watchcache.Object] {
	return func(yield func(*watchcache.Object) bool) {
		i := 0
		for o := range c.objects {
			if c.marked[i/64]&(1<<(i%64)) != 0 && !yield(o) {
				return
			}
			i++
		}
	}
}

// unchanged are those of them that the client knows, and sent the others.
func (c *comparison) unchanged() iter.Seq[*watchcache.Object] {
	return func(yield func(*watchcache.Object) bool) {
		for o := range c.differing() {
			if c.knows(o) && !yield(o) {
				return
			}
		}
	}
}

func (c *comparison) sent() iter.Seq[*watchcache.Object] {
	return func(yield func(*watchcache.Object) bool) {
		for o := range c.differing() {
			if !c.knows(o) && !yield(o) {
				return
			}
		}
	}
}

// listIsBetter reports whether a list costs less: its blocks are shared, and a
// difference is encoded for one client. Below a page it does not matter.
func (c *comparison) listIsBetter() bool {
	const page = 500
	return c.header.Selected > page && c.header.Sent > c.header.Selected/2
}

// write writes the answer.
func (c *comparison) write(ctx context.Context, a *answer, p presenter) error {
	if _, err := a.Write(c.header.Append(nil, c.digest.Bits)); err != nil {
		return err
	}
	if c.header.Unchanged > 0 {
		if err := c.writeHashes(a); err != nil {
			return err
		}
	}
	if c.header.Sent > 0 {
		if err := c.writeObjects(ctx, a, p); err != nil {
			return err
		}
	}
	_, err := a.Write(difference.AppendEnd(nil))
	return err
}

func (c *comparison) writeHashes(a *answer) error {
	hasher := difference.NewHasher(c.digest.Seed, c.digest.Bits)
	var buf [8]byte
	for o := range c.unchanged() {
		_, hash := hasher.Keyed(o.Key, uint64(o.Revision))
		if _, err := a.Write(difference.AppendHash(buf[:0], hash)); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) writeObjects(ctx context.Context, a *answer, p presenter) error {
	item := p.differenceItem(ctx)
	var buf [binary.MaxVarintLen64]byte
	for o := range c.sent() {
		encoded, err := item(o)
		if err != nil {
			return err
		}
		if _, err := a.Write(difference.AppendSize(buf[:0], len(encoded))); err != nil {
			return err
		}
		if _, err := a.Write(encoded); err != nil {
			return err
		}
	}
	return nil
}

// differenceItem returns the function that encodes an object as it stands in a
// difference: a whole document in JSON, a bare message in protobuf. What it
// returns is valid until the next call.
func (p presenter) differenceItem(ctx context.Context) func(*watchcache.Object) ([]byte, error) {
	switch {
	case p.form.media == mediaProtobuf:
		return p.bareMessages(ctx)
	case p.form.as == asMetadata:
		return func(o *watchcache.Object) ([]byte, error) { return p.metadata(ctx, o, false) }
	}
	return func(o *watchcache.Object) ([]byte, error) { return p.json(ctx, o) }
}
