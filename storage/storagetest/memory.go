package storagetest

import (
	"testing"

	"github.com/levelwire/levelwire/storage/memory"
)

// OpenMemory opens a store in memory until the test ends.
func OpenMemory(t testing.TB) *memory.Store {
	t.Helper()
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
