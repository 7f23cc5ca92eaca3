package epoch_test

import (
	"testing"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/epoch"
	"github.com/levelwire/levelwire/storage/memory"
	"github.com/levelwire/levelwire/storage/storagetest"
)

// TestShiftedContract: a shifted store is a store.
func TestShiftedContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store {
		store, err := memory.Open(memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return epoch.Shift(store, 3)
	})
}
