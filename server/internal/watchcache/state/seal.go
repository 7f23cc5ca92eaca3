//go:build invariants

package state

import (
	"fmt"
	"hash/crc32"

	"github.com/levelwire/levelwire/server/internal/watchcache/invariant"
)

// seal is a checksum of what an object must keep: it is immutable, and a store that lent the
// memory from which it was decoded may use that again.
type seal struct{ sum uint64 } // 0: it was not sealed

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (o *Object) checksum() uint64 { return 1<<32 | uint64(crc32.Checksum(o.JSON(), castagnoli)) }

// Seal notes the content of an object that is about to be shared.
func (o *Object) Seal() {
	if o.seal.sum == 0 {
		o.seal.sum = o.checksum()
	}
}

// CheckSeal checks that a shared object is as it was.
func (o *Object) CheckSeal(resource fmt.Stringer) {
	if o != nil && o.seal.sum != 0 && o.seal.sum != o.checksum() {
		invariant.Broken("a shared object is never modified: of %s, the JSON of %q at version %d has changed since it was stored", resource, o.Key, o.Revision)
	}
}
