package memory_test

import (
	"fmt"
	"testing"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// BenchmarkReadAtOldRevision reads at a revision between two checkpoints of a
// store with many keys.
func BenchmarkReadAtOldRevision(b *testing.B) {
	store := open(b, memory.Options{})
	var rev storage.Revision
	for i := range 50_000 {
		var err error
		if rev, err = store.Create(b.Context(), fmt.Sprintf("/%06d", i), nil, 0); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := store.Get(b.Context(), "/000000", rev-10); err != nil {
			b.Fatal(err)
		}
	}
}
