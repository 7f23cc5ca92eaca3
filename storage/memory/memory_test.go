package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
	"github.com/levelwire/levelwire/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, opts memory.Options) *memory.Store {
	t.Helper()
	store, err := memory.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func TestContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, memory.Options{}) })
}

func BenchmarkContract(b *testing.B) {
	storagetest.Bench(b, func(b *testing.B) storage.Store { return open(b, memory.Options{}) })
}
