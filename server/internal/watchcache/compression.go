package watchcache

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

const (
	// coldBatch is how many bytes of JSON are collected before they are compressed: so
	// many that they may be worth a dictionary, so few that the source of the changes,
	// which compresses them, does so in milliseconds.
	coldBatch = 1 << 20
	// listedBatch is how many listed objects are compressed together.
	listedBatch = 1000
	// dictionaryShare is which part of the objects' bytes their dictionaries may take.
	// Each has paid when it was made, but a few objects that stay may hold many.
	dictionaryShare = 32
)

// holdsSecrets reports whether the objects are Secrets, which are not compressed: a dictionary
// would keep copies of those that were deleted, and the size of a Secret that a user writes
// would say how much of it the others have.
func holdsSecrets(res *resource.Resource) bool {
	return res.Group == corev1.GroupName && res.Plural == "secrets"
}

// Compress compresses objects that a source has listed and is about to fill the cache
// with, if the cache is to hold its objects compressed. It leaves out those that the
// cache has already.
func (c *Cache) Compress(objects []*Object) {
	if c.compressor == nil {
		return
	}
	tree := c.state.Load().tree
	for batch := range slices.Chunk(objects, listedBatch) {
		fresh := slices.DeleteFunc(slices.Clone(batch), func(o *Object) bool {
			if o == nil {
				return true
			}
			held, _ := tree.Get(o.Key)
			return held == o
		})
		for _, made := range c.compressor.Compress(fresh, math.MaxInt64) {
			made.Object.OwnAttributes()
			made.Install()
		}
	}
}

// ownAttributes prepares objects for being compressed one day.
func (c *Cache) ownAttributes(changes []Change) {
	if c.compressor == nil {
		return
	}
	for i := range changes {
		if o := changes[i].Object; o != nil {
			o.OwnAttributes()
			changes[i].Key = o.Key
		}
	}
}

// addCold notes an object whose event has left the log, to be compressed if it is still
// the latest. The lock is held.
func (c *Cache) addCold(o *Object) {
	if c.compressor == nil || o == nil || !o.Compressible() || !c.isLatest(o) {
		return
	}
	c.cold = append(c.cold, o)
	c.coldBytes += int64(o.Size())
}

// forgetReplaced forgets the noted objects that a fill has not taken over. The lock is held.
func (c *Cache) forgetReplaced() {
	c.cold = slices.DeleteFunc(c.cold, func(o *Object) bool { return !c.isLatest(o) })
	c.coldBytes = 0
	for _, o := range c.cold {
		c.coldBytes += int64(o.Size())
	}
}

func (c *Cache) isLatest(o *Object) bool {
	latest, _ := c.state.Load().tree.Get(o.Key)
	return latest == o
}

// compressCold compresses the objects that have been collected, if they are enough.
// It holds the lock only to take them and to put what was made of them in their place.
func (c *Cache) compressCold() {
	if c.compressor == nil {
		return
	}
	cold := c.takeCold()
	if len(cold) == 0 {
		return
	}
	made := c.compressor.Compress(cold, coldBatch/8+c.counters.objectBytes.Load()/dictionaryShare)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range made {
		if c.isLatest(m.Object) { // otherwise it goes with the log
			c.counters.heldBytes.Add(-m.Install())
		}
	}
}

// takeCold returns the objects that have been collected, if they are enough.
func (c *Cache) takeCold() []*Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.coldBytes < coldBatch && !c.opts.CompressAtOnce {
		return nil
	}
	cold := c.cold
	c.cold, c.coldBytes = nil, 0
	return cold
}

func (c *Cache) dictionaryBytes() int64 {
	if c.compressor == nil {
		return 0
	}
	return c.compressor.DictionaryBytes()
}
